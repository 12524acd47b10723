package delivery

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// maxRecipients is how many people get a notice each. If there are more, their groups
// are mentioned in the thread.
const maxRecipients = 20

// A notice is what one person must learn about a batch.
type notice struct {
	waits   []waitsFor
	cleared []clearedBy
	stuck   []stuck
}

// waitsFor is a call that waits for the person, by themselves or as the delegate of
// others.
type waitsFor struct {
	call   int
	added  bool // an escalation has added them
	myself bool
	places []approvals.Absence
}

// clearedBy is a call whose arguments someone changed after the person decided.
type clearedBy struct {
	call int
	by   approvals.Amendment
}

// again has the audience worked out again at this time, if not earlier.
func (a *audience) again(at time.Time) {
	if a.until.IsZero() || at.Before(a.until) {
		a.until = at
	}
}

// news is what people must learn about a batch.
type news struct {
	notices map[approvals.UserID]notice
	groups  map[int][]approvals.From // by call: whom to mention where too many would get a notice
}

func (n news) people() []approvals.UserID { return slices.Sorted(maps.Keys(n.notices)) }

// An audience is the people whom a call waits for. Those who are in the conversation
// and need no message of their own are not in who.
type audience struct {
	call  int
	who   map[approvals.UserID]waitsFor
	from  []approvals.From
	many  bool // there are more than maxRecipients, so who is incomplete
	here  bool // one of them is in the conversation
	lost  bool // a group could not be looked up, so there may be others
	few   bool // they are too few to approve it, also after its escalations
	deny  bool // they are too few because some of them denied it
	maybe bool // whether they are too few is only known later
	muted bool // someone gets no message because the rule sends none

	until time.Time // when to work it out again, as when an absence ends in which a delegate is asked instead; zero: never
}

// news works out who must learn what. It depends only on what is stored, on the
// members of groups and on who is away now.
func (n *Notices) news(ctx context.Context, b approvals.Batch, from, to marks) (news, error) {
	all := news{notices: map[approvals.UserID]notice{}, groups: map[int][]approvals.From{}}
	var audiences []audience
	together := map[approvals.UserID]bool{}
	for i, a := range b.Approvals {
		rungs, amended := from.news(to, a, i)
		all.clear(i, a, amended)
		if i >= len(from.Rungs) || len(amended) > 0 {
			if err := n.addStuck(ctx, all, b, i); err != nil {
				return news{}, err
			}
		}
		if len(rungs) == 0 || !a.OpenAt(n.Now()) {
			continue
		}
		who, err := n.Audience(ctx, b, i, rungs, attendance{})
		if err != nil {
			return news{}, err
		}
		audiences = append(audiences, who)
		if !who.many {
			for u := range who.who {
				together[u] = true
			}
		}
	}
	for _, who := range audiences {
		if who.many || len(together) > maxRecipients {
			all.groups[who.call] = who.from
			continue
		}
		for user, w := range who.who {
			l := all.notices[user]
			l.waits = append(l.waits, w)
			all.notices[user] = l
		}
	}
	return all, nil
}

// clear adds the people whose decisions the amendments have cleared, unless they have
// decided again or changed the arguments themselves.
func (n news) clear(i int, a approvals.Approval, amended []approvals.Amendment) {
	last := map[approvals.UserID]approvals.Amendment{}
	for _, m := range amended {
		for _, user := range m.Cleared {
			last[user] = m
		}
	}
	for user, m := range last {
		if _, again := a.DecisionBy(user); again || user == m.By.User {
			continue
		}
		l := n.notices[user]
		l.cleared = append(l.cleared, clearedBy{call: i, by: m})
		n.notices[user] = l
	}
}

// Audience returns the people who can still help to decide the call and must learn of
// the rungs: for a reminder everyone whom the call asks, for an escalation those whom
// it has added. It leaves out the people who are in the conversation.
func (n *Notices) Audience(ctx context.Context, b approvals.Batch, i int, rungs []approvals.Rung, in attendance) (audience, error) {
	a := b.Approvals[i]
	found := &audience{call: i, who: map[approvals.UserID]waitsFor{}}
	var added approvals.From
	for _, r := range rungs {
		switch r.Kind {
		case approvals.Remind:
			found.from = append(found.from, fromOf(a)...)
		case approvals.Escalate:
			added.Users, added.Groups = append(added.Users, r.Add.Users...), append(added.Groups, r.Add.Groups...)
			found.from = append(found.from, r.Add)
		}
	}
	for k := range found.from {
		found.from[k] = b.Unbarred(a, found.from[k])
	}
	one := b
	one.Approvals = []approvals.Approval{a}
	what := directory.SoughtFor(one)
	rosters, err := n.rosters(ctx, what.Groups)
	if err != nil {
		return audience{}, err
	}
	found.lost = len(rosters) < len(what.Groups)
	var as approvals.Absences
	if what.Others {
		if as, _, err = n.People.Absences().Load(ctx); err != nil {
			return audience{}, err
		}
	}
	asked := recipients{Notices: n, batch: b, call: a, what: what, in: rosters, away: as, conversation: in}
	for _, user := range rosters.Members(found.from) {
		if !b.Helps(a, asked.principal(user)) {
			continue
		}
		if err := asked.ask(ctx, found, user, added); err != nil {
			return audience{}, err
		}
		if found.many = len(found.who) > maxRecipients; found.many && (found.here || len(in.who) == 0) {
			break
		}
	}
	found.few, found.deny, err = n.few(ctx, b, a)
	if later, ok := errors.AsType[*slackapi.LaterError](err); ok {
		found.again(n.Now().Add(later.After))
		found.maybe, err = true, nil
	}
	return *found, err
}

