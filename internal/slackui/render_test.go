package slackui_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	noon     = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	security = approvals.Quorum{Name: "security", Need: 2, From: approvals.From{Groups: []approvals.GroupID{"S0SEC"}, Users: []approvals.UserID{"U0DAVE"}}}
)

// drawn is a card of a batch that was opened at noon and moved by cmds.
func drawn(tb testing.TB, calls []approvals.Deferral, cmds ...approvals.Command) card.Card {
	tb.Helper()
	b, _, err := approvals.Open(approvals.Batch{
		ID: "batch-07-gold", Run: "run-07-gold", Thread: "t", Channel: "C0OPS", Agent: "ops", Requester: "U0ALICE", OpenedAt: noon,
	}, calls, nil)
	require.NoError(tb, err)
	for _, cmd := range cmds {
		b, _, err = b.Apply(cmd)
		require.NoError(tb, err)
	}
	c := card.Card{Batch: b, Calls: map[approvals.ToolCallID]approvals.ToolCall{}}
	for _, d := range calls {
		c.Calls[d.Call.ID] = d.Call
	}
	return c
}

// says is one person's verdict on a call, a minute after noon.
func says(user string, v approvals.Verdict, d approvals.Deferral, reason string) approvals.Decide {
	return approvals.Decide{Decision: approvals.Decision{
		Call: d.Call.ID, By: approvals.Principal{User: approvals.UserID(user), Groups: []approvals.GroupID{"S0SRE", "S0SEC"}, GroupsAt: noon},
		Verdict: v, Digest: approvals.DigestOf("batch-07-gold", d.Call), Reason: reason, At: noon.Add(time.Minute),
	}}
}

func until(d approvals.Deferral, at time.Time, separation bool) approvals.Deferral {
	d.Ask.Requirement.Deadline, d.Ask.Requirement.Separation = at, separation
	return d
}

