package uistream

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A teller knows what one client has been sent of a turn, and says what is new.
type teller struct {
	dialect   Dialect
	reader    approvals.UserID
	reasoning bool

	begun bool
	steps int  // how many stored steps were begun
	open  bool // the last of them is not finished
	calls map[approvals.ToolCallID]*told
	data  map[string]string // by the id of the chunk
	words map[string]string // for the reader, by call: what became of their answer

	shown *shown // the draft of the next step; nil if none was sent
	lost  bool   // the client received a draft that was not stored, and has to resume
}

// told is what a client knows of a call.
type told struct {
	started   bool
	available bool
	approval  string // what it was last asked
	responded bool   // it shows an answer that is not settled yet
	approved  bool   // that answer
	decided   bool   // it was told the decision, in a dialect that has words for it
	settled   bool
}

func newTeller(d Dialect, reader approvals.UserID, reasoning bool) *teller {
	return &teller{dialect: d, reader: reader, reasoning: reasoning, calls: map[approvals.ToolCallID]*told{}, data: map[string]string{}, words: map[string]string{}}
}

// knows takes what the client has of the message from the client itself, for a
// stream that continues it.
func (w *teller) knows(m message, t *turn) {
	for i, s := range t.steps {
		for _, c := range s.calls {
			p, ok := m.call(c.id)
			if !ok {
				continue
			}
			w.steps = i + 1
			k := &told{started: true, available: p.State != stateStreaming}
			if p.Approval != nil {
				k.approval, k.responded = p.Approval.ID, p.State == stateResponded
				k.approved = p.Approval.Approved != nil && *p.Approval.Approved
			}
			k.settled = p.State == stateOutput || p.State == stateError || p.State == stateDenied
			if k.settled && c.result == nil { // the result is the client's own, and does not count
				k = &told{started: true}
			}
			w.calls[c.id] = k
		}
	}
	if n := len(m.Parts); n > 0 && m.Parts[n-1].Type == "text" && w.steps < len(t.steps) {
		if last, _ := t.steps[len(t.steps)-1].text(agentrun.DeltaText); last == m.Parts[n-1].Text {
			w.steps = len(t.steps) // the client has the whole last text too
		}
	}
}

// tell returns the chunks that bring the client up to date.
func (w *teller) tell(t *turn, now time.Time) []chunk {
	var out []chunk
	if !w.begun {
		w.begun = true
		start := chunk{Type: typeStart, MessageID: messageID(t.head)}
		if !t.began.IsZero() {
			start.MessageMetadata = &metadata{Timestamp: t.began.UTC()}
		}
		out = append(out, start)
	}
	for _, c := range t.ended {
		out = append(out, w.note(c.data(w.reader, now))...)
	}
	if w.stale(t) {
		out = append(out, w.takeBack()...)
		w.shown.run, w.shown.at = t.run, t.at
	}
	for i, s := range t.steps {
		if i >= w.steps && !w.lost {
			out = append(out, w.begin(i, s)...)
		}
		if w.lost {
			return nil
		}
		last := i == len(t.steps)-1
		for _, c := range s.calls {
			out = append(out, w.ask(c, !last || t.over || t.waits, now)...)
		}
		results := w.results(s)
		done := !last || t.over || t.waits || !s.unseen && slices.IndexFunc(s.calls, func(c *call) bool { return c.result == nil }) < 0
		out = append(out, results...)
		if w.open && w.shown == nil && i == w.steps-1 && done {
			w.open = false
			out = append(out, chunk{Type: typeFinishStep})
		}
	}
	return out
}

