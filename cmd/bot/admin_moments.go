package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// plainly writes a stored word as text: "in doubt" instead of "in_doubt".
func plainly[T ~string](word T) string { return strings.ReplaceAll(string(word), "_", " ") }

// after returns the words and the person, or nothing if it is nobody.
func after(words string, u approvals.UserID) string {
	if u == "" {
		return ""
	}
	return words + string(u)
}

func createdOf(r agentrun.Run) moment {
	created := "was asked for"
	switch {
	case r.Parent != "":
		created = "takes up the answers"
	case r.Executor != "":
		created = "asked from elsewhere" + after(" for ", r.Requester)
	default:
		created += after(" by ", r.Requester)
	}
	if r.Instructions != "" {
		created += fmt.Sprintf(", with %d characters of instructions from a client", utf8.RuneCountInString(r.Instructions))
	}
	return moment{At: r.CreatedAt, Kind: runCreated, What: fmt.Sprintf("agent %s %s", r.Agent, created), Batch: r.Batch, By: r.Requester, Agent: r.Agent}
}

func endedOf(r agentrun.Run) moment {
	what := "the run is " + plainly(r.Status)
	if r.Failure != "" {
		what += ": " + r.Failure
	}
	of := r.Deferred
	if r.Status == agentrun.RunMerged { // the run that takes up the answers to this one has its message
		of = r.Supersedes
		what += " into the one that takes up the answers"
	}
	return moment{At: r.EndedAt, Kind: runEnded, What: what, Batch: of, Status: string(r.Status)}
}

// spoken adds what a message is, without its words.
func spoken(m agentrun.Message, add func(moment)) {
	switch m := m.(type) {
	case agentrun.Request:
		for _, part := range m.Parts {
			switch p := part.(type) {
			case agentrun.UserPrompt:
				add(moment{At: m.At, Kind: modelPrompted, What: "the model was given a prompt"})
			case agentrun.ToolReturn:
				what := fmt.Sprintf("the model was given the result of %s: %s", p.ToolName, plainly(p.Outcome))
				add(moment{At: m.At, Kind: resultGiven, What: what, Call: p.CallID, Tool: p.ToolName, Outcome: p.Outcome})
			case agentrun.RetryPrompt:
				add(moment{At: m.At, Kind: retryAsked, What: "the model was asked to try again", Call: p.CallID, Tool: p.ToolName})
			}
		}
	case agentrun.Response:
		if m.ModelName != "" || m.Usage != (agentrun.Usage{}) { // else an agent elsewhere handed in its calls
			what := fmt.Sprintf("the model %s answered (%d tokens read, %d written)", m.ModelName, m.Usage.InputTokens, m.Usage.OutputTokens)
			add(moment{
				At: m.At, Kind: modelAnswered, What: strings.Replace(what, "model  ", "model ", 1),
				Model: m.ModelName, InputTokens: m.Usage.InputTokens, OutputTokens: m.Usage.OutputTokens,
			})
		}
		for _, part := range m.Parts {
			if p, ok := part.(agentrun.CallPart); ok {
				add(moment{At: m.At, Kind: callMade, What: "it calls " + p.Name, Call: p.ID, Tool: p.Name})
			}
		}
	}
}

// executed adds what the journal says of a call.
func executed(e agentrun.Entry, add func(moment)) {
	m := moment{At: e.Ended(), Call: e.Call, Tool: e.Tool, Unsure: e.State == agentrun.EntryStarted || e.Finish.Unsure}
	unknown := ""
	if e.Finish.Unsure {
		unknown = "; whether it took effect is not known"
	}
	switch {
	case e.Unapproved():
		m.Kind, m.What = callUnapproved, "the model provider ran "+e.Tool+" without approval"+unknown
	case e.State == agentrun.EntryClaimed:
		m.Kind, m.What = callClaimed, e.Tool+" is about to begin"
	case e.State == agentrun.EntryStarted:
		m.Kind, m.What = callBegan, e.Tool+" began, and its outcome is not known"
	case e.Finish.Aside == agentrun.AsidePrecondition:
		m.Kind, m.What = callNotRun, e.Tool+" was not run: what it would change is not what people had seen"
	default:
		add(moment{At: e.Began(), Kind: callBegan, What: e.Tool + " began", Call: e.Call, Tool: e.Tool})
		m.Kind, m.Took = callEnded, e.Finish.Took.Seconds()
		m.What = fmt.Sprintf("%s ended after %s%s", e.Tool, e.Finish.Took.Round(time.Millisecond), unknown)
	}
	add(m)
}

