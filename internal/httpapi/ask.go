package httpapi

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/httpapi/format"
	"github.com/countersign/countersign/internal/intake"
)

// ask reads the body of a new request.
func (c caller) ask() (intake.Ask, error) {
	key, err := c.idempotencyKey()
	if err != nil {
		return intake.Ask{}, err
	}
	raw, err := c.body()
	if err != nil {
		return intake.Ask{}, err
	}
	if raw == nil {
		return intake.Ask{}, &format.RequestError{Problem: "the body is missing"}
	}
	doc, err := format.Value{Raw: raw}.Object("external_id", "group", "session", "calls", "format", "body", "ids",
		"state", "within", "prompt", "notify", "reuse", "carries")
	if err != nil {
		return intake.Ask{}, err
	}
	ask := intake.Ask{Door: intake.DoorAPI, IdempotencyKey: key, Payload: sha256.Sum256(raw), Trace: c.r.Header.Get("Traceparent")}
	for field, to := range map[string]*string{
		"external_id": &ask.ExternalID, "group": &ask.Group, "session": &ask.Session, "notify": &ask.Notify,
	} {
		if *to, err = doc[field].Text(maxName); err != nil {
			return ask, err
		}
	}
	if ask.Prompt, err = doc["prompt"].Text(maxPrompt); err != nil {
		return ask, err
	}
	if ask.Reuse, err = doc["reuse"].Flag(); err != nil {
		return ask, err
	}
	if ask.Within, err = duration(doc["within"]); err != nil {
		return ask, err
	}
	read, err := calls(doc)
	if err != nil {
		return ask, err
	}
	ask.Calls, ask.Carries = read.Calls, read.Carries
	for i, call := range read.Calls {
		if call.ID == "." || call.ID == ".." { // nobody could claim it: a server removes these from a path
			return ask, &format.RequestError{At: fmt.Sprintf("/calls/%d/id", i), Problem: `cannot be "." or "..", because it is a part of paths`}
		}
		if call.External {
			read.Form.External = append(read.Form.External, call.ID)
		}
	}
	if len(doc["state"].Raw) > maxState {
		return ask, refuse(kindTooLarge, "the state may have at most %d bytes", maxState)
	}
	ask.State, err = kept{Form: read.Form, State: bytes.Clone(doc["state"].Raw)}.pack()
	return ask, err
}

// maxState is how many bytes the state of the caller may have.
const maxState = 1 << 20

// maxName is how many bytes a name may have that the caller chooses.
const maxName = 256

// maxPrompt is how many bytes of what a person wrote are taken.
const maxPrompt = 16 << 10

func duration(v format.Value) (time.Duration, error) {
	s, err := v.Text(32)
	if err != nil || s == "" {
		return 0, err
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Second {
		return 0, &format.RequestError{At: v.At, Problem: "must be a duration of at least 1s, such as 90m or 24h"}
	}
	return d, nil
}

// calls reads the calls: our own, or those of a framework.
func calls(doc map[string]format.Value) (format.Reading, error) {
	own, body, ids := doc["calls"], doc["body"], doc["ids"]
	name, err := doc["format"].Text(maxName)
	switch {
	case err != nil:
		return format.Reading{}, err
	case name == "" && body.Raw != nil:
		return format.Reading{}, &format.RequestError{At: "/format", Problem: "is missing: it says what body is"}
	case name == "" && ids.Raw != nil:
		return format.Reading{}, &format.RequestError{At: "/ids", Problem: "are for a format whose calls have none"}
	case name == "":
		return readCalls(own, doc["carries"])
	case own.Raw != nil:
		return format.Reading{}, &format.RequestError{At: "/calls", Problem: "are in body, if there is a format"}
	case doc["carries"].Raw != nil && format.Name(name) != format.OpenAIAgents:
		return format.Reading{}, &format.RequestError{At: "/carries", Problem: "follows from the format"}
	case body.Raw == nil:
		return format.Reading{}, &format.RequestError{At: "/body", Problem: "is missing"}
	}
	var names []approvals.ToolCallID
	if ids.Raw != nil {
		if names, err = readIDs(ids); err != nil {
			return format.Reading{}, err
		}
	}
	r, err := format.Read(format.Name(name), body.Raw, names)
	if err != nil || doc["carries"].Raw == nil {
		return r, within("/body", err)
	}
	carries, err := doc["carries"].Object("edits")
	if err != nil {
		return r, err
	}
	r.Form.ByClaim, err = carries["edits"].Flag()
	r.Carries.Edits = r.Form.ByClaim
	return r, err
}

func readIDs(v format.Value) ([]approvals.ToolCallID, error) {
	list, err := v.List()
	names := []approvals.ToolCallID{}
	for _, item := range list {
		id, err := item.Text(maxName)
		if err != nil {
			return nil, err
		}
		names = append(names, approvals.ToolCallID(id))
	}
	return names, err
}

func readCalls(v, carries format.Value) (format.Reading, error) {
	r := format.Reading{Carries: intake.Carries{Edits: true, Reasons: true, Late: true}}
	if carries.Raw != nil {
		doc, err := carries.Object("edits", "reasons", "late")
		if err != nil {
			return r, err
		}
		for key, to := range map[string]*bool{"edits": &r.Carries.Edits, "reasons": &r.Carries.Reasons, "late": &r.Carries.Late} {
			if *to, err = doc[key].Flag(); err != nil {
				return r, err
			}
		}
	}
	if v.Raw == nil {
		return r, &format.RequestError{At: "/calls", Problem: "are missing"}
	}
	list, err := v.List()
	if err != nil {
		return r, err
	}
	for _, item := range list {
		call, err := readCall(item)
		if err != nil {
			return r, err
		}
		r.Calls = append(r.Calls, call)
	}
	return r, nil
}

func readCall(v format.Value) (intake.Call, error) {
	var c intake.Call
	doc, err := v.Object("id", "tool", "server", "args", "cwd", "repository", "branch", "definition", "reason", "external")
	if err != nil {
		return c, err
	}
	for _, f := range []struct {
		key string
		to  *string
		max int
	}{
		{"id", (*string)(&c.ID), maxName},
		{"tool", &c.Tool, maxName},
		{"server", &c.Server, maxName},
		{"cwd", &c.Cwd, maxPath},
		{"repository", &c.Repository, maxName},
		{"branch", &c.Branch, maxName},
		{"definition", &c.Definition, maxName},
		{"reason", &c.Reason, maxPrompt},
	} {
		if *f.to, err = doc[f.key].Text(f.max); err != nil {
			return c, err
		}
	}
	if c.External, err = doc["external"].Flag(); err != nil {
		return c, err
	}
	c.Args, err = doc["args"].Args()
	return c, err
}

// maxPath is how many bytes a path may have: what the intake takes.
const maxPath = 512
