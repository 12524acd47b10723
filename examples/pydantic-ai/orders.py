"""What the agent of this example does: stand-ins for programs with effects."""

import json


def refund(order: str, cents: int) -> str:
    print("refunding with", json.dumps({"order": order, "cents": cents}, separators=(",", ":")))
    return f"Refunded {cents} cents of order {order}."


def cancel(order: str) -> str:
    print("canceling with", json.dumps({"order": order}, separators=(",", ":")))
    return f"Canceled order {order}."
