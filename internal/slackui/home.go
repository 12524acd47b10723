package slackui

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

const (
	// homeKept is for how long after somebody last opened their Home it is kept
	// up to date by itself.
	homeKept = 7 * 24 * time.Hour
	// homePause is the least time between two drawings of a Home that nobody
	// asked for.
	homePause = 2 * time.Second
	// skew is how far the clocks of two replicas may be apart.
	skew = time.Second
	// mostHomes is how many Homes are kept up to date; the others are drawn
	// when they are opened.
	mostHomes = 2000
	// noteEvery is how often it is noted that somebody still opens their Home.
	noteEvery = time.Hour
	// decidedShown is how many batches are looked at for what a person decided.
	decidedShown = 50
)

// Homes draws the Home tabs of those who open them. Like [Cards] it is a
// reconciler that holds nothing: it is told which batch has changed, and draws
// the Home of everybody whom it concerns and who has opened theirs in the last
// week. The work is derived from the batch's own due entry, which goes only
// when all of them are drawn, so a process that is killed loses nothing.
type Homes struct {
	desk   deliveryDesk
	lists  lists
	api    *api
	memos  memos
	tools  directoryTools // may be nil
	people *directory
	now    func() time.Time
	log    *slog.Logger

	several bool // whether several calls can be approved together
}

// visitors is the memo of who has opened their Home, and when.
type visitors struct {
	Opened map[approvals.UserID]time.Time `json:"opened,omitempty"`
}

// homePage is the memo of one Home: which drawing of it Slack has, which pages
// it shows, and when what it shows was begun to be read.
type homePage struct {
	Hash  string    `json:"hash,omitempty"`
	Pages pages     `json:"pages,omitzero"`
	Begun time.Time `json:"begun,omitzero"`
}

// stirred is the memo of a batch: since when its last change is known here, and
// whom any of its changes concerned.
type stirred struct {
	Version int64              `json:"version"`
	Seen    time.Time          `json:"seen"`
	People  []approvals.UserID `json:"people,omitempty"`
	Done    []approvals.UserID `json:"done,omitempty"`  // whose Home shows it
	Drawn   int64              `json:"drawn,omitempty"` // the version that all of them show
}

func (h *Homes) visitors() (l ledger[visitors], id string) {
	return ledger[visitors]{memos: h.memos, surface: "visitors", now: h.now}, h.people.key("homes", h.people.team)
}

func (h *Homes) page(user approvals.UserID) (l ledger[homePage], id string) {
	return ledger[homePage]{memos: h.memos, surface: "home", now: h.now}, h.people.key("home", string(user))
}

// Reconcile draws the Homes that the batch concerns. It is what the due index
// calls. A [*LaterError] says when to look again; any other error is a failure.
func (h *Homes) Reconcile(ctx context.Context, id string) error {
	l := ledger[stirred]{memos: h.memos, surface: "homes", now: h.now}
	b, err := h.desk.Batch(ctx, approvals.BatchID(id))
	if err != nil {
		return fmt.Errorf("load batch %s: %w", id, err)
	}
	if err := h.people.learn(ctx, b); err != nil {
		return err
	}
	n, version, err := l.load(ctx, id)
	if err != nil {
		return err
	}
	if n.Body.Drawn == b.Version {
		return l.store(ctx, id, n, version, b.Version)
	}
	concerned, err := h.concerned(ctx, b)
	if err != nil {
		return err
	}
	concerned = append(concerned, n.Body.People...) // an edit may have changed whom it asks
	slices.Sort(concerned)
	concerned = slices.Compact(concerned)
	if len(concerned) > 0 && n.Body.Version < b.Version {
		n.Body = stirred{Version: b.Version, Seen: h.now(), People: concerned}
		if err := l.store(ctx, id, n, version, 0); err != nil {
			return err
		}
		version++
	}
	before := len(n.Body.Done)
	if err := h.all(ctx, concerned, &n.Body); err != nil {
		if len(n.Body.Done) > before {
			saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			_ = l.store(saving, id, n, version, 0) // lost, they are drawn once more
		}
		return err
	}
	n.Body.Version, n.Body.Drawn, n.Body.Done = b.Version, b.Version, nil
	return l.store(ctx, id, n, version, b.Version)
}

