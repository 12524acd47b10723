"""Stands for PydanticAI where it cannot be installed: it hands in the JSON that
PydanticAI dumps, and does with the results what PydanticAI does with them. The client
and the tools are those of the example."""

import json
import sys

import countersign
import orders

run, prompt = sys.argv[1:]


def part(i, tool, order, cents=None):
    """Returns a call as a ToolCallPart is dumped."""
    args = {"order": order, "cents": int(cents)} if cents else {"order": order}
    return {"tool_name": tool, "args": args, "tool_call_id": f"call_{i}", "tool_kind": None, "id": None,
            "provider_name": None, "provider_details": None, "part_kind": "tool-call"}


def main():
    request = countersign.newest(run)
    if not request:
        approvals = [part(i + 1, *line.split()) for i, line in enumerate(prompt.split(";"))]
        body = json.dumps({"calls": [], "approvals": approvals, "metadata": {}}, separators=(",", ":"))
        request = countersign.ask(run, None, body.encode(), state=[{"kind": "response", "parts": approvals}])
    request = countersign.decided(request)
    answer = countersign.results(request)
    print("results", answer.decode())
    read = []
    for call in request["state"][0]["parts"]:
        result = json.loads(answer)["approvals"][call["tool_call_id"]]
        if result is True or result["kind"] == "tool-approved":
            tool = call["tool_name"]
            read.append(countersign.once(request, call["tool_call_id"], tool, getattr(orders, tool)))
        else:
            read.append(result["message"])
    print("I read:", " ".join(read))


try:
    main()
except countersign.NotApproved as err:
    sys.exit(str(err))