// begin is a response of the model as it came.
func (w *teller) begin(i int, s *step) []chunk {
	var out []chunk
	if w.shown == nil {
		out = w.startStep()
	} else if !w.shown.agrees(s) {
		if out = w.takeBack(); w.lost {
			return nil
		}
	}
	w.steps = i + 1
	texts := map[agentrun.DeltaKind]int{}
	next := func(kind agentrun.DeltaKind) string {
		texts[kind]++
		return partID(i, kind, texts[kind]-1)
	}
	for _, p := range s.response.Parts {
		switch p := p.(type) {
		case agentrun.Text:
			if p.Content != "" {
				out = append(out, w.whole(agentrun.DeltaText, next(agentrun.DeltaText), p.Content)...)
			}
		case agentrun.Thinking:
			if p.Content != "" && w.reasoning {
				out = append(out, w.whole(agentrun.DeltaThinking, next(agentrun.DeltaThinking), p.Content)...)
			}
		case agentrun.CallPart, agentrun.ProviderCall:
		}
	}
	for _, c := range s.calls {
		out = append(out, w.show(c)...)
	}
	w.shown = nil
	return out
}

// startStep begins a step, and ends the one before it.
func (w *teller) startStep() []chunk {
	var out []chunk
	if w.open {
		out = append(out, chunk{Type: typeFinishStep})
	}
	w.open = true
	return append(out, chunk{Type: typeStartStep})
}

// show is a call as the model made it, before anything is known of it.
func (w *teller) show(c *call) []chunk {
	k := w.call(c.id)
	if k.started {
		return nil
	}
	k.started = true
	return []chunk{
		{Type: typeInputStart, ToolCallID: string(c.id), Hosted: c.hosted, ToolName: c.name},
		{Type: typeInputDelta, ToolCallID: string(c.id), InputTextDelta: string(c.input())},
	}
}

func (w *teller) call(id approvals.ToolCallID) *told {
	k := w.calls[id]
	if k == nil {
		k = &told{}
		w.calls[id] = k
	}
	return k
}

// ask shows a call, and asks about it if people can decide it. known says that
// the arguments were judged.
func (w *teller) ask(c *call, known bool, now time.Time) []chunk {
	out, k := w.show(c), w.call(c.id)
	retry, wrong := c.result.(agentrun.RetryPrompt)
	if !k.available && (known || c.asked != nil || c.result != nil) {
		k.available = true
		if wrong && c.asked == nil {
			k.settled = true
			return append(out, chunk{Type: typeInputError, ToolCallID: string(c.id), Hosted: c.hosted, ToolName: c.name, Input: c.input(), ErrorText: retry.Content})
		}
		out = append(out, chunk{Type: typeInputAvailable, ToolCallID: string(c.id), Hosted: c.hosted, ToolName: c.name, Input: c.input()})
	}
	asks := c.pending(now) || c.ahead() && !w.dialect.decisions()
	if id := c.approval(); asks && k.approval != id && w.dialect.approvals() {
		if k.approval != "" { // other arguments, or asked once more
			out = append(out, chunk{Type: typeInputAvailable, ToolCallID: string(c.id), Hosted: c.hosted, ToolName: c.name, Input: c.input()})
		}
		k.approval, k.responded, k.decided = id, false, false
		out = append(out, w.request(c))
	}
	if d := c.data(w.reader, now); d != nil {
		out = append(out, w.note(d)...)
	}
	if why, refused := c.refusal(); refused && w.dialect.decisions() && !k.settled && !k.decided {
		k.decided = true
		out = append(out, chunk{Type: typeApprovalRequest, ApprovalID: policyApproval(c.id), ToolCallID: string(c.id), IsAutomatic: true},
			chunk{Type: typeApprovalResponse, ApprovalID: policyApproval(c.id), Approved: new(bool), Reason: why, Hosted: c.hosted})
	}
	if approved, decided := c.decided(); decided && w.dialect.decisions() && !k.settled && !k.decided {
		k.decided = true
		if k.approval == "" {
			k.approval = c.approval()
			out = append(out, w.request(c))
		}
		out = append(out, chunk{Type: typeApprovalResponse, ApprovalID: k.approval, Approved: &approved, Reason: c.why(), Hosted: c.hosted})
	}
	return out
}

