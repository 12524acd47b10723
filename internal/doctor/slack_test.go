package doctor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/doctor"
	"github.com/countersign/countersign/internal/slacksim"
)

func TestCheckOfSlack(t *testing.T) {
	groups := slacksim.DefaultGroups()
	for name, c := range map[string]struct {
		sim    slacksim.Config
		change func(*installation)
		want   []string
	}{
		"a wrong token": {slacksim.Config{}, func(i *installation) { i.env["SLACK_BOT_TOKEN"] = "xoxb-other" }, []string{
			"problem          Slack: cannot find out who the bot is (auth.test): invalid_auth", `-> copy the "Bot User OAuth Token"`,
		}},
		"a token of another kind": {slacksim.Config{AppToken: "xapp-1-tell"}, func(i *installation) { i.env["SLACK_BOT_TOKEN"] = "xapp-1-tell" }, []string{
			"SLACK_BOT_TOKEN: this is not a bot token", "Slack: SLACK_BOT_TOKEN is not the token of a bot\n",
		}},
		"Slack is not there": {slacksim.Config{}, func(i *installation) { i.env["SLACK_API_URL"] = "http://127.0.0.1:1/api/" }, []string{
			"Slack: cannot find out who the bot is", "-> check SLACK_API_URL, and that this machine can reach it",
		}},
		"no scope to look at channels": {slacksim.Config{Scopes: []string{"chat:write", "users:read", "usergroups:read"}}, nil, []string{
			"could not check  agents[0].channels: C0OPS: whether the bot is in it", "/invite @countersign",
			"the bot lacks the scopes app_mentions:read, channels:read,",
		}},
		"no scope to look at groups": {slacksim.Config{Scopes: []string{"users:read"}}, nil, []string{
			"problem          Slack: cannot look up user groups", "-> grant the scope usergroups:read",
		}},
		"groups cannot be asked for now": {slacksim.Config{}, func(i *installation) {
			i.slack.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "usergroups.list", Status: 429, RetryAfter: 7}}})
		}, []string{"could not check  Slack: which user groups there are (usergroups.list)", "-> check again in 7s"}},
		"trouble at Slack": {slacksim.Config{}, func(i *installation) {
			i.slack.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "usergroups.list", Error: "internal_error"}}})
		}, []string{"could not check  Slack: which user groups there are (usergroups.list)"}},
		"not in the channel": {slacksim.Config{Channels: []slacksim.Channel{{ID: "C0OPS", Name: "ops", Members: []string{"U0BOB"}}}}, nil, []string{
			"problem          agents[0].channels: C0OPS: the bot is not in #ops", "-> write /invite @countersign there",
		}},
		"the channel is archived": {slacksim.Config{Channels: []slacksim.Channel{{ID: "C0OPS", Name: "ops", Archived: true, Members: []string{slacksim.BotUser}}}}, nil, []string{
			"problem          agents[0].channels: C0OPS: #ops is archived",
		}},
		"a disabled group": {slacksim.Config{Groups: []slacksim.Group{{ID: "S0SRE", Handle: "sre", Users: groups[0].Users, Disabled: true}}}, nil, []string{
			"problem          agents[0].who.groups: the user group @sre (S0SRE) is disabled",
		}},
		"an empty group": {slacksim.Config{Groups: []slacksim.Group{{ID: "S0SRE", Handle: "sre"}}}, nil, []string{
			"problem          agents[0].who.groups: the user group @sre (S0SRE) is empty",
		}},
		"one person cannot fill two places": {slacksim.Config{Groups: []slacksim.Group{{ID: "S0SRE", Handle: "sre", Users: []string{"U0CAROL", "U0GUEST"}}}}, nil, []string{
			"policy.yaml:11:7: rules[0].ask: can't be met even if everyone approves, because one person counts once",
		}},
		"people who are not heard": {slacksim.Config{People: []slacksim.Person{
			{ID: "U0ALICE", Name: "alice", Stranger: true}, {ID: "U0BOB", Name: "bob"}, {ID: "U0CAROL", Name: "carol", Deleted: true},
		}}, nil, []string{
			"problem          agents[0].who.users: U0ALICE belongs to another workspace",
			"policy.yaml:3:17: U0CAROL is deactivated",
		}},
		"our clock is wrong": {slacksim.Config{}, func(i *installation) {
			i.o.Now = func() time.Time { return time.Now().Add(10 * time.Minute) }
		}, []string{"problem          the clock of this machine is 10m"}},
		"a rule for a tool that is not there": {slacksim.Config{}, func(i *installation) { i.rules = strings.ReplaceAll(i.rules, "delete_file", "delte_file") }, []string{
			`policy.yaml:9:13: rules[0].tools[0]: no agent has a tool "delte_file", so the rule would match nothing; did you mean delete_file?`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t, c.sim)
			if c.change != nil {
				c.change(i)
			}
			found := i.check()
			for _, want := range c.want {
				require.Contains(t, found, want)
			}
		})
	}
}

