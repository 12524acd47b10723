package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/door"
	"github.com/countersign/countersign/internal/intake"
)

// callID names the only call of a request.
const callID approvals.ToolCallID = "1"

// A calling is one call that a client waits for.
type calling struct {
	who  asker
	tool Tool
	from door.Trace
	ask  intake.Ask
	tell *door.Progress // nil if the client takes no progress
}

func (c *calling) say(text string) {
	if c.tell != nil {
		c.tell.Say(text)
	}
}

// answer answers a call. A panic is a refusal.
func (s *Server) answer(ctx context.Context, who asker, t Tool, q *mcp.CallToolRequest) (out *mcp.CallToolResult) {
	defer func() {
		if p := recover(); p != nil {
			s.c.Log.ErrorContext(ctx, "a call of the gateway panicked", slog.String("stack", string(debug.Stack())))
			out = failed(door.NotRun(bugWords))
		}
	}()
	c := &calling{who: who, tool: t, from: door.TraceOf(ctx, q.Params.Meta, q.Extra.Header)}
	release, ok := s.door.Hold(who.Name)
	if !ok {
		return failed(s.door.TooMany())
	}
	defer release()
	ctx, forget := s.door.Cancelable(ctx, who.external())
	defer forget()
	hold := who.hold
	if token := q.Params.GetProgressToken(); token != nil {
		c.tell = &door.Progress{Every: s.c.Progress, Send: func(n float64, text string) {
			_ = q.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: text})
		}}
		defer c.tell.Start(ctx)()
	} else {
		hold = min(hold, s.c.Silent)
	}
	args := q.Params.Arguments
	if strings.TrimSpace(string(args)) == "" {
		args = json.RawMessage("{}")
	}
	if why := s.wrong(ctx, c, args); why != "" {
		return failed(why)
	}
	c.ask = s.asking(c, args)
	held, done := s.door.Until(c.from.Within(ctx), hold)
	defer done()
	for range 2 { // what is found too late is asked about anew
		if out, ok := s.decide(ctx, held, c); ok {
			return out
		}
	}
	return failed(s.door.Explain(ctx, intake.ErrTooLate))
}

// wrong says what is wrong with the arguments, before anybody is asked.
func (s *Server) wrong(ctx context.Context, c *calling, args json.RawMessage) string {
	call := approvals.ToolCall{ID: callID, Name: c.tool.Spec().Name, Args: args}
	if err := approvals.CheckArgs(args); err != nil {
		return door.NotRun(err.Error())
	}
	err := c.tool.Validate(ctx, agentrun.Call{ToolCall: call, Agent: c.who.Name, Requester: c.who.Owner})
	var (
		retry *agentrun.RetryError
		fails *agentrun.FailedError
	)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &retry):
		return retry.Message
	case errors.As(err, &fails):
		return fails.Message
	}
	return "Not run: " + err.Error()
}

// asking is what the intake is asked about a call. Its session is the credential:
// a gateway that is restarted, or another replica, finds the request again.
func (s *Server) asking(c *calling, args json.RawMessage) intake.Ask {
	spec := c.tool.Spec()
	definition := sha256.Sum256(c.tool.Defined())
	return intake.Ask{
		Door: intake.DoorGateway, Carries: intake.Carries{Edits: true, Reasons: true, Late: s.c.Keeps(c.who.Name)},
		ExternalID: c.who.external(), Trace: c.from.Parent(), Reuse: true, Here: true, Claim: !s.door.Draining(), Pure: s.c.Runner.Pure(c.who.Name, spec.Name),
		Calls: []intake.Call{{
			ID: callID, Tool: spec.Name, Args: args, Definition: hex.EncodeToString(definition[:]),
			Summary: s.c.Summary(c.who.Name, spec.Name), WriteOnly: spec.WriteOnly, Severity: spec.Stated(), Defined: spec.Definition,
		}},
	}
}

