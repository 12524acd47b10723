package delivery

import (
	"slices"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// A target is where parts of a batch are drawn: the thread of its run, the channel of
// an escalation, or the direct messages to a person.
type target struct {
	channel, thread string
	further         bool             // the channel of an escalation
	direct          approvals.UserID // the direct messages to this person
	parts           []int            // that the person can help with
	left            bool             // nothing new is posted here, but existing messages are updated
	chat            *agentrun.Run    // a run of a chat, whose thread may have to be begun
}

// isChat reports whether the run belongs to a person's conversation with one of the
// configured agents outside Slack.
func isChat(run agentrun.Run) bool { return run.Executor == "" && !run.CallsOnly }

// home is where the batch of a run is shown in any case: in the thread of the
// run, and if that is not in Slack, in the channel that the batch names, if it
// names one. A chat has a thread there, which [chats.Chats] keep.
func home(run agentrun.Run, b approvals.Batch) (t target, shown bool) {
	if run.Origin.Surface == ref.Surface {
		return target{channel: run.Origin.Channel, thread: run.Origin.Root}, true
	}
	if t.channel = b.Channel; isChat(run) {
		t.chat = &run
	}
	return t, t.channel != ""
}

func (t target) place() card.Place {
	switch {
	case t.further:
		return card.PlaceEscalation
	case t.direct != "":
		return card.PlaceDirect
	}
	return card.PlaceThread
}

// has reports whether the message belongs to this target.
func (t target) has(a Anchor) bool {
	return t.further == a.Further && t.direct == a.Direct && (!t.further || t.channel == a.Channel)
}

// mayBeOver reports whether the message may have been posted for a delegate who stands in
// for nobody now. Then it is compared with what is shown now, although the batch has not
// changed.
func (t target) mayBeOver(b approvals.Batch) bool {
	return t.direct != "" && t.left && b.Asked().Delegation
}

func (t target) placement() Placement {
	return Placement{Place: t.place(), Channel: t.channel, Direct: t.direct}
}

// wants are the parts of the batch that belong to the target.
func (t target) wants(b approvals.Batch) []int {
	if t.direct != "" {
		return slices.Sorted(slices.Values(t.parts))
	}
	all := make([]int, card.Parts(b))
	for i := range all {
		all[i] = i
	}
	return all
}