// all brings these Homes up to date with a change. One that has to wait does not
// keep the others waiting.
func (h *Homes) all(ctx context.Context, people []approvals.UserID, change *stirred) error {
	var later error
	for _, user := range people {
		if slices.Contains(change.Done, user) {
			continue
		}
		l, id := h.page(user)
		n, _, err := l.load(ctx, id)
		if err != nil {
			return err
		}
		if n.Body.Begun.After(change.Seen.Add(skew)) {
			change.Done = append(change.Done, user)
			continue
		}
		if wait := homePause - h.now().Sub(n.Body.Begun); wait > 0 {
			later = &LaterError{After: wait, Err: errBusy}
			continue
		}
		err = h.draw(ctx, user, nil)
		switch {
		case departed(err):
			// Not even the next batch asks for it, until they open it again.
			if err := h.forget(ctx, user); err != nil {
				later = err
				continue
			}
			h.log.InfoContext(ctx, "a Home is no longer drawn", slog.String("user", string(user)), slog.Any("reason", err))
		case hasCode(err, unreachable...), hasCode(err, "not_enabled", "invalid_arguments"):
			h.log.WarnContext(ctx, "a Home cannot be drawn", slog.String("user", string(user)), slog.Any("error", err))
		case err != nil:
			later = err
			continue
		}
		change.Done = append(change.Done, user)
	}
	return later
}

// concerned are those who open their Homes and have to do with the batch: who
// asked, who decided, and who can sign or stop a call of it or stands in for
// somebody who can. Of a group that cannot be looked up everybody is.
func (h *Homes) concerned(ctx context.Context, b approvals.Batch) ([]approvals.UserID, error) {
	l, id := h.visitors()
	n, _, err := l.load(ctx, id)
	if err != nil || len(n.Body.Opened) == 0 {
		return nil, err
	}
	in, sure := h.people.atLeisure(ctx, groupsOf(b))
	var named []approvals.UserID
	for _, f := range everyFrom(b) {
		named = append(named, f.Users...)
	}
	for _, r := range in {
		for _, u := range r.Users {
			named = append(named, approvals.UserID(u))
		}
	}
	var away approvals.Absences
	if delegates(b) {
		if away, _, err = h.people.absences(ctx); err != nil {
			return nil, err
		}
	}
	deciders := b.Deciders()
	var all []approvals.UserID
	for user, at := range n.Body.Opened {
		_, decided := deciders[user]
		switch {
		case h.now().Sub(at) > homeKept:
			continue
		case !sure, decided, b.Requester == user, slices.Contains(named, user),
			slices.ContainsFunc(away.StandsFor(user, h.now()), func(a approvals.Stand) bool { return slices.Contains(named, a.User) }):
			all = append(all, user)
		}
	}
	return all, nil
}

// visited notes that somebody opens their Home, so that it is kept up to date.
func (h *Homes) visited(ctx context.Context, user approvals.UserID) error {
	l, id := h.visitors()
	n, _, err := l.load(ctx, id)
	if err != nil {
		return err
	}
	now := h.now()
	if now.Sub(n.Body.Opened[user]) < noteEvery {
		return nil
	}
	return l.edit(ctx, id, func(v *visitors) {
		if v.Opened == nil {
			v.Opened = map[approvals.UserID]time.Time{}
		}
		v.Opened[user] = now
		for len(v.Opened) > mostHomes || v.dropOld(now) {
			v.dropOldest()
		}
	})
}

// departed reports whether the person can take no part any more.
func departed(err error) bool {
	return errors.Is(err, errGone) || errors.Is(err, errBot) || errors.Is(err, errGuest) || errors.Is(err, errStranger)
}

// forget ends that the Home of somebody is kept up to date.
func (h *Homes) forget(ctx context.Context, user approvals.UserID) error {
	l, id := h.visitors()
	return l.edit(ctx, id, func(v *visitors) { delete(v.Opened, user) })
}

func (v *visitors) oldest() (user approvals.UserID, at time.Time) {
	for u, t := range v.Opened {
		if user == "" || t.Before(at) {
			user, at = u, t
		}
	}
	return user, at
}

func (v *visitors) dropOldest() {
	user, _ := v.oldest()
	delete(v.Opened, user)
}

func (v *visitors) dropOld(now time.Time) bool {
	user, at := v.oldest()
	return user != "" && now.Sub(at) > homeKept
}

