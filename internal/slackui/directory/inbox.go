package directory

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// NoLists stands for lists where none are kept.
type NoLists struct{}

// Inbox is empty.
func (NoLists) Inbox(context.Context, []approvals.ListKey, approvals.Cursor, int) ([]approvals.Batch, approvals.Cursor, error) {
	return nil, "", nil
}

// Lengths are 0.
func (NoLists) Lengths(_ context.Context, keys []approvals.ListKey) ([]int, error) {
	return make([]int, len(keys)), nil
}

// Decided is empty.
func (NoLists) Decided(context.Context, approvals.UserID, int) ([]approvals.Batch, error) {
	return nil, nil
}

const (
	// WindowSize is how many listed batches are read together. Within a window
	// they are in the order of urgency.
	WindowSize = 200
	// emptyWindows is how many windows without anything for the person are
	// skipped in one request.
	emptyWindows = 5
	// displayAge is how old a membership may be where it only decides what is
	// listed. An event of Slack about a change drops it sooner.
	displayAge = 10 * time.Minute
	// lookups is how many groups are asked for at the same time.
	lookups = 8
)

// A Viewer is a person with everything that decides what waits for them.
type Viewer struct {
	approvals.Principal
	keys   []approvals.ListKey
	Unsure bool // the members of some groups are not known
	Away   approvals.Absences
}

// Viewer looks up the person's groups, of all that batches have ever named, and for
// whom they stand in. A group that cannot be looked up is left out and noted in
// Unsure: a Viewer decides what is listed, never whether someone may approve.
func (d *Directory) Viewer(ctx context.Context, user, team string) (Viewer, error) {
	who := Viewer{Principal: approvals.Principal{User: approvals.UserID(user), GroupsAt: d.Now()}}
	who.keys = []approvals.ListKey{approvals.WaitsForUser(who.User)}
	asking, cancel := context.WithTimeout(ctx, slackapi.LookupTime)
	defer cancel()
	member, err := d.Admitted(asking, user, team, Sought{Named: []approvals.UserID{who.User}})
	if err != nil {
		return Viewer{}, err
	}
	if !member {
		return who, nil // only rules that name them by id concern them
	}
	groups, err := d.Groups().all(ctx)
	if err != nil {
		return Viewer{}, err
	}
	in, sure := d.ForDisplay(asking, groups)
	who.Unsure = !sure
	who.Groups, who.GroupsAt = in.With(user, who.GroupsAt)
	if who.Away, _, err = d.Absences().Load(ctx); err != nil {
		return Viewer{}, err
	}
	slow := *d
	slow.forDisplay = true
	for _, a := range who.Away.DelegationsTo(who.User, d.Now()) {
		counts, theirMember, err := absentCounts(asking, &slow, a)
		who.Unsure = who.Unsure || err != nil
		if !counts {
			continue
		}
		var theirs []approvals.GroupID
		if theirMember {
			theirs, _ = in.With(string(a.User), d.Now())
		}
		who.For = append(who.For, approvals.Absent{User: a.User, Groups: theirs, Until: a.Until, Via: a.Via})
		who.keys = append(who.keys, approvals.WaitsForUser(a.User))
		for _, g := range theirs {
			who.keys = append(who.keys, approvals.WaitsForGroup(g))
		}
	}
	for _, g := range who.Groups {
		who.keys = append(who.keys, approvals.WaitsForGroup(g))
	}
	slices.Sort(who.keys)
	who.keys = slices.Compact(who.keys)
	return who, nil
}

// Unknown is the Viewer of a person whose account cannot be looked up. They are in
// no group, so that only rules that name them by id concern them.
func (d *Directory) Unknown(ctx context.Context, user approvals.UserID) Viewer {
	away, _, _ := d.Absences().Load(ctx) // if they cannot be read, none are shown
	return Viewer{
		Principal: approvals.Principal{User: user, GroupsAt: d.Now()}, keys: []approvals.ListKey{approvals.WaitsForUser(user)},
		Unsure: true, Away: away,
	}
}

// ForDisplay looks groups up, where answers up to [displayAge] will do. sure is
// false if a group could not be looked up and may be known in a moment.
func (d *Directory) ForDisplay(ctx context.Context, groups []approvals.GroupID) (in Rosters, sure bool) {
	slow := *d
	slow.forDisplay = true
	in, sure = Rosters{}, true
	var mu sync.Mutex
	var wg sync.WaitGroup
	free := make(chan struct{}, lookups)
	for _, g := range groups {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			r, err := slow.Roster(ctx, string(g))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				lost, failed := errors.AsType[*LookupError](err)
				sure = sure && failed && lost.Permanent()
				return
			}
			in[g] = r
		})
	}
	wg.Wait()
	return in, sure
}

// Out reports whether it is known that the person cannot take part, where an answer up to
// [displayAge] will do.
func Out(ctx context.Context, d *Directory, user approvals.UserID, what Sought) bool {
	slow := *d
	slow.forDisplay = true
	_, err := slow.Admitted(ctx, string(user), "", what)
	return err != nil && !errors.Is(err, ErrLookup)
}

// Helpful returns the calls of the batch that the person can help to settle now.
func (w Viewer) Helpful(b approvals.Batch, now time.Time) card.OpenCalls {
	p := card.OpenCalls{Batch: b}
	for i, a := range b.Approvals {
		if a.OpenAt(now) && b.Helps(a, w.Principal) {
			p.Calls = append(p.Calls, i)
		}
	}
	return p
}

// Waits returns a window of what waits for the person, the most urgent first, and
// where the next window begins. Its cost depends on the size of the window, not on
// how many batches are open.
func Waits(ctx context.Context, from Lists, who Viewer, after approvals.Cursor, now time.Time) ([]card.OpenCalls, approvals.Cursor, error) {
	var found []card.OpenCalls
	for range emptyWindows {
		batches, next, err := from.Inbox(ctx, who.keys, after, WindowSize)
		if err != nil {
			return nil, "", err
		}
		for _, b := range batches {
			if p := who.Helpful(b, now); len(p.Calls) > 0 {
				found = append(found, p)
			}
		}
		if after = next; next == "" || len(found) > 0 {
			break
		}
	}
	slices.SortFunc(found, func(a, b card.OpenCalls) int { return cmp.Compare(a.Urgency(), b.Urgency()) })
	return found, after, nil
}

// Concerning calls f with each open batch that names the person, one of their groups, or
// somebody for whom they stand in, until f fails.
func Concerning(ctx context.Context, from Lists, who Viewer, f func(b approvals.Batch) error) error {
	var after approvals.Cursor
	for {
		batches, next, err := from.Inbox(ctx, who.keys, after, WindowSize)
		if err != nil {
			return err
		}
		for _, b := range batches {
			if err := f(b); err != nil {
				return err
			}
		}
		if after = next; after == "" {
			return nil
		}
	}
}