// An owner that is nobody's id separates nobody from their own requests, and nobody sees
// a card in a channel that is not there.
func TestCheckLooksUpTheRequestersAndChannelsOfOtherAgents(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	hash := "sha256:" + strings.Repeat("a", 63)
	i.text += `
http: {listen: "127.0.0.1:0"}
remote_agents:
  - {name: one, owner: U0ALICE, channel: C0OPS, tokens: ["` + hash + `1"], doors: [api]}
  - {name: two, owner: U0ALCE, channel: C0NOPE, tokens: ["` + hash + `2"], doors: [api]}
  - {name: three, triggers: {users: [U0BOB, U0BOT, U0GONE]}, channel: C0GENERAL, tokens: ["` + hash + `3"], doors: [api]}
gateways:
  - name: tracker
    channel: C0LOST
    mcp: {tracker: {url: "https://tracker.example.com/mcp"}}
    owners: {users: [U0NOBODY], channel: C0MISSING}
    clients: [{owner: U0ALCIE, tokens: ["` + hash + `4"]}]
`
	found := i.check()
	for _, want := range []string{
		"ok               remote_agents[0].owner: U0ALICE is alice\n",
		"problem          remote_agents[1].owner: U0ALCE is not in this workspace, so the person whose credential it is can approve their own requests",
		"ok               remote_agents[2].triggers.users: U0BOB is bob\n",
		"problem          remote_agents[2].triggers.users: U0BOT is a bot",
		"warning          remote_agents[2].triggers.users: U0GONE (gone) is deactivated",
		"problem          gateways[0].clients[0].owner: U0ALCIE is not in this workspace",
		"problem          gateways[0].owners.users: U0NOBODY is not in this workspace, so the bot ignores them",
		"ok               agents[0].channels: C0OPS: the bot is in #ops\n",
		"problem          remote_agents[1].channel: C0NOPE: there is no such channel, or the bot is not in it",
		"ok               remote_agents[2].channel: C0GENERAL: the bot is in #general\n",
		"problem          gateways[0].channel: C0LOST: there is no such channel",
		"problem          gateways[0].owners.channel: C0MISSING: there is no such channel",
	} {
		require.Contains(t, found, want)
	}
}

func TestCheckLooksUpOnlySoManyPeople(t *testing.T) {
	people := []slacksim.Person{{ID: "U0ALICE", Name: "alice"}, {ID: "U0CAROL", Name: "carol"}}
	var members []string
	for n := range doctor.MostPeople {
		id := fmt.Sprintf("U0MANY%03d", n)
		members = append(members, id)
		people = append(people, slacksim.Person{ID: id, Name: strings.ToLower(id)})
	}
	found := newInstallation(t, slacksim.Config{People: people, Groups: []slacksim.Group{{ID: "S0SRE", Handle: "sre", Users: members}}}).check()
	require.Contains(t, found, "could not check  Slack: 1 more person who can approve, assumed to be a member\n")
	require.Contains(t, found, "0 wrong")
}