// settledBy adds the rule that asked to the fact that a call is settled.
func (m *moment) settledBy(rule string) {
	if m.Kind == factSettled && rule != "" {
		m.Rule = rule
		m.What += "; the rule " + rule + " asked"
	}
}

// factOf adds a fact of a batch.
func factOf(e approvals.Event, add func(moment)) {
	m := moment{Batch: approvals.BatchOf(e)}
	switch e := e.(type) {
	case approvals.Opened:
		for _, c := range openedOf(e) {
			c.At, c.Kind, c.Batch, c.Agent, c.By, c.Participants = e.At, factOpened, e.Batch, e.Agent, e.Requester, e.Participants
			add(c)
		}
		return
	case approvals.Decided:
		m.At, m.Kind, m.Call, m.Verdict, m.Digest = e.At, factDecided, e.Call, e.Verdict, e.Digest
		m.did(e.By, "decided: "+plainly(e.Verdict))
	case approvals.Retracted:
		m.At, m.Kind, m.Call = e.At, factRetracted, e.Call
		m.did(e.By, "took their decision back")
	case approvals.Amended:
		m.At, m.Kind, m.Call, m.Digest, m.Rule, m.Cleared = e.At, factAmended, e.Call, e.To, e.Rule, e.Cleared
		m.did(e.By, "changed the arguments")
		if len(e.Cleared) > 0 {
			m.What += ", which cleared the decisions of " + joined(e.Cleared, " and ")
		}
	case approvals.Reminded:
		m.At, m.Kind, m.Call, m.What = e.At, factReminded, e.Call, "a reminder was due"
	case approvals.Escalated:
		m.At, m.Kind, m.Call, m.What = e.At, factEscalated, e.Call, "more people were asked"
	case approvals.Fulfilled:
		m.At, m.Kind, m.Call, m.By, m.What = e.At, factFulfilled, e.Call, e.By, "the result came from elsewhere"+after(", given by ", e.By)
	case approvals.Settled:
		m.At, m.Kind, m.Call, m.By, m.Status = e.At, factSettled, e.Call, e.By, string(e.Status)
		m.What = "the call is " + plainly(e.Status) + after(" by ", e.By)
	case approvals.Concluded:
		m.At, m.Kind, m.Call, m.State, m.Took = e.At, factConcluded, e.Call, string(e.State), e.Took.Seconds()
		m.What = "what became of the call: " + plainly(e.State)
		if m.Rule = e.Rule; m.Rule != "" {
			m.What += " by the rule " + m.Rule
		}
	case approvals.Reported:
		m.At, m.Kind, m.Call, m.State, m.Took = e.At, factReported, e.Call, string(e.State), e.Took.Seconds()
		m.What = "a worker that had been stopped reports: " + plainly(e.State)
	case approvals.Resolved:
		m.At, m.Kind, m.What = e.At, factResolved, "everything is decided"
	}
	add(m)
}

// did says what a person did, and whose delegate they were then. They may have done it for
// themselves: the receipt says for whom an approver counted.
func (m *moment) did(by approvals.Principal, what string) {
	who := string(by.User)
	for _, away := range by.For {
		m.DelegateOf = append(m.DelegateOf, away.User)
	}
	if len(m.DelegateOf) > 0 {
		who += ", a delegate of " + joined(m.DelegateOf, " and ") + ","
	}
	m.By, m.What = by.User, who+" "+what
}

func joined(people []approvals.UserID, sep string) string {
	var all []string
	for _, u := range people {
		all = append(all, string(u))
	}
	return strings.Join(all, sep)
}

// openedOf says for each call what people are asked about it.
func openedOf(e approvals.Opened) []moment {
	var all []moment
	for i, c := range e.Approvals {
		m := moment{Call: c.ID, Tool: c.Name, Digest: c.Digest, What: "people are asked about " + c.Name}
		if i < len(e.Rules) {
			m.Rule = e.Rules[i]
		}
		if m.Doubt = slices.Contains(e.Doubts, c.ID); m.Doubt {
			m.What = fmt.Sprintf("people are asked what to do about %s, which may or may not have taken effect", c.Name)
		}
		if i := slices.IndexFunc(e.Checked, func(k approvals.CheckedCall) bool { return k.Call == c.ID }); i >= 0 {
			m.Check, m.Answer = e.Checked[i].Check, string(e.Checked[i].Answer)
			m.What += fmt.Sprintf(" (check %s: %s)", m.Check, m.Answer)
		}
		all = append(all, m)
	}
	for _, c := range e.Calls {
		all = append(all, moment{Call: c.ID, Tool: c.Name, Digest: c.Digest, What: c.Name + " waits for a result from elsewhere"})
	}
	return all
}
