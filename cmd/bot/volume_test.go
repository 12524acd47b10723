package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// A flood is a workspace into which many requests come, on a clock of its own:
// what waits is done when its time has come, one after the other.
type flood struct {
	t     testing.TB
	slack *slacksim.Server
	store *state.Store
	desk  *approvals.Desk
	ui    *slackui.UI

	mu     sync.Mutex
	at     time.Time
	calls  map[string]int              // answered, by method
	limits map[string]int              // 429s, by method
	posted map[string][]floodedMessage // by channel

	due     map[string]time.Time // batches and runs that are to be drawn
	awaited string               // the one of them that someone waits for

	looks int       // so often something was looked at
	last  time.Time // when that was
}

type floodedMessage struct {
	at   time.Time
	kind string
	text string
}

func (f *flood) now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}

// newFlood has so many people in #ops and in the group S0MANY, and room for so many cards a
// minute.
func newFlood(tb testing.TB, people, cards int) *flood {
	tb.Helper()
	f := &flood{
		t: tb, at: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC),
		calls: map[string]int{}, limits: map[string]int{}, posted: map[string][]floodedMessage{}, due: map[string]time.Time{},
	}
	everyone := slacksim.DefaultPeople()
	channels, many := slacksim.DefaultChannels(), slacksim.Group{ID: "S0MANY", Handle: "many", Name: "Many"}
	for n := range people {
		id := fmt.Sprintf("U0P%03d", n)
		everyone = append(everyone, slacksim.Person{ID: id, Name: strings.ToLower(id), RealName: id})
		many.Users = append(many.Users, id)
		channels[0].Members = append(channels[0].Members, id)
	}
	f.slack = slacksim.New(slacksim.Config{
		Now: f.now, PostLimit: true, TierLimits: true, People: everyone, Channels: channels, Groups: append(slacksim.DefaultGroups(), many),
	})
	server := httptest.NewServer(http.HandlerFunc(f.watch))
	f.slack.SetPublicURL(server.URL)
	tb.Cleanup(func() { f.slack.Close(); server.Close() })
	var err error
	f.store, err = state.Open(tb.Context(), state.Options{Client: statetest.Miniredis(tb), Now: f.now})
	require.NoError(tb, err)
	f.desk = approvals.NewDesk(f.store, nil, nil, f.now)
	f.ui, err = slackui.New(slackui.Config{
		BotToken: f.slack.BotToken, SigningSecret: f.slack.SigningSecret, APIURL: server.URL + "/api/", Team: slacksim.TeamID, Agent: "ops",
		Desk: f.desk, Runs: f.store, Runner: nobody{}, Memos: f.store, Lists: f.store, CardsPerMinute: cards, Awaits: awaits, Now: f.now, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(tb, err)
	return f
}

// nobody starts no agent.
type nobody struct{}

func (nobody) Mention(context.Context, agentrun.Mention) (agentrun.Run, error) {
	return agentrun.Run{}, errors.New("nobody is asked")
}

// watch counts what Slack is asked.
func (f *flood) watch(w http.ResponseWriter, r *http.Request) {
	method := path.Base(r.URL.Path)
	raw, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(raw))
	r.Body = io.NopCloser(bytes.NewReader(raw))
	answer := httptest.NewRecorder()
	f.slack.ServeHTTP(answer, r)
	f.mu.Lock()
	if answer.Code == http.StatusTooManyRequests {
		f.limits[method]++
	} else {
		f.calls[method]++
		if method == "chat.postMessage" {
			kind := "reply"
			for _, k := range []string{"countersign_batch", "countersign_digest"} {
				if strings.Contains(form.Get("metadata"), k) {
					kind = strings.TrimPrefix(k, "countersign_")
				}
			}
			c := form.Get("channel")
			f.posted[c] = append(f.posted[c], floodedMessage{f.at, kind, form.Get("text")})
		}
	}
	f.mu.Unlock()
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// request stores a run in a thread of #ops that has deferred so many calls, and
// makes it due.
func (f *flood) request(n, calls int, r approvals.Requirement) approvals.Batch {
	f.t.Helper()
	root, err := f.slack.PostAs(slacksim.Post{User: alice, Channel: ops, Text: fmt.Sprintf("request %d", n)})
	require.NoError(f.t, err)
	p := n % approvals.Partitions
	run := agentrun.Run{
		ID: approvals.RunID(approvals.NewID("run", p, fmt.Sprint(n))), Thread: agentrun.ThreadID(approvals.NewID("thread", p, fmt.Sprint(n))),
		Status: agentrun.RunDeferred, Agent: []string{"ops", "billing"}[n%2], Requester: alice,
		Deferred: approvals.BatchID(approvals.NewID("batch", p, fmt.Sprint(n))),
		Origin:   agentrun.Origin{Surface: "slack", Team: slacksim.TeamID, Channel: ops, Root: root},
	}
	args := map[approvals.Digest]json.RawMessage{}
	var deferrals []approvals.Deferral
	for i := range calls {
		call := approvals.ToolCall{
			ID: approvals.ToolCallID(fmt.Sprintf("call-%d", i)), Name: []string{"delete_file", "send_email", "run_sql"}[i%3],
			Args: json.RawMessage(fmt.Sprintf(`{"path":"/srv/%d/%d"}`, n, i)),
		}
		args[approvals.DigestOf(run.Deferred, call)] = call.Args
		deferrals = append(deferrals, approvals.Deferral{Call: call, Ask: approvals.Ask{Why: "It changes something.", Requirement: r}})
	}
	b, events, err := approvals.Open(approvals.Batch{
		ID: run.Deferred, Run: run.ID, Thread: string(run.Thread), Channel: ops, Agent: run.Agent, Requester: alice, OpenedAt: f.now(),
	}, deferrals, nil)
	require.NoError(f.t, err)
	opens := agentrun.OpenBatch{Batch: b, Events: events, Args: args}
	require.NoError(f.t, f.store.Commit(f.t.Context(), agentrun.Commit{
		Request: approvals.RequestID(run.ID), Thread: &agentrun.Thread{ID: run.Thread, Active: run.ID}, Runs: []agentrun.Run{run}, Opens: &opens,
	}))
	f.due[string(b.ID)], f.due[string(run.ID)] = f.now(), f.now()
	return b
}

// goes does what is due until that time, or until nothing is.
func (f *flood) goes(until time.Time) {
	f.t.Helper()
	for {
		var next string
		for item, at := range f.due {
			if next == "" || at.Before(f.due[next]) || at.Equal(f.due[next]) && item < next {
				next = item
			}
		}
		if next == "" || f.due[next].After(until) {
			break
		}
		f.mu.Lock()
		if f.due[next].After(f.at) {
			f.at = f.due[next]
		}
		f.mu.Unlock()
		delete(f.due, next)
		f.last = f.now()
		draw := f.ui.Cards.Reconcile
		if strings.HasPrefix(next, "run-") {
			draw = f.ui.Replies.Reconcile
		}
		f.looks++
		ctx := f.t.Context()
		if next == f.awaited {
			ctx = context.WithValue(ctx, awaitedKey{}, true)
		}
		if err := draw(ctx, next); err != nil {
			var later *slackapi.LaterError
			require.ErrorAs(f.t, err, &later)
			f.due[next] = f.now().Add(max(later.After, 10*time.Millisecond))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if until.After(f.at) && until.Before(f.at.Add(time.Hour)) {
		f.at = until
	}
}

// most is how many of these messages a channel got in any minute.
func (f *flood) most(channel string, kinds ...string) int {
	all := slices.DeleteFunc(slices.Clone(f.posted[channel]), func(m floodedMessage) bool { return !slices.Contains(kinds, m.kind) })
	most := 0
	for i, m := range all {
		n := 0
		for _, x := range all[i:] {
			if x.at.Sub(m.at) < time.Minute {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// reachable are the requests that a person reaches from what is posted in a
// channel: from cards, and from the digests that list them.
func (f *flood) reachable(user, channel string, threads ...string) map[approvals.BatchID]bool {
	f.t.Helper()
	found := map[approvals.BatchID]bool{}
	for _, thread := range append(threads, "") {
		all, err := f.slack.Messages(user, channel, thread)
		if errors.Is(err, slacksim.ErrNoSuch) {
			return found
		}
		require.NoError(f.t, err)
		for _, m := range all {
			for _, a := range m.Actions() {
				for field := range strings.SplitSeq(a.Value, "|") {
					if strings.HasPrefix(field, "batch-") {
						found[approvals.BatchID(field)] = true
					}
				}
				if strings.HasPrefix(a.Value, "digest-") {
					raw, _, err := f.store.Memo(f.t.Context(), a.Value, "digest")
					require.NoError(f.t, err)
					var memo struct {
						Body struct {
							Requests map[approvals.BatchID]struct {
								Tools map[string]int `json:"t"`
							} `json:"requests"`
						} `json:"body"`
					}
					require.NoError(f.t, json.Unmarshal(raw, &memo))
					for id, r := range memo.Body.Requests {
						if len(r.Tools) > 0 {
							found[id] = true
						}
					}
				}
			}
		}
	}
	return found
}

var soak = flag.Bool("soak", false, "measure a thousand calls, not a hundred and fifty")

// A thousand calls of two hundred runs within a minute, in one channel, each of
// which twenty people are asked to approve. Without -soak it is less of it all.
func TestAThousandCallsInAMinuteStayReadableAndReachable(t *testing.T) {
	t.Parallel()
	runs, each, people := 30, 5, 4
	if *soak {
		runs, people = 200, 20
	}
	f := newFlood(t, people, 0)
	start := f.now()
	asks := approvals.Requirement{
		Quorums: []approvals.Quorum{{Name: "many", Need: 1, From: approvals.From{Groups: []approvals.GroupID{"S0MANY"}}}}, Direct: approvals.DirectEveryone,
	}
	var batches []approvals.Batch
	var threads []string
	for n := range runs {
		f.goes(start.Add(time.Duration(n) * time.Minute / time.Duration(runs)))
		b := f.request(n, each, asks)
		batches = append(batches, b)
		run, err := f.store.Run(t.Context(), b.Run)
		require.NoError(t, err)
		threads = append(threads, run.Origin.Root)
	}
	f.goes(start.Add(time.Hour))
	require.Empty(t, f.due, "everything is drawn")

	require.LessOrEqual(t, f.most(ops, "batch"), 10, "cards in the channel in any minute")
	digests := 0
	for _, m := range f.posted[ops] {
		if m.kind == "digest" {
			digests++
		}
	}
	worst := 0
	for n := range people {
		worst = max(worst, f.most(fmt.Sprintf("D0P%03d", n), "batch", "digest", "reply"))
	}
	require.LessOrEqual(t, worst, 10, "messages to a person in any minute")
	require.Positive(t, worst)
	t.Logf("channel: %d cards, %d digests, %d replies in their threads; at most %d cards a minute",
		f.most(ops, "batch"), digests, len(f.posted[ops])-f.most(ops, "batch")-digests, f.most(ops, "batch"))
	t.Logf("person: at most %d messages a minute, %d in all", worst, len(f.posted["D0P000"]))
	t.Logf("calls to Slack: %v; 429s: %v", f.calls, f.limits)
	t.Logf("everything is drawn %s after the first request; %d looks at %d documents", f.last.Sub(start), f.looks, 2*runs)
	require.Less(t, f.last.Sub(start), time.Duration(runs)*4*time.Second, "everything is drawn")
	require.Less(t, f.looks, 60*runs, "who has to wait does not look again and again")

	open := map[approvals.BatchID]bool{}
	for _, b := range batches {
		open[b.ID] = true
	}
	require.Equal(t, open, f.reachable(bob, ops, threads...), "from the channel")
	require.Equal(t, open, f.reachable("U0P000", "D0P000"), "from the direct messages")
	require.Equal(t, open, f.listed("S0MANY"), "from the Home")
}

// listed are the requests that those in the group find in their lists.
func (f *flood) listed(group approvals.GroupID) map[approvals.BatchID]bool {
	f.t.Helper()
	listed := map[approvals.BatchID]bool{}
	for cursor, first := approvals.Cursor(""), true; first || cursor != ""; first = false {
		var page []approvals.Batch
		var err error
		page, cursor, err = f.store.Inbox(f.t.Context(), []approvals.ListKey{approvals.WaitsForGroup(group)}, cursor, 64)
		require.NoError(f.t, err)
		for _, b := range page {
			listed[b.ID] = true
			for _, a := range b.Approvals {
				require.Equal(f.t, approvals.Pending, a.Status, "nothing is decided because it is many")
			}
		}
	}
	return listed
}

// Five hundred decisions on a hundred requests in a moment are one redraw of
// each card.
func TestManyDecisionsOfAMomentAreOneRedrawOfEachCard(t *testing.T) {
	t.Parallel()
	f := newFlood(t, 1, 1000)
	asks := approvals.Requirement{Quorums: []approvals.Quorum{{Name: "many", Need: 1, From: approvals.From{Groups: []approvals.GroupID{"S0MANY"}}}}}
	var batches []approvals.Batch
	for n := range 100 {
		batches = append(batches, f.request(n, 5, asks))
	}
	f.goes(f.now().Add(10 * time.Minute))
	require.Empty(t, f.due)
	who := approvals.Principal{User: "U0P000", Groups: []approvals.GroupID{"S0MANY"}, GroupsAt: f.now()}
	for _, b := range batches {
		for _, a := range b.Approvals {
			_, err := f.desk.Decide(t.Context(), b.ID, approvals.RequestID(string(b.ID)+string(a.Call.ID)), approvals.Decide{Decision: approvals.Decision{
				Call: a.Call.ID, By: who, Verdict: approvals.Approve, Digest: a.Call.Digest, At: f.now(),
			}})
			require.NoError(t, err)
			f.due[string(b.ID)] = f.now()
		}
	}
	f.goes(f.now().Add(10 * time.Minute))
	require.Empty(t, f.due)
	require.Equal(t, 100, f.calls["chat.update"])
}
