package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/state"
)

// A moment is something that happened to a run. It has no arguments and nothing
// that people or models wrote.
type moment struct {
	At     time.Time            `json:"at,omitzero"`        // left out if it is not known
	Stored time.Time            `json:"stored_at,omitzero"` // when Redis stored it, of a fact that is listed by itself
	Kind   momentKind           `json:"kind"`
	What   string               `json:"what"` // for people
	Run    approvals.RunID      `json:"run"`
	Batch  approvals.BatchID    `json:"batch,omitempty"`
	Call   approvals.ToolCallID `json:"call,omitempty"`
	Tool   string               `json:"tool,omitempty"`
	By     approvals.UserID     `json:"by,omitempty"`

	Participants []approvals.UserID `json:"participants,omitempty"` // others whose words the agent had read, or who share its credential
	DelegateOf   []approvals.UserID `json:"delegate_of,omitempty"`  // who is away, and in whose place the person may decide
	Cleared      []approvals.UserID `json:"cleared,omitempty"`      // whose decisions an edit cleared
	Digest       approvals.Digest   `json:"digest,omitzero"`        // of what people saw; after a change, of the new arguments
	Rule         string             `json:"rule,omitempty"`         // that asked about the call until it was settled, permitted or refused it, and the version of its policy
	Agent        string             `json:"agent,omitempty"`
	Model        string             `json:"model,omitempty"`
	InputTokens  int                `json:"input_tokens,omitempty"`
	OutputTokens int                `json:"output_tokens,omitempty"`
	Outcome      agentrun.Outcome   `json:"outcome,omitempty"` // of a result
	Took         float64            `json:"took_seconds,omitempty"`
	Unsure       bool               `json:"unsure,omitempty"` // it is not known whether the call took effect
	Doubt        bool               `json:"doubt,omitempty"`  // people are asked what became of the call
	Check        string             `json:"check,omitempty"`
	Answer       string             `json:"answer,omitempty"` // of the check
	Verdict      approvals.Verdict  `json:"verdict,omitempty"`
	Status       string             `json:"status,omitempty"` // of the call when it is settled, and of the run when it ends
	State        string             `json:"state,omitempty"`  // what became of the call, or of a message for a webhook
	Webhook      string             `json:"webhook,omitempty"`
	Type         string             `json:"type,omitempty"` // of the message for it
	Work         state.Kind         `json:"work,omitempty"` // that was given up
	Attempts     int                `json:"attempts,omitempty"`
}

// momentKind says what happened. The kinds of facts are those of the event stream.
type momentKind string

const (
	runCreated    momentKind = "run_created"
	runEnded      momentKind = "run_ended"
	modelPrompted momentKind = "model_prompted"
	modelAnswered momentKind = "model_answered"
	callMade      momentKind = "call_made"
	resultGiven   momentKind = "result_given"
	retryAsked    momentKind = "retry_asked"

	callClaimed    momentKind = "call_claimed"
	callBegan      momentKind = "call_began"
	callEnded      momentKind = "call_ended"
	callNotRun     momentKind = "call_not_run"
	callUnapproved momentKind = "call_unapproved"

	policyPermitted momentKind = "permitted"
	policyRefused   momentKind = "refused"

	factOpened    momentKind = "opened"
	factDecided   momentKind = "decided"
	factRetracted momentKind = "retracted"
	factAmended   momentKind = "amended"
	factReminded  momentKind = "reminded"
	factEscalated momentKind = "escalated"
	factFulfilled momentKind = "fulfilled"
	factSettled   momentKind = "settled"
	factConcluded momentKind = "concluded"
	factReported  momentKind = "reported"
	factResolved  momentKind = "resolved"

	workParked   momentKind = "work_parked"
	webhookMade  momentKind = "webhook_made"
	webhookTried momentKind = "webhook_tried"
)

// A story is what happened to the runs of a conversation that follow from each other.
// Its moments are in the order of their times, except that none comes before what it
// follows from: two replicas have two clocks, and of two things within a millisecond
// either may have the earlier time.
type story struct {
	told      []told
	reached   map[lane]time.Time
	concluded []moment // that follow from what the next run executes
	damaged   []error  // why not all of it is told
}

// except notes that a record is damaged or missing, which is mostly why someone asks for the
// story: the rest is told. It returns every other error.
func (s *story) except(err error) error {
	if errors.Is(err, agentrun.ErrUnreadable) || errors.Is(err, approvals.ErrNotFound) {
		s.damaged = append(s.damaged, err)
		return nil
	}
	return err
}

// untold is an error if not all of the story was told.
func (s *story) untold() error {
	if len(s.damaged) == 0 {
		return nil
	}
	return fmt.Errorf("the rest is told, but not this: %w", errors.Join(s.damaged...))
}

type told struct {
	moment

	order time.Time // At, or the order of what it follows from, if that is later
}

// A lane is something whose moments happen one after another.
type lane string

const (
	laneRun     lane = "run "     // and its id: its messages
	laneBegun   lane = "begun "   // and the id of a run: its beginning
	laneDone    lane = "done "    // and the id of a run: what it executed
	laneCall    lane = "call "    // and its id
	laneBatch   lane = "batch "   // and its id: what people did about it
	laneWebhook lane = "webhook " // and the id of a message for it
)

