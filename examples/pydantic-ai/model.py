"""A scripted model. Put yours in its place, such as 'openai:gpt-5'."""

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel


def reply(messages, _info):
    """Calls what a prompt such as "refund R-17 4200; cancel R-18" wants, and repeats the results."""
    last = messages[-1].parts
    if last[-1].part_kind == "user-prompt":
        return ModelResponse(parts=[call(i + 1, *line.split()) for i, line in enumerate(last[-1].content.split(";"))])
    return ModelResponse(parts=[TextPart("I read: " + " ".join(str(part.content) for part in last))])


def call(i, tool, order, cents=None):
    args = {"order": order, "cents": int(cents)} if cents else {"order": order}
    return ToolCallPart(tool, args, tool_call_id=f"call_{i}")


model = FunctionModel(reply)