// request returns the chunk that asks about a call.
func (w *teller) request(c *call) chunk {
	r := chunk{Type: typeApprovalRequest, ApprovalID: c.approval(), ToolCallID: string(c.id)}
	if w.dialect.reasons() {
		r.Reason = c.asked.Why
	}
	return r
}

// note is a data chunk, if it says something new.
func (w *teller) note(d *approvalData) []chunk {
	if d.Message == "" {
		d.Message = w.words[d.ToolCallID]
	}
	raw, err := json.Marshal(d)
	if err != nil || w.data[d.ToolCallID] == string(raw) {
		return nil
	}
	w.data[d.ToolCallID] = string(raw)
	return []chunk{{Type: typeApproval, ID: d.ToolCallID, Data: d}}
}

// results settles the calls that have a result: denied ones first, then those
// that failed. The common dialect cannot say how they were decided, so an answer of the
// client that was not followed is taken away: the call is requested anew, and settled.
func (w *teller) results(s *step) []chunk {
	var again, denied, failed, rest []chunk
	for _, c := range s.calls {
		k := w.call(c.id)
		if c.result == nil || k.settled {
			continue
		}
		if approved, decided := c.decided(); decided && k.responded && k.approved != approved && w.dialect == Common {
			again = append(again, w.request(c))
		}
		k.settled, k.responded = true, false
		r, ok := c.result.(agentrun.ToolReturn)
		switch {
		case !ok:
			retry, _ := c.result.(agentrun.RetryPrompt)
			failed = append(failed, chunk{Type: typeOutputError, ToolCallID: string(c.id), Hosted: c.hosted, ErrorText: retry.Content})
		case r.Outcome == agentrun.OutcomeDenied && w.dialect == V5:
			denied = append(denied, chunk{Type: typeOutput, ToolCallID: string(c.id), Hosted: c.hosted, Output: shownJSON(r.Content)})
		case r.Outcome == agentrun.OutcomeDenied:
			denied = append(denied, chunk{Type: typeOutputDenied, ToolCallID: string(c.id)})
		case r.Outcome == agentrun.OutcomeSuccess:
			rest = append(rest, chunk{Type: typeOutput, ToolCallID: string(c.id), Hosted: c.hosted, Output: shownJSON(r.Content)})
			rest = append(rest, sources(r)...)
		default:
			failed = append(failed, chunk{Type: typeOutputError, ToolCallID: string(c.id), Hosted: c.hosted, ErrorText: words(r.Content)})
		}
	}
	return slices.Concat(again, denied, failed, rest)
}

// unsettled asks again about the calls that people can still decide and that the
// client shows as answered, and takes the answer away from those that came into
// doubt. A client that is left with such a call sends the same request for ever.
func (w *teller) unsettled(t *turn, now time.Time) []chunk {
	if !w.dialect.approvals() {
		return nil
	}
	var out []chunk
	for _, s := range t.steps {
		for _, c := range s.calls {
			switch k := w.call(c.id); {
			case !k.responded:
			case c.pending(now):
				k.responded, k.approval = false, c.approval()
				out = append(out, w.request(c))
			case c.asked != nil && c.asked.InDoubt():
				k.responded = false
				out = append(out, chunk{Type: typeInputAvailable, ToolCallID: string(c.id), Hosted: c.hosted, ToolName: c.name, Input: c.input()})
			}
		}
	}
	return out
}

// end finishes the stream of a turn that is over or that waits.
func (w *teller) end(t *turn) []chunk {
	out := w.abandon()
	switch {
	case t.failure != "":
		return append(out, chunk{Type: typeError, ErrorText: t.failure}, chunk{Type: typeFinish, FinishReason: finishError})
	case t.moved:
		return append(out, chunk{Type: typeFinish, FinishReason: finishOther})
	case t.over:
		return append(out, chunk{Type: typeFinish, FinishReason: finishStop})
	}
	return append(out, chunk{Type: typeFinish, FinishReason: finishToolCalls})
}