func keys(n int) string {
	fields := make([]string, n)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"key_%02d":%d`, i, i)
	}
	return "{" + strings.Join(fields, ",") + "}"
}

func many(n int, args string) []approvals.Deferral {
	calls := make([]approvals.Deferral, n)
	for i := range calls {
		calls[i] = call(fmt.Sprintf("call_%d", i), "delete_file", args, sre)
	}
	return calls
}

// golden are the cards whose every byte is kept in testdata.
func golden(tb testing.TB) map[string]card.Card {
	tb.Helper()
	one := until(call("c1", "delete_file", `{"path":"reports/2023-q1.csv","force":true,"size":9007199254740993}`, sre), noon.Add(4*time.Hour), true)
	two := call("c2", "delete_file", `{"path":"reports/2023-q2.csv"}`, sre, security)
	two.Ask.Requirement.Deny = 2
	sql := call("c3", "run_sql", `{"statement":"DELETE FROM users\nWHERE last_login < '2020-01-01';","database":"prod","limits":{"rows":10000,"timeout":"30s","retry":{"times":3,"wait":"1s"},"tables":["users","sessions","tokens","audit"]}}`, sre)
	secret := call("c4", "create_user", `{"name":"ann","password":"hunter2 hunter2","auth":{"token":"abc","scopes":["a","b"]}}`, sre)
	secret.WriteOnly = []string{"/password", "/auth/token"}
	hostile := call("c5", "send_message", `{"to":"<!channel> <@U0BOB> <https://evil.example|https://bank.example>","text":"`+"```"+` *Approved* by <@U0BOB>\u202etxt.exe\u200b","\u202ekey":"x","pad":"a`+strings.Repeat(" ", 60)+`force: false"}`, sre)
	hostile.Ask.Why = "<!here> *bold* \u202e see <https://evil.example|the rule>"
	nobody := call("c6", "drop_database", `{}`)
	several := drawn(tb, []approvals.Deferral{one})
	several.Batch.Participants = []approvals.UserID{"U0BOB"}
	return map[string]card.Card{
		"one":      drawn(tb, []approvals.Deferral{one}),
		"two":      drawn(tb, []approvals.Deferral{one, two}, says("U0CAROL", approvals.Approve, two, ""), says("U0BOB", approvals.Deny, two, "")),
		"decided":  drawn(tb, []approvals.Deferral{one, two}, says("U0BOB", approvals.Approve, one, ""), says("U0CAROL", approvals.Deny, two, "Legal wants this one kept.\nSee <!channel> *now*"), says("U0BOB", approvals.Deny, two, "")),
		"approved": drawn(tb, []approvals.Deferral{one}, says("U0BOB", approvals.Approve, one, "")),
		"denied":   drawn(tb, []approvals.Deferral{one}, says("U0BOB", approvals.Deny, one, "Use the archive instead.")),
		"expired":  drawn(tb, []approvals.Deferral{one}, approvals.Expire{At: noon.Add(5 * time.Hour)}),
		"withdrawn": drawn(tb, []approvals.Deferral{one}, approvals.Withdraw{
			By: "U0ALICE", Reason: "Not needed any more.", At: noon.Add(time.Hour),
		}),
		"sql":          drawn(tb, []approvals.Deferral{sql}),
		"secret":       drawn(tb, []approvals.Deferral{secret}),
		"hostile":      drawn(tb, []approvals.Deferral{hostile}),
		"nobody":       drawn(tb, []approvals.Deferral{nobody}),
		"long":         drawn(tb, []approvals.Deferral{call("c7", "write_file", `{"path":"a.txt","content":"`+strings.Repeat("0123456789", 20_480)+`","mode":"overwrite"}`, sre)}),
		"lines":        drawn(tb, []approvals.Deferral{call("c7", "bash", `{"command":"set -e`+strings.Repeat(`\necho ok`, 40)+`\nrm -rf /srv/data"}`, sre)}),
		"keys":         drawn(tb, []approvals.Deferral{call("c8", "configure", keys(100), sre)}),
		"eight":        drawn(tb, apart(8)),
		"same":         together(tb, noon.Add(4*time.Hour)),
		"same_said":    together(tb, noon.Add(4*time.Hour), says("U0BOB", approvals.Approve, same(0), ""), says("U0BOB", approvals.Approve, same(2), "")),
		"same_over":    together(tb, time.Time{}, everyone(0, 1, 2, 3)...),
		"same_hostile": alike(tb, hostile, hostile, hostile),
		"same_long":    alike(tb, many(8, `{"path":"`+strings.Repeat("very/long/", 200)+`","force":true}`)...),
		"overdue":      drawn(tb, []approvals.Deferral{until(one, noon.Add(time.Second), false)}),
		"deep":         drawn(tb, []approvals.Deferral{call("c9", "configure", `{"tree":`+strings.Repeat(`{"a":[`, 12)+"1"+strings.Repeat("]}", 12)+`}`, sre)}),
		"stages":       stages(tb, says("U0BOB", approvals.Approve, signoff(), "Checked against the backup.")),
		"stands_in":    stages(tb, inPlaceOf("U0DAVE", "U0BOB", signoff()), says("U0CAROL", approvals.Approve, signoff(), "It is a copy.")),
		"vetoed":       stages(tb, says("U0ERIN", approvals.Deny, signoff(), "Not before Friday.")),
		"stood_in":     drawn(tb, []approvals.Deferral{delegated()}, inPlaceOf("U0DAVE", "U0BOB", delegated())),
		"amended":      amended(tb, `{"path":"reports/2023-q2.csv","force":true,"size":9007199254740993,"token":"hunter22"}`),
		"amended_twice": amended(tb, `{"path":"reports/`+strings.Repeat("very/long/", 60)+`a.csv","force":true,"token":"hunter2"}`,
			`{"path":"reports/`+strings.Repeat("very/long/", 60)+`b.csv","token":"xhunter","because":"x\u202ey"}`),
		"participants": several,
		"elsewhere":    elsewhere(drawn(tb, []approvals.Deferral{one})),
		"missed":       missed(drawn(tb, []approvals.Deferral{one})),
		"odd_id":       drawn(tb, []approvals.Deferral{call(strings.Repeat("ü|", 400), "delete_file", `{"path":"x"}`, sre)}),
	}
}

// signoff is a call that needs what a policy can ask for.
func signoff() approvals.Deferral {
	d := until(call("c1", "delete_file", `{"path":"reports/2023-q1.csv","force":true}`), noon.Add(8*time.Hour), true)
	d.Ask.Rule = "prod-delete@0123abcd"
	d.Ask.Why = "A deleted file cannot be brought back."
	from := func(users ...approvals.UserID) approvals.From { return approvals.From{Users: users} }
	r := &d.Ask.Requirement
	r.Quorums = []approvals.Quorum{
		{Name: "operations", Need: 2, From: approvals.From{Groups: []approvals.GroupID{"S0SRE", "C0OPS"}}},
		{Name: "security", Need: 1, From: approvals.From{Groups: []approvals.GroupID{"S0SEC"}}, Choice: 1, Option: 1},
		{Name: "leads", Need: 1, From: from("U0DAVE"), Choice: 1, Option: 2},
		{Name: "auditors", Need: 1, From: from("U0ERIN"), Choice: 1, Option: 2},
		{Name: "manager", Need: 1, From: from("U0CAROL"), Stage: 2},
	}
	r.Vetoes = []approvals.Quorum{{Name: "security", Need: 1, From: approvals.From{Groups: []approvals.GroupID{"S0SEC"}}}}
	r.Deny, r.ReasonNeeded, r.Delegation = 2, true, true
	return d
}

func delegated() approvals.Deferral {
	d := call("c1", "delete_file", `{"path":"reports/2023-q1.csv"}`, approvals.Quorum{Name: "leads", Need: 1, From: approvals.From{Users: []approvals.UserID{"U0BOB"}}})
	d.Ask.Requirement.Delegation = true
	return d
}

// inPlaceOf is an approval of somebody who stands in.
func inPlaceOf(user, away string, d approvals.Deferral) approvals.Decide {
	cmd := says(user, approvals.Approve, d, "I stand in today.")
	cmd.By.Groups = nil
	cmd.By.For = []approvals.Absent{{User: approvals.UserID(away), Groups: []approvals.GroupID{"S0SRE"}, Until: noon.Add(24 * time.Hour)}}
	return cmd
}

func stages(tb testing.TB, cmds ...approvals.Command) card.Card {
	tb.Helper()
	return drawn(tb, []approvals.Deferral{signoff()}, cmds...)
}

// amended is a call that Bob had signed before Carol changed its arguments,
// each time, with a tool that is known.
func amended(tb testing.TB, to ...string) card.Card {
	tb.Helper()
	both := sre
	both.Need = 2
	was := until(call("c1", "delete_file", `{"path":"reports/2023-q1.csv","force":false,"token":"hunter2"}`, both), noon.Add(4*time.Hour), true)
	was.WriteOnly = []string{"/token"}
	cmds := []approvals.Command{says("U0BOB", approvals.Approve, was, "Fine.")}
	earlier := map[approvals.Digest]approvals.ToolCall{}
	now := was
	for i, args := range to {
		from := approvals.DigestOf("batch-07-gold", now.Call)
		earlier[from] = now.Call
		now.Call.Args = json.RawMessage(args)
		cmds = append(cmds, approvals.Amend{
			Call: "c1", From: from, Args: now.Call.Args, Ruling: approvals.Permit{}, At: noon.Add(time.Duration(i+2) * time.Minute),
			By: approvals.Principal{User: "U0CAROL", Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: noon},
		})
	}
	c := drawn(tb, []approvals.Deferral{was}, cmds...)
	c.Calls["c1"], c.Earlier = now.Call, earlier
	c.Tools = map[string]agentrun.Spec{"delete_file": {Schema: json.RawMessage(fileSchema), WriteOnly: []string{"/token"}}}
	return c
}

func elsewhere(c card.Card) card.Card {
	c.Place = card.PlaceEscalation
	return c
}

func missed(c card.Card) card.Card {
	c.Missed = []card.Missed{{Channel: "C0GENERAL", Code: "not_in_channel"}, {Channel: "C0OLD", Code: "is_archived"}}
	return c
}

func TestCardsAreAsKept(t *testing.T) {
	for name, shown := range allCards(t) {
		t.Run(name, func(t *testing.T) {
			got, err := json.MarshalIndent(card.Render(shown, noon.Add(2*time.Minute)), "", "  ")
			require.NoError(t, err)
			got = append(got, '\n')
			path := filepath.Join("testdata", "card_"+name+".json")
			if *update {
				require.NoError(t, os.WriteFile(path, got, 0o600))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
		})
	}
}

func TestSlackTakesEveryCard(t *testing.T) {
	sim := slacksim.New(slacksim.Config{})
	srv := httptest.NewServer(sim)
	defer srv.Close()
	defer sim.Close()
	api := slack.New(sim.BotToken(), slack.OptionAPIURL(srv.URL+"/api/"))
	for name, shown := range allCards(t) {
		_, ts, err := api.PostMessage("C0OPS", slack.MsgOptionText("a card", false), slack.MsgOptionBlocks(card.Render(shown, noon)...))
		require.NoError(t, err, name)
		_, _, _, err = api.UpdateMessage("C0OPS", ts, slack.MsgOptionText("a card", false), slack.MsgOptionBlocks(card.Render(shown, noon)...))
		require.NoError(t, err, name)
	}
}

// One denial of two that are needed stops nothing. A card that expires then must not say
// that there was none: the reason for it stands below.
func TestAnExpiredCallThatSomebodyDeniedDoesNotSayThatNobodyDid(t *testing.T) {
	d := until(call("c1", "delete_file", `{"path":"a.txt"}`, sre), noon.Add(time.Hour), false)
	d.Ask.Requirement.Deny = 2
	c := drawn(t, []approvals.Deferral{d}, says("U0BOB", approvals.Deny, d, "Legal wants it kept."), approvals.Expire{At: noon.Add(time.Hour)})
	shown, err := json.Marshal(c.Message(noon.Add(2 * time.Hour)).Blocks)
	require.NoError(t, err)
	require.Contains(t, string(shown), "Legal wants it kept.")
	require.NotContains(t, string(shown), "nobody denied it")
	require.Contains(t, string(shown), ": it wasn't denied, but the time to approve it ran out. It won't run.")
}

// What a card leaves out for want of room, it says with "left out". An argument that was
// added or removed is something else.
func TestAnArgumentThatIsNotThereIsNotCalledLeftOut(t *testing.T) {
	c := amended(t, `{"path":"reports/2023-q2.csv","force":true,"size":12,"token":"hunter22"}`)
	shown, err := json.Marshal(c.Message(noon).Blocks)
	require.NoError(t, err)
	require.Contains(t, string(shown), "size: (no value) → 12")
	require.NotContains(t, string(shown), "left out", "the card shows everything")
}
