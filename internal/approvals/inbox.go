package approvals

import (
	"slices"
	"time"
)

// A ListKey names a list of open batches: those that wait for a person or for a
// group, or that a person asked for. The batches that wait for a person are the
// union of the lists of the person and of all their groups, filtered by
// [Batch.Helps].
type ListKey string

// Everything lists every batch that people are asked about.
const Everything ListKey = "all"

// Doubtful lists the batches in which people are asked about a call in doubt.
const Doubtful ListKey = "doubt"

// WaitsForUser lists what this person is named in.
func WaitsForUser(u UserID) ListKey { return ListKey("user:" + string(u)) }

// WaitsForGroup lists what this group is named in.
func WaitsForGroup(g GroupID) ListKey { return ListKey("group:" + string(g)) }

// ShownIn lists what was asked for in this channel, or is shown there since an
// escalation.
func ShownIn(channel string) ListKey { return ListKey("channel:" + channel) }

// AskedBy lists what this person asked for.
func AskedBy(u UserID) ListKey { return ListKey("requester:" + string(u)) }

// AwaitsResult lists the batches of this agent in which an external call has no
// result yet.
func AwaitsResult(agent string) ListKey { return ListKey("external:" + agent) }

// A Cursor is a place between two batches of a list. It is opaque; the empty
// one is before the first, and, as an answer, says that there is no more.
type Cursor string

// Concerns returns the lists that the batch is on, sorted, each once: none if no approval
// of it is pending, but for [AwaitsResult]. All quorums and vetoes of its pending
// approvals count, also those that are not asked yet and those of people who have decided.
func (b Batch) Concerns() []ListKey {
	var all []ListKey
	add := func(f From) {
		for _, u := range f.Users {
			if u != "" {
				all = append(all, WaitsForUser(u))
			}
		}
		for _, g := range f.Groups {
			if g != "" {
				all = append(all, WaitsForGroup(g))
			}
		}
	}
	for _, a := range b.Approvals {
		if a.Status != Pending {
			continue
		}
		for _, q := range slices.Concat(a.Requirement.Quorums, a.Requirement.Vetoes) {
			add(q.From)
		}
		for _, r := range a.TakenRungs() {
			if r.Kind == Escalate && r.Channel != "" {
				all = append(all, ShownIn(r.Channel))
			}
		}
		all = append(all, Everything)
		if a.InDoubt() {
			all = append(all, Doubtful)
		}
	}
	if len(all) > 0 && b.Channel != "" {
		all = append(all, ShownIn(b.Channel))
	}
	if len(all) > 0 && b.Requester != "" {
		all = append(all, AskedBy(b.Requester))
	}
	if b.Agent != "" && slices.ContainsFunc(b.Calls, func(c External) bool { return c.Result == nil }) {
		all = append(all, AwaitsResult(b.Agent))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Deciders returns who has a decision in the batch, and when they made the last
// of them. What was taken back or cleared is none.
func (b Batch) Deciders() map[UserID]time.Time {
	out := make(map[UserID]time.Time)
	for _, a := range b.Approvals {
		for _, d := range a.Decisions {
			if last, ok := out[d.By.User]; !ok || d.At.After(last) {
				out[d.By.User] = d.At
			}
		}
	}
	return out
}
