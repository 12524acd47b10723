package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/doctor"
	"github.com/countersign/countersign/internal/policy"
)

// whoIsWho looks up groups and people. It is open once Slack is known.
type whoIsWho struct{ ui atomic.Pointer[doctor.Lookup] }

func (w *whoIsWho) open(l doctor.Lookup) { w.ui.Store(&l) }

var errNotKnownYet = errors.New("it is not known yet who is in which group")

// GroupsOf implements [policy.Directory].
func (w *whoIsWho) GroupsOf(ctx context.Context, user approvals.UserID, of []approvals.GroupID) ([]approvals.GroupID, error) {
	l := w.ui.Load()
	if l == nil {
		return nil, errNotKnownYet
	}
	able, err := (*l).Able(ctx, user)
	if err != nil || !able {
		return nil, err
	}
	var in []approvals.GroupID
	for _, g := range of {
		members, _, err := (*l).Members(ctx, g)
		if err != nil {
			return nil, fmt.Errorf("look up who is in %s: %w", g, err)
		}
		if slices.Contains(members, user) {
			in = append(in, g)
		}
	}
	return in, nil
}

// rosterTimeout limits the lookup of group members when the bot starts.
const rosterTimeout = 15 * time.Second

// checkPeople returns the rules of the current policy that nobody can meet, by the
// people and groups in Slack. A failed lookup is not a problem: a request that
// nobody can approve runs nothing.
func (b *bot) checkPeople(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rosterTimeout)
	defer cancel()
	roster, _, err := doctor.RosterOf(ctx, b.policy.Current(), b.ui)
	if err != nil {
		b.log.WarnContext(ctx, "could not check whether enough people can approve", slog.Any("err", err))
		return nil
	}
	o := b.policy.Current().Options()
	o.Roster = roster
	_, err = policy.Load(b.path, o)
	return err
}

// warnOfRequesters logs who is the requester of what another agent asks and cannot be found
// among the people in Slack: whoever has the credential of the agent is then not kept from
// approving what they asked for.
func (b *bot) warnOfRequesters(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, rosterTimeout)
	defer cancel()
	for _, r := range b.remote {
		for _, user := range append([]approvals.UserID{r.client.Owner}, r.client.Triggers...) {
			if user == "" {
				continue
			}
			log := b.log.With(slog.String("agent", r.client.Name), slog.String("user", string(user)))
			able, err := b.ui.AbleByName(ctx, user)
			switch {
			case err != nil:
				log.WarnContext(ctx, "could not check who is the requester of what the agent asks", slog.Any("err", err))
			case !able:
				log.WarnContext(ctx, "the requester of what the agent asks is deactivated or a bot")
			}
		}
	}
}
