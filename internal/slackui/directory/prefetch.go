package directory

import (
	"context"
	"slices"
	"sync"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

const (
	// expectedPlaces is how many channels are remembered, and expectedGroups how many
	// groups of each.
	expectedPlaces = 1000
	expectedGroups = 8
)

// Deciders resolve the people who decide. Most calls of a channel ask the same groups.
// So what the last decision in a channel looked up is read in advance for the next one,
// before its batch is known.
type Deciders struct {
	people *Directory

	mu     sync.Mutex
	latest map[string]Sought // by channel
}

// NewDeciders returns the deciders of the directory.
func NewDeciders(people *Directory) *Deciders {
	return &Deciders{people: people, latest: map[string]Sought{}}
}

// Principal resolves a person who decides in a channel, see [Directory.Principal].
func (d *Deciders) Principal(ctx context.Context, who Who, channel string, asked approvals.Asked) (approvals.Principal, error) {
	what := SoughtBy(asked)
	d.note(channel, what)
	return d.people.Principal(ctx, who.User, who.Team, what)
}

// Prefetch returns a context that reads these documents in one round trip, together
// with what [Deciders.Principal] is likely to need for the person in the channel. A
// wrong guess costs one more round trip, and changes no answer.
func (d *Deciders) Prefetch(ctx context.Context, who Who, channel string, r approvals.Reads) context.Context {
	if blockkit.IDForm.MatchString(who.User) {
		r.Memos = append(r.Memos, approvals.MemoKey{ID: d.people.Key("user", who.User), Surface: "user"})
	}
	d.mu.Lock()
	expected := d.latest[channel]
	d.mu.Unlock()
	for _, group := range expected.Groups {
		r.Memos = append(r.Memos, approvals.MemoKey{ID: d.people.Key("group", string(group)), Surface: "group"})
	}
	if expected.Others {
		r.Memos = append(r.Memos, approvals.MemoKey{ID: d.people.Absences().key(), Surface: AbsencesOf})
	}
	return d.people.Memos.Prefetch(ctx, r)
}

func (d *Deciders) note(channel string, what Sought) {
	what = Sought{Groups: slices.Clone(what.Groups[:min(len(what.Groups), expectedGroups)]), Others: what.Others}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.latest[channel]; !known && len(d.latest) >= expectedPlaces {
		clear(d.latest)
	}
	d.latest[channel] = what
}
