package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// adminFacts prints what people were asked and what they decided in a period, about all
// requests.
func adminFacts(ctx context.Context, in *call) error {
	var want wantedFacts
	in.flags.Func("since", "Only what was stored at this `TIME` or later, by the clock of Redis: a day such as 2026-01-31, which begins at midnight UTC, or a time such as 2026-01-31T15:04:05Z.", want.since.set)
	in.flags.Func("until", "Only what was stored before this `TIME`, which is written in the same way.", want.until.set)
	in.flags.Func("by", "Only what this `PERSON` asked for or decided, what a delegate decided in their place, an edit that cleared their decision, or what an agent asked for whose credential they share: a user id of Slack, such as U0123456789.", want.whose)
	in.flags.Func("agent", "Only requests of the agent with this `NAME`.", want.ofAgent)
	asJSON := in.flags.Bool("json", false, "Write an object of JSON in each line.")
	return administer(ctx, in, func(a admin, _ []string) error {
		if !want.until.IsZero() && !want.since.Before(want.until.Time) {
			return in.wrong("--until must be after --since")
		}
		return a.allFacts(ctx, want, *asJSON)
	})
}

// wantedFacts says which facts are printed. A field that is zero excludes none. The period is
// of when facts were stored, not of when they happened: what is stored later never falls into
// one that was printed before.
type wantedFacts struct {
	since, until instant
	by           approvals.UserID
	agent        string
}

// actor is the form of an id of Slack, and of what acts for nobody in Slack, such as
// service:NAME or cli:NAME.
var actor = regexp.MustCompile(`^([UW][A-Z0-9]+|[a-z]+:.+)$`)

// checkActor says what is wrong with the id of a person.
func checkActor(value string) error {
	if !actor.MatchString(value) {
		return errors.New("it must be a user id of Slack such as U0123456789; names are not accepted because people can change them")
	}
	return nil
}

// whose sets the person. With a name no fact would be found, as if they had done nothing.
func (w *wantedFacts) whose(value string) error {
	w.by = approvals.UserID(value)
	return checkActor(value)
}

// ofAgent sets the agent. With an empty name, such as that of a variable which is not set,
// the facts of all agents would be printed as if they were those of one.
func (w *wantedFacts) ofAgent(name string) error {
	if name == "" {
		return errors.New("it must be the name of an agent")
	}
	w.agent = name
	return nil
}

// An instant is the value of a flag.
type instant struct{ time.Time }

func (i *instant) set(value string) error {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, value); err == nil {
			i.Time = at
			return nil
		}
	}
	return errors.New("it must be a day such as 2026-01-31 or a time such as 2026-01-31T15:04:05Z")
}

func (w wantedFacts) has(m moment) bool {
	return !m.Stored.Before(w.since.Time) && (w.until.IsZero() || m.Stored.Before(w.until.Time)) &&
		(w.by == "" || m.By == w.by || slices.Contains(m.DelegateOf, w.by) || slices.Contains(m.Cleared, w.by) || slices.Contains(m.sharedBy(), w.by)) &&
		(w.agent == "" || m.Agent == w.agent)
}

// asker says for whom the agent asked: for a person, or for one of several.
func (m moment) asker() string {
	if people := m.sharedBy(); len(people) > 0 {
		return " for " + joined(people, " or ")
	}
	return after(" for ", m.By)
}

// sharedBy returns the people of whom one asked, if they share the credential of the agent.
func (m moment) sharedBy() []approvals.UserID {
	if _, shared := m.By.Service(); !shared {
		return nil
	}
	return m.Participants
}

// allFacts prints the facts of all partitions, those of each in the order in which they
// were committed, and otherwise the oldest first.
func (a admin) allFacts(ctx context.Context, want wantedFacts, asJSON bool) error {
	type head struct {
		first moment
		next  func() (moment, error, bool)
	}
	var heads []head
	for n := range approvals.Partitions {
		next, stop := iter.Pull2(a.factsOf(ctx, n))
		defer stop()
		heads = append(heads, head{next: next})
	}
	// advance takes the next fact of a partition, and reports whether there is one.
	advance := func(h *head) (ok bool, err error) {
		h.first, err, ok = h.next()
		return ok, err
	}
	var rest []head
	for _, h := range heads {
		ok, err := advance(&h)
		if err != nil {
			return err
		}
		if ok {
			rest = append(rest, h)
		}
	}
	printed := 0
	for len(rest) > 0 {
		oldest := 0
		for i := range rest {
			if rest[i].first.At.Before(rest[oldest].first.At) {
				oldest = i
			}
		}
		if m := rest[oldest].first; want.has(m) {
			printed++
			if err := a.sayFact(m, asJSON); err != nil {
				return err
			}
		}
		ok, err := advance(&rest[oldest])
		if err != nil {
			return err
		}
		if !ok {
			rest = slices.Delete(rest, oldest, oldest+1)
		}
	}
	if asJSON {
		return nil
	}
	return a.say(counted(printed, "fact", "facts") + "\n")
}

func (a admin) sayFact(m moment, asJSON bool) error {
	if !asJSON {
		return a.say(m.line())
	}
	doc, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode a fact: %w", err)
	}
	return a.say(escaped(string(doc)) + "\n")
}

// An askedBatch is what the fact of the opening of a batch says for the later ones.
type askedBatch struct {
	run          approvals.RunID
	agent        string
	tools, rules map[approvals.ToolCallID]string
}

// completes says in a moment what the batch was opened with, and with which rules its
// calls are asked about. opens: the moment is the opening.
func (b *askedBatch) completes(m *moment, opens bool) {
	m.Run, m.Agent = b.run, b.agent
	if opens {
		b.tools[m.Call] = m.Tool
		m.What = fmt.Sprintf("agent %s%s: %s", m.Agent, m.asker(), m.What)
	} else if m.Tool = b.tools[m.Call]; m.Tool != "" {
		m.What += fmt.Sprintf(" (%s of agent %s)", m.Tool, m.Agent)
	}
	if m.Rule != "" {
		b.rules[m.Call] = m.Rule
	}
	m.settledBy(b.rules[m.Call])
}

// factsOf yields the facts of a partition, each with its run, its agent and its tool, and
// the outcome of a call with the rule that asked.
func (a admin) factsOf(ctx context.Context, partition int) iter.Seq2[moment, error] {
	return func(yield func(moment, error) bool) {
		of := map[approvals.BatchID]*askedBatch{}
		for e, err := range state.NewFeed(a.store).Events(ctx, partition) {
			if err != nil {
				yield(moment{}, err)
				return
			}
			opened, first := e.Event.(approvals.Opened)
			if first {
				of[opened.Batch] = &askedBatch{opened.Run, opened.Agent, map[approvals.ToolCallID]string{}, map[approvals.ToolCallID]string{}}
			}
			stored, err := state.StoredAt(e.ID)
			if err != nil {
				yield(moment{}, err)
				return
			}
			var all []moment
			factOf(e.Event, func(m moment) { all = append(all, m) })
			for _, m := range all {
				m.Stored = stored
				if b := of[m.Batch]; b != nil {
					b.completes(&m, first)
				}
				if !yield(m, nil) {
					return
				}
			}
		}
	}
}