// draw publishes the Home of a person, with these pages or those that it shows.
// Who draws it has claimed it, so nothing older is drawn over it.
func (h *Homes) draw(ctx context.Context, user approvals.UserID, turn *pages) error {
	l, id := h.page(user)
	held, err := l.claim(ctx, id)
	if err != nil {
		return err
	}
	begun := h.now()
	if turn != nil {
		held.body.Pages = *turn
	}
	hash, err := h.publish(ctx, user, held.body, turn != nil)
	if hasCode(err, "hash_conflict") { // what Slack has is not what we remember: read again, and replace it
		begun = h.now()
		held.body.Hash = ""
		hash, err = h.publish(ctx, user, held.body, turn != nil)
	}
	if err != nil {
		return held.abandon(ctx, fmt.Errorf("draw the Home of %s: %w", user, err))
	}
	shown := homePage{Hash: hash, Pages: held.body.Pages, Begun: begun}
	if err := held.save(ctx, func(p *homePage) { *p = shown }); err != nil {
		return err
	}
	return held.release(ctx, 0)
}

func (h *Homes) publish(ctx context.Context, user approvals.UserID, p homePage, awaited bool) (string, error) {
	v, err := h.gather(ctx, user, p.Pages, awaited)
	if err != nil {
		return "", err
	}
	return h.api.publishView(ctx, string(user), p.Hash, HomeView(v))
}

// gather reads what the Home of a person shows. If the person waits for it, it
// does without what Slack does not say.
func (h *Homes) gather(ctx context.Context, user approvals.UserID, at pages, awaited bool) (Home, error) {
	now := h.now()
	v := Home{Pages: at, Now: now, Several: h.several}
	if h.tools != nil {
		v.Tool = h.tools.ToolSpec
	}
	who, err := h.people.seeker(ctx, string(user), "")
	if errors.Is(err, errLookup) && awaited {
		who, err = h.people.unknown(ctx, user), nil
	}
	if err != nil {
		return Home{}, err
	}
	v.Person, v.Unsure = who.User, who.unsure
	piles, more, err := waits(ctx, h.lists, who, at.Waiting.Cursor, now)
	if err != nil {
		return Home{}, err
	}
	v.Waiting = newShelf(piles, at.Waiting.Offset, waitingRows)
	v.Waiting.Next = more
	asked, _, err := h.lists.Inbox(ctx, []approvals.ListKey{approvals.AskedBy(who.User)}, "", windowSize)
	if err != nil {
		return Home{}, fmt.Errorf("read what %s asked for: %w", user, err)
	}
	decided, err := h.lists.Decided(ctx, who.User, decidedShown)
	if err != nil {
		return Home{}, fmt.Errorf("read what %s decided: %w", user, err)
	}
	others, done := who.apart(asked, decided, now)
	v.Others, v.Decided = newShelf(others, at.Others, otherRows), newShelf(done, at.Decided, decidedRows)
	v.Away, v.IsAway = who.away.Of(who.User, now)
	v.StandsFor = who.away.StandsFor(who.User, now)
	return v, nil
}

// apart is what the person waits for, because they asked for it or have signed
// it, and what they decided that is over.
func (w seeker) apart(asked, decided []approvals.Batch, now time.Time) (others, done []pile) {
	seen := map[approvals.BatchID]bool{}
	for _, b := range slices.Concat(asked, decided) {
		if seen[b.ID] {
			continue
		}
		seen[b.ID] = true
		wait, over := pile{batch: b}, pile{batch: b}
		for i, a := range b.Approvals {
			signed := slices.ContainsFunc(a.Decisions, func(d approvals.Decision) bool { return d.By.User == w.User })
			switch open := shown(a, now) == approvals.Pending; {
			case open && (signed || b.Requester == w.User) && !b.Helps(a, w.Principal):
				wait.calls = append(wait.calls, i)
			case !open && signed:
				over.calls = append(over.calls, i)
			}
		}
		if len(wait.calls) > 0 {
			others = append(others, wait)
		}
		if len(over.calls) > 0 {
			done = append(done, over)
		}
	}
	slices.SortStableFunc(others, func(a, b pile) int { return a.batch.OpenedAt.Compare(b.batch.OpenedAt) })
	slices.SortStableFunc(done, func(a, b pile) int { return b.decidedBy(w.User).Compare(a.decidedBy(w.User)) })
	return others, done
}

// decidedBy is when the person decided the last of these calls.
func (p pile) decidedBy(user approvals.UserID) time.Time {
	var last time.Time
	for _, i := range p.calls {
		for _, d := range p.batch.Approvals[i].Decisions {
			if d.By.User == user && d.At.After(last) {
				last = d.At
			}
		}
	}
	return last
}
