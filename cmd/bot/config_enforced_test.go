package main

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state/statetest"
)

const twoAgents = `
redis: {prefix: ours, durability: fsync}
slack: {groups_max_age: 1ns}
agents:
  - name: ops
    instructions: You are the one in ops.
    model: alpha
    files: reports
    channels: [C0OPS]
    who: {groups: [S0SRE], users: [U0ALICE]}
  - name: general
    instructions: You are the one elsewhere.
policy: policy.yaml
`

// mentions lets the people write in the channels, one after the other, and
// returns after the bot has taken what they wrote.
func (i *installation) mentions(b *bot, posts ...slacksim.Post) {
	i.t.Helper()
	front := httptest.NewServer(b.handler())
	i.t.Cleanup(front.Close)
	i.slack.SetURLs(front.URL+"/slack/events", front.URL+"/slack/interactivity", front.URL+"/slack/commands")
	for _, p := range posts {
		p.Text = "@countersign clean up"
		_, err := i.slack.PostAs(p)
		require.NoError(i.t, err)
		require.NoError(i.t, i.slack.Idle(i.t.Context()))
	}
}

func TestOnlyThoseWhomTheFileNamesStartTheAgent(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	i.text = twoAgents
	b := i.bot()
	i.mentions(b,
		slacksim.Post{User: dave, Channel: ops}, slacksim.Post{User: alice, Channel: ops},
		slacksim.Post{User: bob, Channel: ops}, slacksim.Post{User: dave, Channel: "C0GENERAL"})
	require.NoError(t, b.ui.Server.Shutdown(t.Context()))
	refused := map[string]int{}
	for _, user := range []string{dave, alice, bob} {
		for _, channel := range []string{ops, "C0GENERAL"} {
			messages, err := i.slack.Messages(user, channel, "")
			require.NoError(t, err)
			for _, m := range messages {
				if m.Ephemeral {
					require.Contains(t, m.Shown(), "You can't ask this agent")
					refused[user+" in "+channel]++
				}
			}
		}
	}
	require.Equal(t, map[string]int{dave + " in " + ops: 1}, refused)
	require.Len(t, i.slack.Calls("usergroups.users.list"), 3, "at the start, then for Dave and Bob: groups_max_age is over at once, and Alice is named")
	for _, key := range i.redis.Keys() {
		require.True(t, strings.HasPrefix(key, "ours"), "redis.prefix: %s", key)
	}
	require.NotEmpty(t, i.redis.Keys())
}

// What an agent is told, by which model, and which tools it has, is what the
// file says of the agent whose channel it is.
func TestTheChannelsAgentIsTheOneThatIsAsked(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	i.text = twoAgents
	asked := make(chan string, 16)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		w.WriteHeader(http.StatusBadRequest) // enough was seen
	}))
	t.Cleanup(model.Close)
	i.env["OPENAI_BASE_URL"], i.env["OPENAI_MODEL"] = model.URL+"/v1", "beta"
	b := i.bot()
	i.reconciles(b)

	i.mentions(b, slacksim.Post{User: alice, Channel: ops})
	first := <-asked
	i.mentions(b, slacksim.Post{User: alice, Channel: "C0GENERAL"})
	second := <-asked
	require.Contains(t, first, `"model":"alpha"`)
	require.Contains(t, first, "You are the one in ops.")
	require.Contains(t, first, `"delete_file"`)
	require.Contains(t, second, `"model":"beta"`)
	require.Contains(t, second, "You are the one elsewhere.")
	require.NotContains(t, second, `"delete_file"`, "it has no folder")
}

// While the model thinks about the first of Alice's two runs, the second waits, and
// Bob's begins. It begins when the first has ended.
func TestTheRunsOfOnePersonAreBoundedAsTheFileSays(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	i.text = twoAgents + "runs: {per_requester: 1}\n"
	asked, ends := make(chan string, 16), make(chan struct{})
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		<-ends
		w.WriteHeader(http.StatusBadRequest) // enough was seen
	}))
	t.Cleanup(model.Close)
	release := sync.OnceFunc(func() { close(ends) })
	t.Cleanup(release)
	i.env["OPENAI_BASE_URL"] = model.URL + "/v1"
	b := i.bot()
	i.reconciles(b)

	i.mentions(b, slacksim.Post{User: alice, Channel: ops}, slacksim.Post{User: alice, Channel: ops}, slacksim.Post{User: bob, Channel: ops})
	<-asked
	<-asked
	statetest.Await(t, "a run of Alice to be put off", func() bool {
		busy := b.runner.Busy()
		return len(busy) == 1 && busy[0].Runs == 2 && busy[0].PutOff > 0
	})
	require.Empty(t, asked)
	release()
	<-asked
}