// rosters looks the groups up. A group that cannot be looked up for good is left out;
// an error that may pass is returned.
func (n *Notices) rosters(ctx context.Context, groups []approvals.GroupID) (directory.Rosters, error) {
	all := directory.Rosters{}
	for _, g := range groups {
		r, err := n.People.Roster(ctx, string(g))
		if later, ok := errors.AsType[*slackapi.LaterError](err); ok {
			return nil, later
		}
		if err == nil {
			all[g] = r
		}
	}
	return all, nil
}

// recipients decides who is asked about a call.
type recipients struct {
	*Notices
	batch approvals.Batch
	call  approvals.Approval
	what  directory.Sought
	in    directory.Rosters
	away  approvals.Absences

	conversation attendance
}

func (r recipients) principal(user approvals.UserID) approvals.Principal {
	p := approvals.Principal{User: user}
	p.Groups, p.GroupsAt = r.in.With(string(user), r.Now())
	return p
}

// ask adds the person to the audience, or the delegate who stands in for them.
func (r recipients) ask(ctx context.Context, to *audience, user approvals.UserID, added approvals.From) error {
	if stand, absence, ok := r.standIn(user); ok {
		if _, asked := to.who[stand]; !asked && !to.many && !r.conversation.skips(stand) {
			if able, err := r.counts(ctx, r.what, user); err != nil || !able {
				return err // nobody can approve for who cannot take part
			}
		}
		adds, counts, err := r.admit(ctx, to, stand, directory.Sought{}, absence.Via...)
		if err != nil {
			return err
		}
		if adds {
			w := to.who[stand]
			w.call, w.places = to.call, append(w.places, absence.Absence)
			to.who[stand] = w
		}
		if counts {
			to.again(absence.Until)
			return nil
		}
	}
	adds, _, err := r.admit(ctx, to, user, r.what)
	if err != nil || !adds {
		return err
	}
	w := to.who[user]
	w.call, w.myself, w.added = to.call, true, slices.Contains(r.in.Members([]approvals.From{added}), user)
	to.who[user] = w
	return nil
}

// admit reports whether the person, and everyone who passed a delegation on to them, can
// take part, and whether they are to be added to the audience. Whether those can take part
// who need no message is looked up only as far as the audience depends on it.
func (r recipients) admit(ctx context.Context, to *audience, user approvals.UserID, what directory.Sought, via ...approvals.UserID) (adds, counts bool, err error) {
	here := r.conversation.has(user)
	skip := r.conversation.skips(user) || to.many
	if skip && (to.here || (!here && (to.many || to.muted))) {
		return false, true, nil
	}
	if counts, err = r.counts(ctx, what, append(slices.Clip(via), user)...); err != nil || !counts {
		return false, counts, err
	}
	to.here = to.here || here
	to.muted = to.muted || r.conversation.direct == approvals.DirectNobody
	return !skip, true, nil
}

// counts reports whether the people can take part. It returns an error only if that may be
// known in a moment.
func (r recipients) counts(ctx context.Context, what directory.Sought, users ...approvals.UserID) (bool, error) {
	for _, user := range users {
		_, err := r.People.Admitted(ctx, string(user), "", what)
		if later, ok := errors.AsType[*slackapi.LaterError](err); ok {
			return false, later
		}
		if err != nil {
			return false, nil //nolint:nilerr // that is known: they cannot
		}
	}
	return true, nil
}

// standIn returns who is asked instead of a person who is away, if they can decide in
// their place: the delegate, or the delegate's own delegate if the first is away too.
func (r recipients) standIn(user approvals.UserID) (approvals.UserID, approvals.Delegation, bool) {
	at := r.Now()
	a, away := r.away.Of(user, at)
	if !away || a.Delegate == "" {
		return "", approvals.Delegation{}, false
	}
	for range approvals.MaxHops {
		next, too := r.away.Of(a.Delegate, at)
		if !too || next.Delegate == "" {
			break
		}
		a = next
	}
	for _, absence := range r.away.DelegationsTo(a.Delegate, at) {
		if slices.ContainsFunc(absence.Via, func(u approvals.UserID) bool { return r.batch.Barred(r.call, u) }) {
			continue // it does not count, though the delegate may help by themselves
		}
		absent := approvals.Absent{User: user, Groups: r.principal(user).Groups, Until: absence.Until, Via: absence.Via}
		p := approvals.Principal{User: a.Delegate, GroupsAt: at, For: []approvals.Absent{absent}}
		if absence.User == user && r.batch.Helps(r.call, p) {
			return a.Delegate, absence, true
		}
	}
	return "", approvals.Delegation{}, false
}
