package slackui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// lists knows which open batches concern whom, and what a person decided last.
type lists interface {
	// Inbox returns a page of the batches on any of these lists, each once, the
	// oldest first, and where the next page begins, which is empty at the end.
	Inbox(ctx context.Context, keys []approvals.ListKey, after approvals.Cursor, limit int) ([]approvals.Batch, approvals.Cursor, error)
	// Decided returns the batches with a decision of the person, the last first.
	Decided(ctx context.Context, user approvals.UserID, limit int) ([]approvals.Batch, error)
}

// noLists is what there is to show without lists.
type noLists struct{}

func (noLists) Inbox(context.Context, []approvals.ListKey, approvals.Cursor, int) ([]approvals.Batch, approvals.Cursor, error) {
	return nil, "", nil
}

func (noLists) Decided(context.Context, approvals.UserID, int) ([]approvals.Batch, error) {
	return nil, nil
}

const (
	// windowSize is how many listed batches are looked at together: they are
	// put in the order of urgency, and what is behind them is the next window.
	windowSize = 200
	// emptyWindows is how many windows without anything for the person are
	// passed over at once.
	emptyWindows = 5
	// leisure is how old a membership may be where it decides only what is
	// shown. Changes that Slack tells of are known sooner.
	leisure = 10 * time.Minute
	// mostGroups bounds how many groups are remembered.
	mostGroups = 500
	// lookups is how many groups are asked for at the same time.
	lookups = 8
)

// A seeker is a person, with all that decides what waits for them.
type seeker struct {
	approvals.Principal
	keys   []approvals.ListKey
	unsure bool // Slack did not say of every group who is in it
	away   approvals.Absences
}

// seeker looks up in which groups that batches have ever named the person is,
// and for whom they stand in. What Slack does not say is left out, and said so:
// it is for showing, not for signing.
func (d *directory) seeker(ctx context.Context, user, team string) (seeker, error) {
	who := seeker{Principal: approvals.Principal{User: approvals.UserID(user), GroupsAt: d.now()}}
	who.keys = []approvals.ListKey{approvals.WaitsForUser(who.User)}
	asking, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	member, err := d.admitted(asking, user, team, sought{named: []approvals.UserID{who.User}})
	if err != nil {
		return seeker{}, err
	}
	if !member {
		return who, nil // named by id, or nothing
	}
	groups, err := d.knownGroups(ctx)
	if err != nil {
		return seeker{}, err
	}
	in, sure := d.atLeisure(asking, groups)
	who.unsure = !sure
	who.Groups, who.GroupsAt = in.with(user, who.GroupsAt)
	if who.away, _, err = d.absences(ctx); err != nil {
		return seeker{}, err
	}
	for _, a := range who.away.StandsFor(who.User, d.now()) {
		theirs, _ := in.with(string(a.User), d.now())
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

// unknown is the seeker of somebody of whom Slack does not say who they are: in
// no group, so that only what names them by id is theirs.
func (d *directory) unknown(ctx context.Context, user approvals.UserID) seeker {
	away, _, _ := d.absences(ctx) // not known either
	return seeker{
		Principal: approvals.Principal{User: user, GroupsAt: d.now()}, keys: []approvals.ListKey{approvals.WaitsForUser(user)},
		unsure: true, away: away,
	}
}

// atLeisure looks groups up without hurry; sure is whether all answered.
func (d *directory) atLeisure(ctx context.Context, groups []approvals.GroupID) (in rosters, sure bool) {
	slow := *d
	slow.leisurely = true
	in, sure = rosters{}, true
	var mu sync.Mutex
	var wg sync.WaitGroup
	free := make(chan struct{}, lookups)
	for _, g := range groups {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			r, err := slow.roster(ctx, string(g))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				sure = sure && permanent(err)
				return
			}
			in[g] = r
		})
	}
	wg.Wait()
	return in, sure
}

// permanent reports whether asking again would not help: the group is gone.
func permanent(err error) bool {
	return hasCode(err, "no_such_subteam", "subteam_disabled", "channel_not_found")
}

// groupsSeen is the memo of the groups that batches have named, the newest
// last. Slack has no answer to "in which groups is this person?".
type groupsSeen struct {
	Groups []approvals.GroupID `json:"groups"`
}

func (d *directory) groupsLedger() (l ledger[groupsSeen], id string) {
	return ledger[groupsSeen]{memos: d.memos, surface: "groups", now: d.now}, d.key("groups", d.team)
}

func (d *directory) knownGroups(ctx context.Context) ([]approvals.GroupID, error) {
	l, id := d.groupsLedger()
	n, _, err := l.load(ctx, id)
	return n.Body.Groups, err
}

// learn remembers the groups that the batch names.
func (d *directory) learn(ctx context.Context, b approvals.Batch) error {
	known, err := d.knownGroups(ctx)
	if err != nil {
		return err
	}
	fresh := slices.DeleteFunc(groupsOf(b), func(g approvals.GroupID) bool {
		return !idForm.MatchString(string(g)) || slices.Contains(known, g)
	})
	if len(fresh) == 0 {
		return nil
	}
	l, id := d.groupsLedger()
	return l.edit(ctx, id, func(s *groupsSeen) {
		for _, g := range fresh {
			if !slices.Contains(s.Groups, g) {
				s.Groups = append(s.Groups, g)
			}
		}
		s.Groups = s.Groups[max(0, len(s.Groups)-mostGroups):]
	})
}

