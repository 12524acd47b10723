package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/directory"
)

func adminGrants(ctx context.Context, in *call) error {
	asJSON := in.flags.Bool("json", false, "Write JSON.")
	var team string
	in.flags.Func("team", "The `ID` (T…) of the workspace in which the app is installed. Without it, Slack is asked, which needs SLACK_BOT_TOKEN.", func(value string) error {
		if !workspace.MatchString(value) {
			return errors.New("it must be the id of a workspace, such as T0123456789, or of an organization, such as E0123456789")
		}
		team = value
		return nil
	})
	return administer(ctx, in, func(a admin, _ []string) error {
		if team == "" {
			_, who, err := askSlack(ctx, in.environ)
			if err != nil {
				return fmt.Errorf("find out the workspace, because --team is missing: %w", err)
			}
			team = who.TeamID
		}
		return a.grants(ctx, team, *asJSON)
	})
}

// workspace is the form of an id of a workspace. With a name no grant would be found, as
// if nobody were away.
var workspace = regexp.MustCompile(`^[TE][A-Z0-9]+$`)

// grantRow is a person who may approve in place of another one for a time.
type grantRow struct {
	For   approvals.UserID   `json:"for"`
	To    approvals.UserID   `json:"to"`
	From  time.Time          `json:"from"`
	Until time.Time          `json:"until"`
	Via   []approvals.UserID `json:"via,omitempty"` // who passed it on
	Now   bool               `json:"now"`           // whether it has begun
}

// grants prints who may approve for whom, now or once an absence begins.
func (a admin) grants(ctx context.Context, team string, asJSON bool) error {
	all, _, err := (&directory.Directory{Memos: a.store, Team: team}).Absences().Load(ctx)
	if err != nil {
		return fmt.Errorf("read who is away: %w", err)
	}
	rows := grantsOf(all, time.Now())
	if asJSON {
		return a.sayJSON(rows)
	}
	var out strings.Builder
	for _, r := range rows {
		how := "now"
		if !r.Now {
			how = "later"
		}
		for _, via := range r.Via {
			how += ", passed on by " + string(via)
		}
		fmt.Fprintf(&out, "%s\tfor %s\tfrom %s\tuntil %s\t%s\n", r.To, r.For, since(r.From), since(r.Until), how)
	}
	fmt.Fprintf(&out, "%s\n", counted(len(rows), "grant", "grants"))
	return a.say(out.String())
}

// grantsOf returns the delegations that are in effect at this time, including those that
// a delegate passed on, and the delegations of absences that have not begun.
func grantsOf(all approvals.Absences, at time.Time) []grantRow {
	rows := []grantRow{}
	var delegates []approvals.UserID
	for _, x := range all {
		if x.Delegate == "" {
			continue
		}
		if !slices.Contains(delegates, x.Delegate) {
			delegates = append(delegates, x.Delegate)
		}
		if at.Before(x.From) {
			rows = append(rows, grantRow{For: x.User, To: x.Delegate, From: x.From.UTC(), Until: x.Until.UTC()})
		}
	}
	for _, to := range delegates {
		for _, d := range all.DelegationsTo(to, at) {
			rows = append(rows, grantRow{For: d.User, To: to, From: d.From.UTC(), Until: d.Until.UTC(), Via: d.Via, Now: true})
		}
	}
	slices.SortStableFunc(rows, func(x, y grantRow) int { return x.From.Compare(y.From) })
	return rows
}