// add adds a moment that follows from everything on the lanes after, and puts it on the
// lanes on. What it follows from was added before.
func (s *story) add(m moment, after []lane, on ...lane) {
	m.At = m.At.UTC()
	order := m.At
	for _, l := range after {
		order = latest(order, s.reached[l])
	}
	if s.reached == nil {
		s.reached = map[lane]time.Time{}
	}
	for _, l := range on {
		s.reached[l] = latest(s.reached[l], order)
	}
	s.told = append(s.told, told{m, order})
}

// moments are those of the story in their order.
func (s *story) moments() []moment {
	slices.SortStableFunc(s.told, func(x, y told) int { return x.order.Compare(y.order) })
	all := make([]moment, len(s.told))
	for i, t := range s.told {
		all[i] = t.moment
	}
	return all
}

func latest(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// A teller adds the moments of one run to a story.
type teller struct {
	*story

	run     agentrun.Run
	journal []agentrun.Entry // what is not told yet
	rules   map[approvals.ToolCallID]string
	ruled   map[approvals.ToolCallID]intake.CallStatus // of a remote request, which the policy decided
}

func (t *teller) begun() lane { return laneBegun + lane(t.run.ID) }

func (t *teller) add(m moment, after []lane, on ...lane) {
	m.Run = t.run.ID
	t.story.add(m, after, on...)
}

// tell adds all of the run, each moment after what it follows from. last says that no
// run takes up the answers to it.
func (t *teller) tell(messages []agentrun.Message, facts []approvals.Event, last bool) {
	t.created()
	for _, m := range messages {
		spoken(m, t.message)
	}
	t.rest()
	t.used()
	waits := t.run.Status == agentrun.RunDeferred // people decide after it has ended
	for _, e := range facts {
		t.fact(e)
		if _, opened := e.(approvals.Opened); opened && waits {
			t.ended()
		}
	}
	if !waits {
		t.ended()
	}
	if last {
		t.rest()
	}
}

// created adds the beginning of the run, which follows from the decisions that it
// takes up.
func (t *teller) created() {
	t.add(createdOf(t.run), []lane{laneBatch + lane(t.run.Batch)}, t.begun(), laneRun+lane(t.run.ID))
}

// message adds a moment of a message. A result follows from the execution of its call.
func (t *teller) message(m moment) {
	lanes := []lane{laneRun + lane(t.run.ID)}
	if m.Call != "" {
		lanes = append(lanes, laneCall+lane(m.Call))
	}
	if m.Kind == resultGiven || m.Kind == retryAsked {
		t.execution(m.Call)
	}
	t.add(m, lanes, lanes...)
	if m.Kind == callMade {
		t.rule(m.Call)
	}
}

// execution adds what the journal has of a call, and what became of it.
func (t *teller) execution(call approvals.ToolCallID) {
	t.journal = slices.DeleteFunc(t.journal, func(e agentrun.Entry) bool {
		if e.Call == call {
			executed(e, t.executed)
		}
		return e.Call == call
	})
	t.concluded = slices.DeleteFunc(t.concluded, func(m moment) bool {
		if m.Call == call {
			t.conclude(m)
		}
		return m.Call == call
	})
}

func (t *teller) executed(m moment) {
	call := laneCall + lane(m.Call)
	t.add(m, []lane{t.begun(), call}, call, laneDone+lane(t.run.ID))
}

// conclude adds what became of a call. The moment is one of the run that asked.
func (t *teller) conclude(m moment) {
	t.story.add(m, []lane{laneBatch + lane(m.Batch), laneCall + lane(m.Call)}, laneDone+lane(t.run.ID))
}

// rest adds what no message is about.
func (t *teller) rest() {
	for len(t.journal) > 0 {
		t.execution(t.journal[0].Call)
	}
	for len(t.concluded) > 0 {
		t.execution(t.concluded[0].Call)
	}
}

// fact adds a fact about what the run waits for. Facts follow from each other in the
// order in which they were committed.
func (t *teller) fact(e approvals.Event) {
	factOf(e, func(m moment) {
		m.Run = t.run.ID
		if m.Rule != "" {
			t.rules[m.Call] = m.Rule
		}
		m.settledBy(t.rules[m.Call])
		batch := laneBatch + lane(m.Batch)
		switch {
		case m.State == string(approvals.Claimed): // before it is executed, and maybe before other calls are decided
			t.add(m, []lane{batch}, laneCall+lane(m.Call))
		case m.Kind == factConcluded:
			t.concluded = append(t.concluded, m)
		case m.Kind == factOpened:
			t.add(m, []lane{laneRun + lane(t.run.ID), laneDone + lane(t.run.ID)}, batch)
		default:
			t.add(m, []lane{batch}, batch)
		}
	})
}

// ended adds the end of the run, if it has ended.
func (t *teller) ended() {
	if t.run.EndedAt.IsZero() {
		return
	}
	batch := laneBatch + lane(t.run.Deferred)
	t.add(endedOf(t.run), []lane{laneRun + lane(t.run.ID), laneDone + lane(t.run.ID), batch}, batch)
}