// decide asks about a call, waits until it is decided, and has it executed if it
// may run. It returns false if what it found is of no use any more, and the call
// is to be asked about anew.
func (s *Server) decide(ctx, held context.Context, c *calling) (*mcp.CallToolResult, bool) {
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.c.Handling) // a question that is stored is answered
	q, err := s.c.Intake.Ask(asked, c.who.Client, c.ask)
	cancel()
	if err != nil {
		return failed(s.door.Explain(ctx, err)), true
	}
	switch {
	case q.Claimed && c.ask.Pure:
		return s.perform(ctx, held, c, q)
	case q.Claimed:
		return s.follow(ctx, held, c, q), true
	}
	leave := s.join(q.ID)
	q, err = s.wait(held, c, q)
	last := leave()
	if ctx.Err() != nil || c.who.left(q) {
		if last && q.State == intake.StatePending && !s.door.Draining() { // else it is the gateway that leaves
			s.door.Gone(ctx, c.who.Client, q.ID)
		}
		return failed(door.NotRun(goneWords)), true
	}
	if err != nil {
		return failed(s.door.Explain(ctx, err)), true
	}
	call := q.Calls[0]
	switch {
	case call.Outcome == intake.OutcomePending:
		return failed(pendingWords(q.ID)), true
	case call.Outcome != intake.OutcomeAllowed && call.Outcome != intake.OutcomeApproved:
		return failed(door.Outcome(call)), true
	}
	if why := c.who.Still(); why != "" {
		return failed(door.NotRun(why)), true
	}
	if call.ClaimedAt.IsZero() {
		if s.door.Draining() {
			return failed(door.NotRun(drainWords)), true
		}
		if err := c.tool.Available(); err != nil { // people were asked about this definition of it
			return failed(door.NotRun(err.Error())), true
		}
		claiming, cancel := context.WithTimeout(ctx, s.c.Handling)
		_, err := s.c.Intake.Claim(claiming, c.who.Client, q.ID, call.ID)
		cancel()
		if err != nil && !errors.Is(err, intake.ErrClaimed) {
			return failed(s.door.Explain(ctx, err)), true
		}
	} else if over, err := s.over(ctx, call, q.ID); err != nil || over {
		if err == nil {
			_, err = s.c.Intake.Answered(ctx, c.who.Client, q.ID)
		}
		if err != nil {
			return failed(s.door.Explain(ctx, err)), true
		}
		return nil, false
	}
	return s.follow(ctx, held, c, q), true
}

// perform executes a call that changes nothing and was claimed with the question. A
// caller that is gone makes the call again. A call that takes longer than its caller is
// held goes the long way, on which the same call finds the result.
func (s *Server) perform(ctx, held context.Context, c *calling, q intake.Request) (*mcp.CallToolResult, bool) {
	c.say("running, request " + string(q.ID))
	e, err := s.c.Runner.Perform(held, q.Run)
	switch {
	case err == nil:
		return s.result(c.tool, e), true
	case ctx.Err() != nil:
		return failed(goneWords), true
	case s.door.Draining():
		return failed(unfinishedWords(q.ID)), true
	case errors.Is(err, agentrun.ErrNowAsks), held.Err() != nil:
		c.ask.Claim = false
		return s.decide(ctx, held, c)
	}
	s.c.Log.ErrorContext(ctx, "cannot perform a call", slog.String("request", string(q.ID)), slog.Any("err", err))
	return failed(unfinishedWords(q.ID)), true
}

// wait returns the request once it is decided or its caller has left, or as it
// stands when held ends. Every so often it looks whether the caller has left
// through another replica, which is no fact that could be followed.
func (s *Server) wait(held context.Context, c *calling, q intake.Request) (intake.Request, error) {
	told := ""
	tell := func(q intake.Request) {
		if c.tell != nil && q.Version != told {
			told = q.Version
			c.tell.Tell(q)
		}
	}
	for {
		slice, cancel := context.WithTimeout(held, s.c.Progress)
		next, err := s.door.Wait(slice, c.who.Client, q, tell)
		cancel()
		if q = next; err != nil || q.State != intake.StatePending || held.Err() != nil || c.who.left(q) {
			return q, err
		}
	}
}

