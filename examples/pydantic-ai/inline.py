"""The inline recipe: the run does not end, it waits for people in a handler.

    python3 inline.py RUN 'refund R-17 4200; cancel R-18'

Use it where something else keeps the run, such as Temporal. A process that dies while
it waits has to begin again, and then finds its request by the name of the run.
"""

import asyncio
import sys

from pydantic import TypeAdapter
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.capabilities import HandleDeferredToolCalls

import orders
from countersign import NotApproved, ask, decided, once, results
from model import model


async def handler(ctx: RunContext[dict], requests: DeferredToolRequests) -> DeferredToolResults:
    """Asks for the calls that wait for approval, and waits for the decisions."""
    body = TypeAdapter(DeferredToolRequests).dump_json(requests)
    asked = await asyncio.to_thread(ask, ctx.deps["run"], ctx.deps.get("request"), body)
    ctx.deps["request"] = await asyncio.to_thread(decided, asked)
    return TypeAdapter(DeferredToolResults).validate_json(results(asked))


agent = Agent(model, deps_type=dict, capabilities=[HandleDeferredToolCalls(handler=handler)])


@agent.tool(requires_approval=True)
def refund(ctx: RunContext[dict], order: str, cents: int) -> str:
    """Pays money of an order back."""
    return once(ctx.deps["request"], ctx.tool_call_id, "refund", orders.refund)


@agent.tool(requires_approval=True)
def cancel(ctx: RunContext[dict], order: str) -> str:
    """Cancels an order."""
    return once(ctx.deps["request"], ctx.tool_call_id, "cancel", orders.cancel)


if __name__ == "__main__":
    try:
        print(agent.run_sync(sys.argv[2], deps={"run": sys.argv[1]}).output)
    except NotApproved as err:
        sys.exit(str(err))
