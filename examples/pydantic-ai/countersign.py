"""Asks Countersign for approval of tool calls, with the standard library.

Everything that fails raises, and then nothing runs.
"""

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request


class NotApproved(Exception):
    """Why a call did not run, in words for a person."""


def ask(run, before, requests, state=None):
    """Asks for the approval of calls, given as the JSON of DeferredToolRequests.

    The run is the name that the program gives to what it is doing; before is the
    request before this one in the same run, if there was one.
    """
    pause = int(before["external_id"].rsplit("/", 1)[1]) + 1 if before else 1
    parts = {"group": run, "external_id": f"{run}/{pause}", "format": "pydantic-ai", "state": state}
    # The requests are put in as they stand: what people approve are these bytes.
    body = json.dumps(parts)[:-1].encode() + b', "body": ' + requests + b"}"
    return json.loads(_call("POST", "/v1/approvals", body))


def newest(run):
    """Returns the newest request of the run, to continue after a crash or a long wait."""
    found = json.loads(_call("GET", f"/v1/approvals?limit=1&group={urllib.parse.quote(run, safe='')}"))["approvals"]
    return json.loads(_call("GET", f"/v1/approvals/{found[0]['id']}")) if found else None


def decided(request):
    """Waits until people have decided about all calls of the request."""
    end = time.monotonic() + float(os.environ.get("COUNTERSIGN_WAIT", "3600"))
    while request["status"] == "pending":
        left = end - time.monotonic()
        if left <= 0:
            raise NotApproved(f"Nobody has decided yet about {request['external_id']}. Start again later: the request stays open.")
        request = json.loads(_call("GET", f"/v1/approvals/{request['id']}?wait={min(max(1, int(left)), 50)}s"))
    return request


def results(request):
    """Returns the decisions as the JSON of DeferredToolResults."""
    return _call("GET", f"/v1/approvals/{request['id']}/results")


def once(request, call_id, tool, execute):
    """Runs an approved call of the request, once, whoever else resumes it.

    The tool gets the arguments that were approved, whatever the framework says they are.
    """
    if not request or tool not in [c["tool"] for c in request["calls"] if c["id"] == call_id]:
        raise NotApproved(f"Nobody was asked about {tool}.")
    path = f"/v1/approvals/{request['id']}/calls/{urllib.parse.quote(call_id, safe='')}"
    claim = json.loads(_call("POST", f"{path}/claim"))  # fails if it is not approved, or taken

    def report(state, words=""):
        try:  # only the card says it
            _call("POST", f"{path}/result", json.dumps({"state": state, "words": words}).encode())
        except NotApproved:
            pass

    try:
        result = execute(**json.loads(claim["args_text"]))
    except Exception as err:
        report("failed", str(err))
        raise
    report("ran")
    return result


def _call(method, path, body=None):
    headers = {"Authorization": f"Bearer {os.environ['COUNTERSIGN_TOKEN']}", "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["COUNTERSIGN_URL"] + path, method=method, data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=70) as answer:
            return answer.read()
    except urllib.error.HTTPError as err:
        try:
            doc = json.load(err)
            why = f"{doc['title']} {doc.get('detail', '')}".strip()
        except (ValueError, KeyError):
            why = f"Countersign cannot be reached: {err}."
        raise NotApproved(why) from err
    except OSError as err:
        raise NotApproved(f"Countersign cannot be reached: {err}.") from err