// over reports whether a call that was claimed before is of no use to a caller of
// now: it has not begun and its decision is too old, or it ended too long ago.
func (s *Server) over(ctx context.Context, call intake.CallStatus, id approvals.RunID) (bool, error) {
	now := s.c.Now()
	if now.Before(call.UsableUntil) {
		return false, nil
	}
	e, err := s.c.Runner.Executed(ctx, id)
	switch {
	case err != nil:
		return false, err
	case e.Run == "", e.Status == agentrun.RunWaiting:
		return true, nil
	case e.Over() && e.Status != agentrun.RunParked:
		return !now.Before(e.Ended.Add(call.UsableUntil.Sub(call.ClaimedAt))), nil
	}
	return false, nil
}

// follow has a claimed call executed, and returns its result. If the hold is over
// before, the execution goes on, and the same call finds its result.
func (s *Server) follow(ctx, held context.Context, c *calling, q intake.Request) *mcp.CallToolResult {
	id := q.ID
	c.say("running, request " + string(id))
	doubt := false
	for {
		e, err := s.execute(held, q)
		if !doubt && e.Status == agentrun.RunDeferred {
			doubt = true
			c.say("in doubt, people decide, request " + string(id))
		}
		switch {
		case ctx.Err() != nil:
			return failed(goneWords)
		case held.Err() != nil && !e.Over() && doubt:
			return s.owed(ctx, c, id, doubtWords(id)+" "+askedWords)
		case held.Err() != nil && !e.Over():
			return s.owed(ctx, c, id, runningWords(id))
		case err != nil: // the call may have begun
			s.c.Log.ErrorContext(ctx, "cannot follow a call that may run", slog.String("request", string(id)), slog.Any("err", err))
			return s.owed(ctx, c, id, runningWords(id))
		case e.Status == agentrun.RunParked: // an operator may have it tried again
			return failed(e.Words + " Request " + string(id) + ".")
		case e.Over():
			if !q.Claimed {
				s.answered(ctx, c, id)
			}
			return s.result(c.tool, e)
		}
		select { // another process has it
		case <-held.Done():
		case <-time.After(s.c.Poll):
		}
	}
}

// owed answers that the caller should make the same call again. It first stores that
// the repeated call gets the result of this one.
func (s *Server) owed(ctx context.Context, c *calling, id approvals.RunID, words string) *mcp.CallToolResult {
	owing, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.c.Handling)
	defer cancel()
	if err := s.c.Intake.Owe(owing, c.who.Client, id); err != nil {
		s.c.Log.ErrorContext(ctx, "cannot store that a caller was told to ask again; the same call may run again", slog.String("request", string(id)), slog.Any("err", err))
		return failed(lostWords(id))
	}
	return failed(words)
}

// answered notes that the caller is told what became of its call. If the caller leaves
// while that is stored, as it can when Redis is slow, it is not told, and the same call
// still gets the result.
func (s *Server) answered(ctx context.Context, c *calling, id approvals.RunID) {
	storing, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.c.Handling)
	defer cancel()
	first, err := s.c.Intake.Answered(storing, c.who.Client, id)
	if err != nil {
		s.c.Log.WarnContext(ctx, "the same call will get an old result", slog.String("request", string(id)), slog.Any("err", err))
	}
	if !first || ctx.Err() == nil {
		return
	}
	if err := s.c.Intake.Unanswered(storing, c.who.Client, id); err != nil {
		s.c.Log.ErrorContext(ctx, "cannot store that a caller left before its result; the same call may run again", slog.String("request", string(id)), slog.Any("err", err))
	}
}
