package main

import (
	"context"
	"io"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
	"github.com/countersign/countersign/internal/tools"
)

// BenchmarkLastClickToCall measures from the stored last signature to the
// moment in which the resume run begins to execute the call: the resume run is
// created, claimed, its history and answers are read, and the call is written
// down as claimed and as started, six commits on a real Redis. The ratio is to
// a PING of that Redis, measured in the same run.
func BenchmarkLastClickToCall(b *testing.B) {
	began := make(chan time.Time, 1)
	bot, client := benchBot(b, func(agent string) ([]agentrun.Tool, error) {
		sign, err := tools.New(tools.Spec[struct{}]{Name: "sign_me", Approval: tools.Always},
			func(context.Context, agentrun.Call, struct{}) (string, error) {
				began <- time.Now()
				return "signed", nil
			})
		return []agentrun.Tool{sign}, err
	})
	var took []time.Duration
	for b.Loop() {
		at := benchDeferral(b, bot)
		a := at.Approvals[0]
		_, err := bot.desk.Decide(b.Context(), at.ID, approvals.RequestID(uuid.NewString()), approvals.Decide{Decision: approvals.Decision{
			Call: a.Call.ID, Verdict: approvals.Approve, Digest: a.Call.Digest, At: time.Now(),
			By: approvals.Principal{User: bob, Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: time.Now()},
		}})
		stored := time.Now()
		require.NoError(b, err)
		took = append(took, (<-began).Sub(stored))
	}
	var pings []time.Duration
	for range 500 {
		start := time.Now()
		require.NoError(b, client.Ping(b.Context()).Err())
		pings = append(pings, time.Since(start))
	}
	slices.Sort(took)
	slices.Sort(pings)
	median, ping := took[len(took)/2], pings[len(pings)/2]
	b.ReportMetric(float64(median.Microseconds())/1000, "ms/median")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms/p99")
	b.ReportMetric(float64(median)/float64(ping), "PINGs")
}

// benchDeferral starts a run and waits until it has deferred.
func benchDeferral(b *testing.B, bot *bot) approvals.Batch {
	b.Helper()
	unique := uuid.NewString()
	run, err := bot.runner.Mention(b.Context(), agentrun.Mention{
		Event: unique, Agent: "ops", Requester: alice, Text: "sign",
		Origin: agentrun.Origin{Surface: "bench", Team: slacksim.TeamID, Channel: ops, Root: unique},
	})
	require.NoError(b, err)
	for run.Status != agentrun.RunDeferred {
		require.NotEqual(b, agentrun.RunFailed, run.Status, run.Failure)
		time.Sleep(time.Millisecond)
		run, err = bot.store.Run(b.Context(), run.ID)
		require.NoError(b, err)
	}
	batch, err := bot.desk.Batch(b.Context(), run.Deferred)
	require.NoError(b, err)
	return batch
}

func benchBot(b *testing.B, extra config.ToolsFor) (*bot, *redis.Client) {
	b.Helper()
	client, ok := statetest.Redis(b).(*redis.Client)
	require.True(b, ok)
	slack := slacksim.New(slacksim.Config{})
	slackServer := httptest.NewServer(slack)
	b.Cleanup(func() { slack.Close(); slackServer.Close() })
	model := httptest.NewServer(openaisim.New(openaisim.Story{
		Name: "sign", Prompt: "sign", Match: func(string) bool { return true },
		Turn: func(c openaisim.Conversation) openaisim.Reply {
			if len(c.Results) > 0 {
				return openaisim.Reply{Text: "done"}
			}
			return openaisim.Reply{Calls: []openaisim.Call{{Name: "sign_me", Args: "{}"}}}
		},
	}))
	b.Cleanup(model.Close)
	e, err := config.ReadEnvironment([]string{
		"SLACK_BOT_TOKEN=" + slack.BotToken(), "SLACK_SIGNING_SECRET=" + slack.SigningSecret(), "SLACK_API_URL=" + slackServer.URL + "/api/",
		"REDIS_URL=unix://" + client.Options().Addr, "OPENAI_API_KEY=scripted", "OPENAI_BASE_URL=" + model.URL + "/v1",
	})
	require.NoError(b, err)
	c := config.Config{
		Agents: []config.Agent{{Name: "ops"}},
		Policy: writePolicy(b, b.TempDir(), oneOfSRE),
		Redis:  config.Redis{Durability: state.None}, // what is measured is not a disk
	}
	bot, err := newBot(b.Context(), c, e, extra, config.NewLogger(io.Discard, "error"))
	require.NoError(b, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); bot.reconcile(ctx) }()
	b.Cleanup(func() {
		bot.runner.Drain()
		stop()
		<-ended
		require.NoError(b, bot.close(context.Background()))
	})
	return bot, client
}
