package ref

import (
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// A Filter selects open calls. Its parts are combined with and; of several ids,
// tools, agents, people or threads any one is enough. The zero filter selects no
// call. It carries no authority: whether a person may approve is judged for each
// call that it finds.
type Filter struct {
	All     bool               `json:"all,omitempty"`
	Channel string             `json:"ch,omitempty"` // asked or shown there
	IDs     []string           `json:"id,omitempty"` // beginnings of digests
	Tools   []string           `json:"tool,omitempty"`
	Agents  []string           `json:"agent,omitempty"`
	From    []approvals.UserID `json:"from,omitempty"`
	Threads []string           `json:"thread,omitempty"`
	Older   time.Duration      `json:"older,omitempty"`
	Newer   time.Duration      `json:"newer,omitempty"`

	// Messages are those whose links stand for Threads. One that shows a request which
	// has no thread in Slack stands for the thread of that request: who collects calls
	// adds it to Threads.
	Messages []Message `json:"message,omitempty"`

	// Batch selects calls of one request only, and Drawn those that had these
	// digests when the button was drawn.
	Batch approvals.BatchID  `json:"batch,omitempty"`
	Drawn []approvals.Digest `json:"drawn,omitempty"`
}

// A Message of Slack is the first of its thread, whether or not it was answered.
type Message struct {
	Channel string `json:"ch"`
	TS      string `json:"ts"`
}

// Empty reports whether the filter selects no call.
func (f Filter) Empty() bool {
	return !f.All && f.Channel == "" && f.Batch == "" && f.Older == 0 && f.Newer == 0 &&
		len(f.IDs)+len(f.Tools)+len(f.Agents)+len(f.From)+len(f.Threads) == 0
}

// Matches reports whether the filter selects this call of the batch.
func (f Filter) Matches(b approvals.Batch, a approvals.Approval, now time.Time) bool {
	age := now.Sub(b.OpenedAt)
	switch {
	case f.Empty(),
		f.Channel != "" && !ShownIn(b, a, f.Channel),
		len(f.IDs) > 0 && !slices.ContainsFunc(f.IDs, func(id string) bool { return strings.HasPrefix(a.Call.Digest.String(), id) }),
		len(f.Tools) > 0 && !slices.ContainsFunc(f.Tools, func(p string) bool { return glob(p, a.Call.Name) }),
		len(f.Agents) > 0 && !slices.ContainsFunc(f.Agents, func(p string) bool { return glob(p, b.Agent) }),
		len(f.From) > 0 && !slices.Contains(f.From, b.Requester),
		len(f.Threads) > 0 && !slices.Contains(f.Threads, b.Thread),
		f.Older > 0 && age < f.Older,
		f.Newer > 0 && age > f.Newer,
		f.Batch != "" && f.Batch != b.ID,
		len(f.Drawn) > 0 && !f.hasDrawn(a):
		return false
	}
	return true
}

// hasDrawn reports whether the call was drawn with its current arguments, or with
// those before a change.
func (f Filter) hasDrawn(a approvals.Approval) bool {
	return slices.Contains(f.Drawn, a.Call.Digest) ||
		slices.ContainsFunc(a.Amendments, func(m approvals.Amendment) bool { return slices.Contains(f.Drawn, m.From) })
}

// ShownIn reports whether the call was asked for in the channel, or is shown
// there since an escalation.
func ShownIn(b approvals.Batch, a approvals.Approval, channel string) bool {
	b.Approvals = []approvals.Approval{a}
	return channel != "" && (b.Channel == channel || slices.Contains(b.Channels(), channel))
}

// glob matches a name against a pattern in which * stands for any characters
// and ? for one.
func glob(pattern, name string) bool {
	p, n := []rune(pattern), []rune(name)
	star, from := -1, 0
	i, j := 0, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, from = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i, j = i+1, j+1
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
