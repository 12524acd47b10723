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

// rosterTimeout limits the lookup of group members.
const rosterTimeout = 15 * time.Second

// checkPeople logs where the current policy does not fit the people and groups in Slack.
// It prevents nothing: both change in Slack without a change of the file, and a request
// that nobody can approve runs nothing.
func (b *bot) checkPeople(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, rosterTimeout)
	defer cancel()
	p := b.policy.Current()
	roster, _, err := doctor.RosterOf(ctx, p, b.ui)
	if err != nil {
		b.log.WarnContext(ctx, "could not check whether enough people can approve", slog.Any("err", err))
		return
	}
	o := p.Options()
	o.Roster = roster
	if _, err = policy.Load(b.path, o); err != nil {
		b.log.ErrorContext(ctx, "the policy does not fit the people and groups in Slack", slog.String("version", p.Version()), slog.Any("err", err))
	}
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
