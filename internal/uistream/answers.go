package uistream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// An answer is what a person says about a call.
type answer struct {
	approval string
	call     string // empty: the approval names it
	tool     string
	input    json.RawMessage // as the client shows it; nil: it does not say
	verdict  approvals.Verdict
	reason   string
}

// answersIn lists the answers of a message.
func answersIn(m message) []answer {
	var all []answer
	if m.Role != roleAssistant {
		return nil
	}
	for _, p := range m.Parts {
		if p.Tool == "" || p.State != stateResponded || p.Approval == nil || p.Approval.Approved == nil {
			continue
		}
		v := approvals.Deny
		if *p.Approval.Approved {
			v = approvals.Approve
		}
		all = append(all, answer{approval: p.Approval.ID, call: p.CallID, tool: p.Tool, input: p.Input, verdict: v, reason: p.Approval.Reason})
	}
	return all
}

// An asked is the call that an answer is about, as it is stored.
type asked struct {
	batch    approvals.Batch
	approval approvals.Approval
	call     approvals.ToolCall // with its arguments in this version of the batch
	shown    string             // the digest of the arguments that the person was asked about
}

// stale reports whether the arguments were changed after the person was asked.
func (q asked) stale() bool { return !begins(q.approval.Call.Digest, q.shown) }

// renew replaces the batch with a later version. If the arguments have changed, it
// loads the new ones, because the old ones must not be shown under the new id.
func (s *Server) renew(ctx context.Context, q *asked, b approvals.Batch) error {
	a, ok := b.Approval(q.call.ID)
	if !ok {
		return fmt.Errorf("%w: call %s of batch %s", approvals.ErrNotFound, q.call.ID, b.ID)
	}
	if a.Call.Digest != q.approval.Call.Digest {
		call, err := s.c.Desk.Call(ctx, b, q.call.ID)
		if err != nil {
			return err
		}
		q.call = call
	}
	q.batch, q.approval = b, a
	return nil
}

// errForged is an answer to something that nobody was asked.
var errForged = errors.New("no such request")

// resolve finds the call that an answer is about, if there is one for the person, as
// sees says of its run and batch. What does not fit what is stored is refused with
// [errForged] in words for the person.
func (s *Server) resolve(ctx context.Context, a answer, sees func(agentrun.Run, approvals.Batch) (bool, error)) (asked, error) {
	var q asked
	id, digest, ok := parseApprovalID(a.approval)
	if !ok {
		return q, forged(wordsUnknown)
	}
	var err error
	q.batch, err = s.c.Desk.Batch(ctx, id)
	if errors.Is(err, approvals.ErrNotFound) {
		return q, forged(wordsUnknown)
	}
	if err != nil {
		return q, err
	}
	run, err := s.c.Runs.Run(ctx, q.batch.Run)
	if err != nil {
		return q, err
	}
	switch ok, err := sees(run, q.batch); {
	case err != nil:
		return q, err
	case !ok:
		return q, forged(wordsUnknown)
	}
	i := slices.IndexFunc(q.batch.Approvals, func(x approvals.Approval) bool { return named(x, digest) })
	if i < 0 {
		return q, forged(wordsUnknown)
	}
	q.approval = q.batch.Approvals[i]
	if a.call != "" && a.call != string(q.approval.Call.ID) || a.tool != "" && a.tool != q.approval.Call.Name {
		return q, forged(wordsOtherCall)
	}
	if q.call, err = s.c.Desk.Call(ctx, q.batch, q.approval.Call.ID); err != nil {
		return q, err
	}
	q.shown = digest
	open := q.approval.Status == approvals.Pending
	if open && !q.stale() && a.input != nil && !sameInput(shownInput(q.call.Args, q.approval.WriteOnly), a.input) {
		return q, forged(wordsEdited)
	}
	return q, nil
}

func forged(words string) error {
	return fmt.Errorf("%w: %w", errForged, refuse(http.StatusConflict, words))
}

func begins(d approvals.Digest, with string) bool { return strings.HasPrefix(d.String(), with) }

// named reports whether the arguments of a call are, or were, those of the digest.
func named(a approvals.Approval, digest string) bool {
	return begins(a.Call.Digest, digest) || begins(a.Proposed, digest) ||
		slices.ContainsFunc(a.Amendments, func(m approvals.Amendment) bool { return begins(m.From, digest) || begins(m.To, digest) })
}

// An outcome is what became of an answer.
type outcome struct {
	asked
	counted bool   // it is the person's decision, and the call is still open
	words   string // for the person; empty if there is nothing to say
	refused error  // why it does not count
}

// data says how the call stands after the answer.
func (o outcome) data(s *Server, user approvals.UserID) *approvalData {
	d := approvalOf(o.batch, o.approval, o.call.Args, user, s.c.Now())
	d.Message = o.words
	return d
}

