package format

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
)

// readPydantic reads PydanticAI's DeferredToolRequests. Its calls are to be
// fulfilled, its approvals to be approved. The metadata of an external call is for who
// fulfills it.
func readPydantic(body json.RawMessage) (Reading, error) {
	var q approvals.DeferredToolRequests
	if err := json.Unmarshal(body, &q); err != nil {
		if f, ok := errors.AsType[*RequestError](err); ok {
			return Reading{}, f
		}
		return Reading{}, fault("", "%s", plainly(err))
	}
	if len(q.Calls)+len(q.Approvals) == 0 {
		return Reading{}, fault("", "has no calls")
	}
	r := Reading{Form: Form{Format: PydanticAI}, Carries: intake.Carries{Edits: true, Reasons: true, Late: true}}
	for _, c := range q.Calls {
		about := q.Metadata[c.ID]
		if len(about) > maxMetadata {
			return Reading{}, fault("/metadata/"+pointer(string(c.ID)), "must have at most %d bytes, but has %d", maxMetadata, len(about))
		}
		r.Calls = append(r.Calls, intake.Call{ID: c.ID, Tool: c.Name, Args: c.Args, External: true, Metadata: about})
		r.Form.External = append(r.Form.External, c.ID)
	}
	for _, c := range q.Approvals {
		r.Calls = append(r.Calls, intake.Call{ID: c.ID, Tool: c.Name, Args: c.Args})
	}
	return r, nil
}

// maxMetadata is how many bytes the metadata of a call may have.
const maxMetadata = 16 << 10

// writePydantic writes PydanticAI's DeferredToolResults. The metadata says who
// approved a call; PydanticAI gives it to the tool.
func (f Form) writePydantic(calls []intake.CallStatus) (json.RawMessage, error) {
	out := approvals.DeferredToolResults{
		Calls:     map[approvals.ToolCallID]approvals.CallResult{},
		Approvals: map[approvals.ToolCallID]approvals.ApprovalResult{},
		Metadata:  map[approvals.ToolCallID]json.RawMessage{},
	}
	for _, c := range calls {
		switch {
		case c.Result != nil:
			out.Calls[c.ID] = asReturned(c.Result)
			continue
		case slices.Contains(f.External, c.ID):
			out.Calls[c.ID] = approvals.ToolFailed{Message: Words(c)}
			continue
		case !approved(c):
			out.Approvals[c.ID] = approvals.ToolDenied{Message: Words(c)}
			continue
		case c.Edited:
			out.Approvals[c.ID] = approvals.ToolApproved{OverrideArgs: orNone(c.Args)}
		default:
			out.Approvals[c.ID] = approvals.ToolApproved{}
		}
		about, err := compact(map[string]any{"approved_by": approversOf(c.By), "rule": c.Rule, "digest": "sha256:" + c.Digest.String()})
		if err != nil {
			return nil, err
		}
		out.Metadata[c.ID] = about
	}
	return compact(out)
}

// asReturned writes a denied external call as a failure: PydanticAI would read a
// denial there as a result.
func asReturned(r approvals.CallResult) approvals.CallResult {
	if d, denied := r.(approvals.ToolDenied); denied {
		return approvals.ToolFailed(d)
	}
	return r
}

// orNone writes arguments that were taken away as an empty object; without it
// the call would run with those of the model.
func orNone(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	return args
}

func approversOf(by []approvals.Seat) []approvals.UserID {
	list := []approvals.UserID{}
	for _, s := range by {
		list = append(list, s.User)
	}
	return list
}
