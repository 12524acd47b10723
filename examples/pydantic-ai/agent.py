"""An agent of PydanticAI that refunds and cancels orders once people have approved.

    python3 agent.py RUN 'refund R-17 4200; cancel R-18'

RUN names what it is doing. Started again with the same name, it continues: the two-run
recipe, in which the run ends with its requests and another run gets the results.
"""

import json
import sys

from pydantic import TypeAdapter
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.messages import ModelMessagesTypeAdapter

import orders
from countersign import NotApproved, ask, decided, newest, once, results
from model import model

agent = Agent(model, deps_type=dict, output_type=[str, DeferredToolRequests])


@agent.tool(requires_approval=True)
def refund(ctx: RunContext[dict], order: str, cents: int) -> str:
    """Pays money of an order back."""
    return once(ctx.deps, ctx.tool_call_id, "refund", orders.refund)


@agent.tool(requires_approval=True)
def cancel(ctx: RunContext[dict], order: str) -> str:
    """Cancels an order."""
    return once(ctx.deps, ctx.tool_call_id, "cancel", orders.cancel)


def ask_for(run, result, before=None):
    """Asks for the calls that wait for approval, with all that is needed to continue."""
    if not isinstance(result.output, DeferredToolRequests):
        return None
    body = TypeAdapter(DeferredToolRequests).dump_json(result.output)
    return ask(run, before, body, state=json.loads(result.all_messages_json()))


def resume(request):
    """Continues with the decisions."""
    return agent.run_sync(
        message_history=ModelMessagesTypeAdapter.validate_python(request["state"]),
        deferred_tool_results=TypeAdapter(DeferredToolResults).validate_json(results(request)),
        deps=request,
    )


def main(run, prompt):
    request = newest(run)
    if not request:
        result = agent.run_sync(prompt)
        request = ask_for(run, result)
    while request:
        request = decided(request)
        result = resume(request)
        request = ask_for(run, result, request)
    print(result.output)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except NotApproved as err:
        sys.exit(str(err))