// decide commits the answer of a person to a call. Every refusal that the person
// may read is an outcome; an error is that it is not known whether it counts.
func (s *Server) decide(ctx context.Context, user approvals.UserID, q asked, a answer) (outcome, error) {
	o := outcome{asked: q}
	if q.stale() && q.approval.Status == approvals.Pending {
		o.refused, o.words = approvals.ErrStale, wordsStale
		return o, nil
	}
	if st := q.approval.StatusAt(s.c.Now()); st.Settled() {
		return s.settled(ctx, user, o, a)
	}
	if len(a.reason) > approvals.MaxReason {
		// Refusing the request would end the chat: the client sends this again with
		// every message, and its user cannot change it.
		o.refused, o.words = approvals.ErrInvalid, wordsTooLong
		return o, nil
	}
	c, err := s.c.Desk.Case(ctx, q.batch, q.approval.Call.ID, q.approval.Call.Digest, func(ctx context.Context, of approvals.Asked) (approvals.Principal, error) {
		return s.c.People.Principal(ctx, user, of)
	})
	if err == nil {
		c, err = s.c.Desk.DecideCase(ctx, c, requestID(user, a), a.verdict, a.reason)
	}
	if c.Batch.ID != "" && c.Approval.Call.ID != "" {
		if err := s.renew(ctx, &o.asked, c.Batch); err != nil {
			return o, err
		}
	}
	if errors.Is(err, approvals.ErrSettled) {
		return s.settled(ctx, user, o, a)
	}
	if err != nil {
		words, known := explain(err, a.verdict)
		if !known {
			return o, fmt.Errorf("decide call %s of batch %s: %w", q.approval.Call.ID, q.batch.ID, err)
		}
		s.c.Log.InfoContext(ctx, "answer refused", slog.String("user", string(user)), slog.String("batch", string(q.batch.ID)), slog.Any("reason", err))
		o.refused, o.words = err, words
		return o, nil
	}
	if o.approval.Status == approvals.Pending {
		if d, ok := o.approval.DecisionBy(user); !ok || d.Verdict != a.verdict { // the answer was handled before
			o.refused, o.words = approvals.ErrAnswered, wordsTakenBack
			if o.stale() {
				o.refused, o.words = approvals.ErrStale, wordsStale
			}
			return o, nil
		}
	}
	if d, ok := o.approval.DecisionBy(user); ok && d.At.Equal(c.Decision.At) { // made just now
		s.c.Log.InfoContext(ctx, "decided on the web", slog.String("user", string(user)), slog.String("batch", string(o.batch.ID)),
			slog.String("verdict", string(a.verdict)), slog.String("status", string(o.approval.Status)))
	}
	switch {
	case o.approval.Status == approvals.Pending && a.verdict == approvals.Approve:
		o.counted, o.words = true, wordsCounted
	case o.approval.Status == approvals.Pending:
		o.counted, o.words = true, wordsDenied
	case !o.batch.Settled():
		o.words = wordsSiblings
	}
	return o, nil
}

// settled is the outcome of an answer to a call that has its own: it stays as it
// is. The person is told if it is not what they wanted.
func (s *Server) settled(ctx context.Context, user approvals.UserID, o outcome, a answer) (outcome, error) {
	v := a.verdict
	if err := s.c.Desk.Confirm(ctx, o.batch); err != nil {
		return o, err
	}
	status := o.approval.StatusAt(s.c.Now())
	d, _ := o.approval.DecisionBy(user)
	switch {
	case d.Verdict == v:
	case status == approvals.Approved && v == approvals.Approve, status == approvals.Denied && v == approvals.Deny:
	case v == approvals.Deny && a.reason == o.approval.Denial().Message: // not the person's: the client has it from us
	case status == approvals.Expired:
		o.refused = approvals.ErrExpired
	default:
		o.refused = approvals.ErrSettled
	}
	if o.refused != nil {
		o.words, _ = explain(o.refused, v)
	}
	return o, nil
}

// requestID names an answer, so that the same answer sent twice is one.
func requestID(user approvals.UserID, a answer) approvals.RequestID {
	h := sha256.Sum256([]byte(strings.Join([]string{a.approval, string(a.verdict), a.reason}, "\n")))
	return approvals.RequestID("web:" + string(user) + ":" + hex.EncodeToString(h[:16]))
}

// decideAll decides the answers of a request: those of its last message, which
// must all be about what was asked, and those of older ones. An older answer that fits
// no request is reported, not refused. Nothing is decided if one of the last message
// is forged.
func (s *Server) decideAll(ctx context.Context, at place, user approvals.UserID, q request) (last, older []outcome, unknown []*approvalData, err error) {
	type found struct {
		q    asked
		a    answer
		last bool
	}
	var all []found
	sees := func(run agentrun.Run, b approvals.Batch) (bool, error) {
		if run.Thread != at.thread {
			return false, nil
		}
		if !at.shared || run.Requester == user { // who sees all of it
			return true, nil
		}
		return s.mayRead(ctx, user, b)
	}
	for i, m := range q.Messages {
		for _, a := range answersIn(m) {
			x, err := s.resolve(ctx, a, sees)
			isLast := i == len(q.Messages)-1
			if errors.Is(err, errForged) && !isLast {
				p, _ := errors.AsType[*problem](err)
				unknown = append(unknown, &approvalData{ApprovalID: cut(a.approval), ToolCallID: cut(a.call), Status: statusUnknown, Message: p.Detail})
				continue
			}
			if err != nil {
				if errors.Is(err, errForged) {
					s.c.Log.WarnContext(ctx, "an answer was refused that fits no request", slog.String("user", string(user)), slog.Any("reason", err))
				}
				return nil, nil, nil, err
			}
			all = append(all, found{x, a, isLast})
		}
	}
	for _, f := range all {
		b, err := s.c.Desk.Batch(ctx, f.q.batch.ID) // an answer before it may have moved it
		if err != nil {
			return nil, nil, nil, err
		}
		if err := s.renew(ctx, &f.q, b); err != nil {
			return nil, nil, nil, err
		}
		o, err := s.decide(ctx, user, f.q, f.a)
		if err != nil {
			return nil, nil, nil, err
		}
		if f.last {
			last = append(last, o)
		} else {
			older = append(older, o)
		}
	}
	return last, older, unknown, nil
}

// cut shortens what a client made up.
func cut(s string) string {
	if len(s) > maxChatID {
		return strings.ToValidUTF8(s[:maxChatID], "")
	}
	return s
}
