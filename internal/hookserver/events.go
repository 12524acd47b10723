package hookserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/door"
	"github.com/countersign/countersign/internal/intake"
)

// The events of Claude Code that are understood. Any other is answered with
// nothing, unless it may decide whether a tool runs: then it is denied.
const (
	eventPre     = "PreToolUse"
	eventRequest = "PermissionRequest"
	eventPost    = "PostToolUse"
	eventFailed  = "PostToolUseFailure"
	eventDenied  = "PermissionDenied"
	eventEnd     = "SessionEnd"
)

// What cards say of requests that ended at the terminal.
const (
	ranAtTerminal    = "it was answered at the terminal first, and the tool ran"
	deniedAtTerminal = "it was answered at the terminal first, and the tool did not run"
	sessionEnded     = "the session of the agent ended"
)

// event answers one event.
func (s *Server) event(ctx context.Context, c door.Caller, h hook, opts options) []byte {
	switch h.event {
	case "":
		return preToolUse(deny("the question does not name its event"), options{})
	case eventPre:
		if h.session == "" || h.tool == "" || len(h.input) == 0 {
			return preToolUse(deny("the question names no session, no tool or no input"), options{})
		}
		return preToolUse(s.decide(ctx, c.Client, h.asking(c, opts)), opts)
	case eventRequest:
		return s.permissionRequest(ctx, c, h, opts)
	case eventPost, eventFailed, eventDenied, eventEnd:
		s.after(ctx, c.Client, h, opts)
	default:
		if h.decides() {
			return preToolUse(deny("the event is not known, and may decide whether a tool runs"), options{})
		}
	}
	return nothing
}

// asking is the call of a PreToolUse hook. The same call of the same session finds
// the request or the decision that is there.
func (h hook) asking(c door.Caller, opts options) asking {
	return asking{until: opts.until, still: c.Still, Ask: intake.Ask{
		Door: intake.DoorHooks, Carries: intake.Carries{Edits: true, Reasons: true, Late: opts.keep},
		ExternalID: h.external(), Group: h.session, Session: h.session, Reuse: true,
		Calls: []intake.Call{h.asked()},
	}}
}

// external names the call of this session. An id of a call alone could be that of
// another session.
func (h hook) external() string {
	if h.use == "" {
		return ""
	}
	return h.session + "/" + h.use
}

// asked is the call as the intake is asked about it.
func (h hook) asked() intake.Call {
	return intake.Call{ID: approvals.ToolCallID(cmp.Or(h.use, "call")), Tool: h.tool, Server: h.server, Args: h.input, Cwd: h.cwd, Reason: h.sub}
}

// permissionRequest answers the hook that is called when a person at the terminal
// is about to be asked. It is no gate: it is not called for what a rule allows.
// So it answers for a request that PreToolUse has opened about exactly this call,
// and otherwise says nothing.
func (s *Server) permissionRequest(ctx context.Context, c door.Caller, h hook, opts options) []byte {
	h.use = "" // another hook of the agent may have changed the call that the id names
	q, ok := s.find(ctx, c.Client, h, func(q intake.Request) bool {
		call := q.Calls[0]
		return q.State == intake.StatePending || call.Outcome == intake.OutcomeApproved && call.ClaimedAt.IsZero()
	})
	if !ok {
		return nothing
	}
	v := s.follow(ctx, c.Client, q, asking{until: opts.until, still: c.Still})
	out := hookOutput{Event: eventRequest, Request: &behavior{Behavior: "deny", Message: v.reason}}
	if v.allow {
		out.Request = &behavior{Behavior: "allow"}
		if !bytes.Equal(v.args, h.input) {
			out.Request.Input = v.args
		}
	}
	body, err := json.Marshal(answer{out})
	if err != nil {
		return []byte(`{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"Not run: Countersign could not write an answer."}}}`)
	}
	return body
}

// after reports what became of a call. If its request was still open, the person
// at the terminal answered first, and the request is withdrawn.
func (s *Server) after(ctx context.Context, c intake.Client, h hook, opts options) {
	ctx, cancel := context.WithTimeout(ctx, s.c.Handling)
	defer cancel()
	if h.event == eventEnd {
		if !opts.keep {
			s.withdraw(ctx, c, h, sessionEnded)
		}
		return
	}
	report, ended := intake.Report{State: approvals.Ran, Excerpt: excerpt(h.response)}, ranAtTerminal
	switch h.event {
	case eventFailed:
		report = intake.Report{State: approvals.RanFailed, Words: h.failure}
	case eventDenied:
		report, ended = intake.Report{State: approvals.NotRun, Words: h.reason}, deniedAtTerminal
	}
	q, ok := s.find(ctx, c, h, func(q intake.Request) bool {
		call := q.Calls[0]
		return q.State == intake.StatePending || !call.ClaimedAt.IsZero() && call.Report == nil
	})
	if !ok {
		return
	}
	var err error
	if q.State == intake.StatePending {
		_, err = s.c.Intake.Withdraw(ctx, c, q.ID, ended)
	} else {
		_, err = s.c.Intake.Report(ctx, c, q.ID, q.Calls[0].ID, report)
	}
	if err != nil {
		s.c.Log.WarnContext(ctx, "what became of a call is not known to its card", slog.String("request", string(q.ID)), slog.Any("err", err))
	}
}

// withdraw ends every request of the session that is open.
func (s *Server) withdraw(ctx context.Context, c intake.Client, h hook, reason string) {
	if h.session == "" {
		return
	}
	all, err := s.c.Intake.List(ctx, c, intake.Filter{Group: h.session, State: intake.StatePending, Limit: intake.MaxDone})
	for _, q := range all {
		if _, failed := s.c.Intake.Withdraw(ctx, c, q.ID, reason); failed != nil {
			err = failed
		}
	}
	if err != nil {
		s.c.Log.WarnContext(ctx, "a request of a session that ended stays open", slog.Any("err", err))
	}
}

// find returns the newest request of the session that is about the call of the
// hook: by its id, or else by its fingerprint, which has the directory and the
// server in it, and the exact arguments. What people changed is another call.
func (s *Server) find(ctx context.Context, c intake.Client, h hook, fits func(intake.Request) bool) (intake.Request, bool) {
	if h.session == "" {
		return intake.Request{}, false
	}
	newest := func(external string, same func(intake.Request) bool) (intake.Request, bool) {
		all, err := s.c.Intake.List(ctx, c, intake.Filter{Group: h.session, ExternalID: external, Limit: intake.MaxDone})
		if err != nil {
			s.c.Log.WarnContext(ctx, "cannot find the request of a call", slog.Any("err", err))
		}
		i := slices.IndexFunc(all, func(q intake.Request) bool { return len(q.Calls) == 1 && same(q) && fits(q) })
		if i < 0 {
			return intake.Request{}, false
		}
		return all[i], true
	}
	if h.use != "" {
		if q, ok := newest(h.external(), func(intake.Request) bool { return true }); ok {
			return q, true
		}
	}
	print := intake.Fingerprint(c, h.session, h.asked())
	return newest("", func(q intake.Request) bool {
		return q.Calls[0].Fingerprint == print && bytes.Equal(q.Calls[0].Args, h.input)
	})
}

// excerpt is the text of a result of a tool.
func excerpt(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var doc struct{ Stdout, Stderr *string }
	if json.Unmarshal(raw, &doc) == nil && doc.Stdout != nil {
		if *doc.Stdout == "" && doc.Stderr != nil {
			return *doc.Stderr
		}
		return *doc.Stdout
	}
	return strings.ToValidUTF8(string(raw), "\ufffd")
}