// everyFrom is whom the calls of the batch name, open or settled.
func everyFrom(b approvals.Batch) []approvals.From {
	var all []approvals.From
	for _, a := range b.Approvals {
		for _, q := range slices.Concat(a.Requirement.Quorums, a.Requirement.Vetoes) {
			all = append(all, q.From)
		}
	}
	return all
}

func groupsOf(b approvals.Batch) []approvals.GroupID {
	var all []approvals.GroupID
	for _, f := range everyFrom(b) {
		all = append(all, f.Groups...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// A pile is a batch with those of its calls, by index, that a row is about.
type pile struct {
	batch approvals.Batch
	calls []int
}

// helpful are the calls of the batch that the person can bring further now.
func (w seeker) helpful(b approvals.Batch, now time.Time) pile {
	p := pile{batch: b}
	for i, a := range b.Approvals {
		if shown(a, now) == approvals.Pending && b.Helps(a, w.Principal) {
			p.calls = append(p.calls, i)
		}
	}
	return p
}

// deadline is the earliest of those calls, or the zero time.
func (p pile) deadline() time.Time {
	var first time.Time
	for _, i := range p.calls {
		if d := p.batch.Approvals[i].Requirement.Deadline; !d.IsZero() && (first.IsZero() || d.Before(first)) {
			first = d
		}
	}
	return first
}

// urgency orders piles as text: by deadline, then by age, then by part.
func (p pile) urgency() string {
	deadline := int64(1e15) // none, after all others
	if d := p.deadline(); !d.IsZero() {
		deadline = d.UnixMilli()
	}
	part := 0
	if len(p.calls) > 0 {
		part = p.calls[0] / callsPerCard
	}
	return fmt.Sprintf("%016d %016d %s %03d", deadline, max(0, p.batch.OpenedAt.UnixMicro()), p.batch.ID, part)
}

// parts takes the pile apart into one for each card of the batch.
func (p pile) parts() []pile {
	var all []pile
	for _, i := range p.calls {
		if n := len(all); n == 0 || all[n-1].calls[0]/callsPerCard != i/callsPerCard {
			all = append(all, pile{batch: p.batch})
		}
		last := &all[len(all)-1]
		last.calls = append(last.calls, i)
	}
	return all
}

// waits returns a window of what waits for the person, the most urgent first,
// and where the next one begins. It depends on the size of the window, not on
// how much is open.
func waits(ctx context.Context, from lists, who seeker, after approvals.Cursor, now time.Time) ([]pile, approvals.Cursor, error) {
	var found []pile
	for range emptyWindows {
		batches, next, err := from.Inbox(ctx, who.keys, after, windowSize)
		if err != nil {
			return nil, "", fmt.Errorf("read an inbox: %w", err)
		}
		for _, b := range batches {
			if p := who.helpful(b, now); len(p.calls) > 0 {
				found = append(found, p)
			}
		}
		if after = next; next == "" || len(found) > 0 {
			break
		}
	}
	slices.SortFunc(found, func(a, b pile) int { return cmp.Compare(a.urgency(), b.urgency()) })
	return found, after, nil
}

func (p pile) reviewing() reviewing {
	return reviewing{batch: p.batch.ID, part: p.calls[0] / callsPerCard}
}

// errMayNotLook is somebody who has nothing to do with a batch.
var errMayNotLook = errors.New("may not read it")

// mayLook refuses those who may not read the arguments of the batch: everybody
// but those who can sign or stop a call of it, or did, whoever asked for it,
// and the members of the channels it is shown in. Who these are is asked now; a
// question that is not answered lets nobody in.
func (d *directory) mayLook(ctx context.Context, user, team string, b approvals.Batch) error {
	me := approvals.UserID(user)
	named := slices.Collect(func(yield func(approvals.UserID) bool) {
		for _, f := range everyFrom(b) {
			for _, u := range f.Users {
				if !yield(u) {
					return
				}
			}
		}
	})
	asking, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	member, err := d.admitted(asking, user, team, sought{named: named})
	if err != nil {
		return err
	}
	if _, decided := b.Deciders()[me]; decided || b.Requester == me || slices.Contains(named, me) {
		return nil
	}
	if !member {
		return errMayNotLook
	}
	people := []approvals.UserID{me}
	var unanswered error
	if as, _, err := d.absences(ctx); err == nil {
		for _, a := range as.StandsFor(me, d.now()) {
			people = append(people, a.User)
		}
	} else {
		unanswered = err
	}
	for _, u := range people {
		if u != me && slices.Contains(named, u) && delegates(b) {
			return nil
		}
	}
	groups := groupsOf(b)
	for _, channel := range append(b.Channels(), b.Channel) {
		groups = append(groups, approvals.GroupID(channel))
	}
	for _, g := range groups {
		if !idForm.MatchString(string(g)) || strings.HasPrefix(string(g), "D") {
			continue
		}
		r, err := d.roster(asking, string(g))
		if err != nil {
			unanswered = errors.Join(unanswered, err)
			continue
		}
		if slices.Contains(r.Users, user) {
			return nil
		}
		for _, u := range people[1:] {
			if delegates(b) && slices.Contains(r.Users, string(u)) && slices.Contains(groupsOf(b), g) {
				return nil
			}
		}
	}
	if unanswered != nil {
		return unanswered
	}
	return errMayNotLook
}

// delegates reports whether somebody may sign a call of the batch in the place
// of another.
func delegates(b approvals.Batch) bool {
	return slices.ContainsFunc(b.Approvals, func(a approvals.Approval) bool { return a.Requirement.Delegation })
}
