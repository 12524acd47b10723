package home

import (
	"context"
	"errors"
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
	// homeKept is how long a Home is kept up to date after its person last opened
	// it.
	homeKept = 7 * 24 * time.Hour
	// Pause is the least time between two updates of a Home that nobody asked
	// for.
	Pause = 2 * time.Second
	// skew is how far the clocks of two replicas may be apart.
	skew = time.Second
	// mostHomes is how many Homes are kept up to date; the others are drawn
	// when they are opened.
	mostHomes = 2000
	// noteEvery is how often a visit of the same person is recorded.
	noteEvery = time.Hour
	// decidedShown is how many batches are read for what a person decided.
	decidedShown = 50
)

// Homes draws the Home tabs of those who open them. It is a reconciler that keeps
// no state of its own: it gets the id of a batch that has changed, and draws the
// Home of everybody whom the batch concerns and who has opened theirs in the last
// week. The due entry of the batch stays until all of them are drawn, so a process
// that is killed loses nothing.
type Homes struct {
	Desk   Desk
	Lists  directory.Lists
	API    *slackapi.Client
	Memos  memo.Store
	People *directory.Directory
	Now    func() time.Time
	Log    *slog.Logger

	Several bool // whether several calls can be approved together
}

// Desk is what Homes need of [approvals.Desk].
type Desk interface {
	Batch(ctx context.Context, id approvals.BatchID) (approvals.Batch, error)
}

// homePage is the memo of one Home: the hash of what Slack has, which pages it shows,
// and when reading its content began.
type homePage struct {
	Hash  string     `json:"hash,omitempty"`
	Pages card.Pages `json:"pages,omitzero"`
	Begun time.Time  `json:"begun,omitzero"`
}

// batchChange is the memo of a batch: since when its last change is known here, and
// whom its changes concern.
type batchChange struct {
	Version int64              `json:"version"`
	Seen    time.Time          `json:"seen"`
	People  []approvals.UserID `json:"people,omitempty"`
	Done    []approvals.UserID `json:"done,omitempty"`  // whose Home shows it
	Drawn   int64              `json:"drawn,omitempty"` // the version that all of them show
}

// Page is the record of a person's Home, and its id.
func (h *Homes) Page(user approvals.UserID) (l memo.Notes[homePage], id string) {
	return memo.Notes[homePage]{Memos: h.Memos, Surface: "home", Now: h.Now, Derived: h.Log}, h.People.Key("home", string(user))
}

// Reconcile draws the Homes that the batch concerns. The due index calls it. A
// [*slackapi.LaterError] says when to try again; any other error is a failure. That
// another process draws the same Homes is none.
func (h *Homes) Reconcile(ctx context.Context, id string) error {
	err := h.reconcile(ctx, id)
	if errors.Is(err, approvals.ErrConflict) {
		return &slackapi.LaterError{After: time.Second, Err: memo.ErrBusy}
	}
	return err
}

func (h *Homes) reconcile(ctx context.Context, id string) error {
	l := memo.Notes[batchChange]{Memos: h.Memos, Surface: "homes", Now: h.Now, Derived: h.Log}
	opened, visitors := h.visitors()
	ctx = h.Memos.Prefetch(ctx, approvals.Reads{Batches: []approvals.BatchID{approvals.BatchID(id)}, Memos: []approvals.MemoKey{
		{ID: id, Surface: l.Surface}, {ID: visitors, Surface: opened.Surface}, h.People.Groups().Key(),
	}})
	b, err := h.Desk.Batch(ctx, approvals.BatchID(id))
	if err != nil {
		return err
	}
	if err := h.People.Groups().Learn(ctx, b); err != nil {
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
	if len(concerned) == 0 && version == 0 {
		return l.Done(ctx, id, b.Version)
	}
	if len(concerned) > 0 && n.Body.Version < b.Version {
		n.Body = batchChange{Version: b.Version, Seen: h.Now(), People: concerned}
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

// all brings these Homes up to date with a change. A Home that has to wait does not
// delay the others.
func (h *Homes) all(ctx context.Context, people []approvals.UserID, change *batchChange) error {
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
		if wait := Pause - h.Now().Sub(n.Body.Begun); wait > 0 {
			later = &slackapi.LaterError{After: wait, Err: memo.ErrBusy}
			continue
		}
		if err := h.API.MayPublish(string(user)); err != nil {
			later = err
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
			h.Log.WarnContext(ctx, "a Home cannot be drawn", slog.String("user", string(user)), slog.Any("err", err))
		case err != nil:
			later = err
			continue
		}
		change.Done = append(change.Done, user)
	}
	return later
}

// concerned returns the people who open their Homes and whom the batch concerns: who
// asked, who decided, and who can approve or stop a call of it or stands in for
// someone who can. If a group cannot be looked up, it returns all who open theirs.
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
		if away, _, err = h.People.Absences().Load(ctx); err != nil {
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

// departed reports whether the person can take no part any more.
func departed(err error) bool {
	return errors.Is(err, directory.ErrGone) || errors.Is(err, directory.ErrBot) || errors.Is(err, directory.ErrGuest) ||
		errors.Is(err, directory.ErrStranger) || errors.Is(err, directory.ErrUnknown)
}