func TestLimitsTimeoutsAndSummariesReachTheAgent(t *testing.T) {
	t.Parallel()
	sim := openaisim.New(openaisim.DemoStories()...)
	model := httptest.NewServer(sim)
	t.Cleanup(model.Close)
	e := config.Environment{OpenAIKey: config.NewSecret("k"), OpenAIBaseURL: model.URL + "/v1", OpenAIModel: openaisim.ModelName}
	agents, err := newAgents(config.Config{Agents: []config.Agent{
		{Name: "patient", Limits: config.Limits{Requests: 5, ToolCalls: 7, TotalTokens: 9}, Tools: map[string]config.Tool{
			"delete_file": {Summary: "Delete {args.path}"}, "read_file": {Approval: config.Approval{Kind: config.ApprovalAll}},
		}},
		{Name: "hasty", Timeout: 1},
		{Name: "modern", ModelAPI: config.APIResponses},
	}}, e, config.ToolSets{}, new(bot).model, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Equal(t, agentrun.Limits{Requests: 5, ToolCalls: 7, TotalTokens: 9}, agents["patient"].Limits)
	require.Equal(t, map[string]string{"delete_file": "Delete {args.path}"}, agents["patient"].Summaries)
	ask := agentrun.ModelRequest{Messages: []agentrun.Message{agentrun.Request{Parts: []agentrun.RequestPart{agentrun.UserPrompt{Content: "hello"}}}}}
	_, err = agents["patient"].Model.Request(t.Context(), ask)
	require.NoError(t, err)
	require.Contains(t, string(sim.Requests()[0].Body), `"messages"`)
	_, err = agents["modern"].Model.Request(t.Context(), ask)
	require.NoError(t, err)
	require.Contains(t, string(sim.Requests()[1].Body), `"input"`)
	_, err = agents["hasty"].Model.Request(t.Context(), ask)
	require.Error(t, err)
}

// One card and one digest, where the file leaves room for one card; the reviewer
// gets one message and one digest.
func TestTheMessagesOfAMinuteAreBoundedAsTheFileSays(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	i.text = strings.Replace(twoAgents, "groups_max_age: 1ns", "cards_per_minute: 1, messages_per_minute: 1", 1)
	i.rules = oneOfSRE + "  dm: true\n"
	model := httptest.NewServer(openaisim.New(openaisim.Story{
		Name: "delete", Prompt: "clean up", Match: func(string) bool { return true },
		Turn: func(openaisim.Conversation) openaisim.Reply {
			return openaisim.Reply{Calls: []openaisim.Call{{Name: "delete_file", Args: `{"path":"a.txt"}`}}}
		},
	}))
	t.Cleanup(model.Close)
	i.env["OPENAI_BASE_URL"] = model.URL + "/v1"
	b := i.bot()
	i.reconciles(b)
	i.mentions(b, slacksim.Post{User: alice, Channel: ops}, slacksim.Post{User: alice, Channel: ops}, slacksim.Post{User: alice, Channel: ops})
	kinds := func(channel string) map[string]int {
		found := map[string]int{}
		for _, c := range i.slack.Calls("chat.postMessage") {
			for _, kind := range []string{"countersign_batch", "countersign_digest"} {
				if strings.Contains(c.Request, "channel="+channel) && strings.Contains(c.Request, kind) {
					found[kind]++
				}
			}
		}
		return found
	}
	want := map[string]int{"countersign_batch": 1, "countersign_digest": 1}
	waiting, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for _, channel := range []string{ops, "D0BOB"} {
		require.NoError(t, i.slack.Await(waiting, func() bool { return maps.Equal(kinds(channel), want) }), "%s: %v", channel, kinds(channel))
	}
}
