package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

const (
	// homeKept is for how long after somebody last opened their Home it is kept
	// up to date by itself.
	homeKept = 7 * 24 * time.Hour
	// HomePause is the least time between two drawings of a Home that nobody
	// asked for.
	HomePause = 2 * time.Second
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
	Desk   Desk
	Lists  directory.Lists
	Api    *slackapi.Client
	Memos  memo.Store
	People *directory.Directory
	Now    func() time.Time
	Log    *slog.Logger

	Several bool // whether several calls can be approved together
}

// visitors is the memo of who has opened their Home, and when.
type visitors struct {
	Opened map[approvals.UserID]time.Time `json:"opened,omitempty"`
}

// homePage is the memo of one Home: which drawing of it Slack has, which pages
// it shows, and when what it shows was begun to be read.
type homePage struct {
	Hash  string     `json:"hash,omitempty"`
	Pages card.Pages `json:"pages,omitzero"`
	Begun time.Time  `json:"begun,omitzero"`
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

func (h *Homes) visitors() (l memo.Notes[visitors], id string) {
	return memo.Notes[visitors]{Memos: h.Memos, Surface: "visitors", Now: h.Now}, h.People.Key("homes", h.People.Team)
}

// Page is the record of a person's Home, and its id.
func (h *Homes) Page(user approvals.UserID) (l memo.Notes[homePage], id string) {
	return memo.Notes[homePage]{Memos: h.Memos, Surface: "home", Now: h.Now}, h.People.Key("home", string(user))
}

// Reconcile draws the Homes that the batch concerns. It is what the due index
// calls. A [*LaterError] says when to look again; any other error is a failure.
func (h *Homes) Reconcile(ctx context.Context, id string) error {
	l := memo.Notes[stirred]{Memos: h.Memos, Surface: "homes", Now: h.Now}
	b, err := h.Desk.Batch(ctx, approvals.BatchID(id))
	if err != nil {
		return fmt.Errorf("load batch %s: %w", id, err)
	}
	if err := h.People.Learn(ctx, b); err != nil {
		return err
	}
	n, version, err := l.Load(ctx, id)
	if err != nil {
		return err
	}
	if n.Body.Drawn == b.Version {
		return l.Store(ctx, id, n, version, b.Version)
	}
	concerned, err := h.concerned(ctx, b)
	if err != nil {
		return err
	}
	concerned = append(concerned, n.Body.People...) // an edit may have changed whom it asks
	slices.Sort(concerned)
	concerned = slices.Compact(concerned)
	if len(concerned) > 0 && n.Body.Version < b.Version {
		n.Body = stirred{Version: b.Version, Seen: h.Now(), People: concerned}
		if err := l.Store(ctx, id, n, version, 0); err != nil {
			return err
		}
		version++
	}
	before := len(n.Body.Done)
	if err := h.all(ctx, concerned, &n.Body); err != nil {
		if len(n.Body.Done) > before {
			saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			_ = l.Store(saving, id, n, version, 0) // lost, they are drawn once more
		}
		return err
	}
	n.Body.Version, n.Body.Drawn, n.Body.Done = b.Version, b.Version, nil
	return l.Store(ctx, id, n, version, b.Version)
}

// all brings these Homes up to date with a change. One that has to wait does not
// keep the others waiting.
func (h *Homes) all(ctx context.Context, people []approvals.UserID, change *stirred) error {
	var later error
	for _, user := range people {
		if slices.Contains(change.Done, user) {
			continue
		}
		l, id := h.Page(user)
		n, _, err := l.Load(ctx, id)
		if err != nil {
			return err
		}
		if n.Body.Begun.After(change.Seen.Add(skew)) {
			change.Done = append(change.Done, user)
			continue
		}
		if wait := HomePause - h.Now().Sub(n.Body.Begun); wait > 0 {
			later = &slackapi.LaterError{After: wait, Err: memo.ErrBusy}
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
			h.Log.InfoContext(ctx, "a Home is no longer drawn", slog.String("user", string(user)), slog.Any("reason", err))
		case slackapi.HasCode(err, slackapi.Unreachable...), slackapi.HasCode(err, "not_enabled", "invalid_arguments"):
			h.Log.WarnContext(ctx, "a Home cannot be drawn", slog.String("user", string(user)), slog.Any("error", err))
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
	n, _, err := l.Load(ctx, id)
	if err != nil || len(n.Body.Opened) == 0 {
		return nil, err
	}
	asked := b.EverAsked()
	in, sure := h.People.ForDisplay(ctx, asked.Groups)
	named := slices.Clone(asked.Users)
	for _, r := range in {
		for _, u := range r.Users {
			named = append(named, approvals.UserID(u))
		}
	}
	var away approvals.Absences
	if asked.Delegation {
		if away, _, err = h.People.Absences(ctx); err != nil {
			return nil, err
		}
	}
	deciders := b.Deciders()
	var all []approvals.UserID
	for user, at := range n.Body.Opened {
		_, decided := deciders[user]
		switch {
		case h.Now().Sub(at) > homeKept:
			continue
		case !sure, decided, b.Requester == user, slices.Contains(named, user),
			slices.ContainsFunc(away.DelegationsTo(user, h.Now()), func(a approvals.Delegation) bool { return slices.Contains(named, a.User) }):
			all = append(all, user)
		}
	}
	return all, nil
}

// Visited notes that somebody opens their Home, so that it is kept up to date.
func (h *Homes) Visited(ctx context.Context, user approvals.UserID) error {
	l, id := h.visitors()
	n, _, err := l.Load(ctx, id)
	if err != nil {
		return err
	}
	now := h.Now()
	if now.Sub(n.Body.Opened[user]) < noteEvery {
		return nil
	}
	return l.Edit(ctx, id, func(v *visitors) {
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
	return errors.Is(err, directory.ErrGone) || errors.Is(err, directory.ErrBot) || errors.Is(err, directory.ErrGuest) || errors.Is(err, directory.ErrStranger)
}

// forget ends that the Home of somebody is kept up to date.
func (h *Homes) forget(ctx context.Context, user approvals.UserID) error {
	l, id := h.visitors()
	return l.Edit(ctx, id, func(v *visitors) { delete(v.Opened, user) })
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
func (h *Homes) draw(ctx context.Context, user approvals.UserID, turn *card.Pages) error {
	l, id := h.Page(user)
	held, err := l.Claim(ctx, id)
	if err != nil {
		return err
	}
	begun := h.Now()
	if turn != nil {
		held.Body.Pages = *turn
	}
	hash, err := h.publish(ctx, user, held.Body, turn != nil)
	if slackapi.HasCode(err, "hash_conflict") { // what Slack has is not what we remember: read again, and replace it
		begun = h.Now()
		held.Body.Hash = ""
		hash, err = h.publish(ctx, user, held.Body, turn != nil)
	}
	if err != nil {
		return held.Abandon(ctx, fmt.Errorf("draw the Home of %s: %w", user, err))
	}
	shown := homePage{Hash: hash, Pages: held.Body.Pages, Begun: begun}
	if err := held.Save(ctx, func(p *homePage) { *p = shown }); err != nil {
		return err
	}
	return held.Release(ctx, 0)
}

func (h *Homes) publish(ctx context.Context, user approvals.UserID, p homePage, awaited bool) (string, error) {
	v, err := h.gather(ctx, user, p.Pages, awaited)
	if err != nil {
		return "", err
	}
	return h.Api.PublishView(ctx, string(user), p.Hash, card.HomeView(v))
}

// gather reads what the Home of a person shows. If the person waits for it, it
// does without what Slack does not say.
func (h *Homes) gather(ctx context.Context, user approvals.UserID, at card.Pages, awaited bool) (card.Home, error) {
	now := h.Now()
	v := card.Home{Pages: at, Now: now, Several: h.Several}
	who, err := h.People.Viewer(ctx, string(user), "")
	if errors.Is(err, directory.ErrLookup) && awaited {
		who, err = h.People.Unknown(ctx, user), nil
	}
	if err != nil {
		return card.Home{}, err
	}
	v.Person, v.Unsure = who.User, who.Unsure
	piles, more, err := directory.Waits(ctx, h.Lists, who, at.Waiting.Cursor, now)
	if err != nil {
		return card.Home{}, err
	}
	v.Waiting = card.NewPage(piles, at.Waiting.Offset, card.WaitingRows)
	v.Waiting.Next = more
	asked, _, err := h.Lists.Inbox(ctx, []approvals.ListKey{approvals.AskedBy(who.User)}, "", directory.WindowSize)
	if err != nil {
		return card.Home{}, fmt.Errorf("read what %s asked for: %w", user, err)
	}
	decided, err := h.Lists.Decided(ctx, who.User, decidedShown)
	if err != nil {
		return card.Home{}, fmt.Errorf("read what %s decided: %w", user, err)
	}
	others, done := who.Involved(asked, decided, now)
	v.Others, v.Decided = card.NewPage(others, at.Others, card.OtherRows), card.NewPage(done, at.Decided, card.DecidedRows)
	if !v.Unsure { // Slack is not answering, and the person has waited for it once
		h.People.Summarize(ctx, directory.Who{User: string(who.User)}, slices.Concat(v.Waiting.Rows(), v.Others.Rows(), v.Decided.Rows()))
	}
	v.Away, v.IsAway = who.Away.Of(who.User, now)
	v.StandsFor = who.Away.DelegationsTo(who.User, now)
	return v, nil
}

// Soon draws a Home for somebody who waits for it.
func (h *Homes) Soon(ctx context.Context, user approvals.UserID, turn card.Pages) error {
	for {
		err := h.draw(ctx, user, &turn)
		later, busy := err.(*slackapi.LaterError) //nolint:errorlint // only our own claim
		if !busy {
			return err
		}
		wait := time.NewTimer(later.After)
		select {
		case <-ctx.Done():
			wait.Stop()
			return err
		case <-wait.C:
		}
	}
}
