package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// A request is one from the mention to the answer: a batch of which two calls are
// approved and one is denied.
type request struct {
	people  *sim
	records *state.Store
	root    string
	words   string          // what was asked
	asked   time.Time       // when; a [fleet] says it
	said    map[string]bool // what people have said and was acknowledged
	// refuses says that the bot may acknowledge a click and refuse it, because Slack
	// does not say who a person is. They try again.
	refuses bool
	// underWay reports whether a process may still be at a call that is in doubt.
	underWay func() bool

	effects  sync.Mutex
	pressed  map[string]bool // tools beside which people have pressed Approve, by person
	happened map[string]int  // calls by tool and key, as what they act on saw them
	early    []string        // calls that ran before they were approved
}

func newRequest(people *sim, records *state.Store) *request {
	return &request{people: people, records: records, said: map[string]bool{}, pressed: map[string]bool{}, happened: map[string]int{}}
}

// Whom the policy asks, and what each of them says about which call. The words
// stand in the arguments.
var verdicts = []struct {
	user, call, tool string
	verdict          approvals.Verdict
}{
	{bob, "invoice-", "pay", approvals.Approve},
	{carol, "invoice-", "pay", approvals.Approve},
	{bob, "letter-", "post", approvals.Approve},
	{carol, "ledger-", "wipe", approvals.Deny},
}

const payments = `
groups: {sre: S0SRE}
default:
  why: It changes something.
  quorums: [{name: sre, need: 1, from: {groups: [sre]}}]
rules:
  - name: payments
    tools: [pay]
    ask:
      why: Money leaves.
      quorums: [{name: sre, need: 2, from: {groups: [sre]}}]
      fragile: true # there are two
`

// payTheBill is the model, for any bill that has a number.
var payTheBill = openaisim.Story{
	Name: "pay", Prompt: "pay the bill 1", Match: openaisim.Says("pay the bill"),
	Turn: func(c openaisim.Conversation) openaisim.Reply {
		if len(c.Results) == 0 {
			n := aBill.FindStringSubmatch(c.User)[1]
			return openaisim.Reply{Calls: []openaisim.Call{
				{Name: "pay", Args: `{"what":"invoice-` + n + `"}`},
				{Name: "post", Args: `{"what":"letter-` + n + `"}`},
				{Name: "wipe", Args: `{"what":"ledger-` + n + `"}`},
			}}
		}
		return openaisim.Reply{Text: finalWords}
	},
}

var aBill = regexp.MustCompile(`bill (\d+)`)

const finalWords = "That is all."

// asks has someone ask.
func (r *request) asks(what string) { r.words, r.root = what, r.people.ask(what, "") }

// thread is where it is asked.
func (r *request) thread() agentrun.ThreadID {
	return agentrun.ThreadIDOf(agentrun.Origin{Surface: "slack", Team: slacksim.TeamID, Channel: ops, Root: r.root})
}

// happens notes what a tool did.
func (r *request) happens(tool, key string, approved bool) {
	r.effects.Lock()
	defer r.effects.Unlock()
	if !approved {
		r.early = append(r.early, tool)
	}
	r.happened[tool+" "+key]++
}

// mayHappen reports whether everyone who has to approve calls of the tool has pressed
// the button.
func (r *request) mayHappen(tool string) bool {
	r.effects.Lock()
	defer r.effects.Unlock()
	for _, v := range verdicts {
		if v.tool == tool && !r.pressed[v.user+" "+tool] {
			return false
		}
	}
	return true
}

// times is how often a tool took effect. What it acts on drops a key that it knows.
func (r *request) times(tool string, idempotent bool) (n int) {
	r.effects.Lock()
	defer r.effects.Unlock()
	for what, times := range r.happened {
		if name, _, _ := strings.Cut(what, " "); name == tool {
			if idempotent {
				times = 1
			}
			n += times
		}
	}
	return n
}

// cards are the messages of the thread that show each batch.
func (r *request) cards() map[approvals.BatchID][]message {
	all := map[approvals.BatchID][]message{}
	for _, m := range r.people.thread(bob, r.root) {
		if id, _ := m.Metadata.Payload["batch"].(string); id != "" {
			all[approvals.BatchID(id)] = append(all[approvals.BatchID(id)], m)
		}
	}
	return all
}

func (r *request) answers() (n int) {
	for _, m := range r.people.thread(bob, r.root) {
		if says(finalWords)(m) {
			n++
		}
	}
	return n
}

// decides has people decide about all that is shown.
func (r *request) decides() { r.say(len(verdicts)) }

// say has people say so many things at most about what is shown.
func (r *request) say(most int) {
	r.people.t.Helper()
	for id, shown := range r.cards() {
		r.decide(id, shown[0], most)
	}
}

// decide has everyone whom the policy asks, and who is not known to be heard yet, say
// what they think. What Slack was told is heard must be stored, unless they read that it
// was refused. About a call in doubt people find out what happened. They say so many things
// at most.
func (r *request) decide(id approvals.BatchID, card message, most int) {
	r.people.t.Helper()
	for _, v := range verdicts {
		for _, a := range r.batch(id).Approvals {
			if v.tool != a.Call.Name || a.Status != approvals.Pending || most == 0 {
				continue
			}
			verdict, button, beside := v.verdict, "Approve", v.call
			switch {
			case a.InDoubt() && r.times(v.tool, false) > 0:
				verdict, button, beside = approvals.Happened, "It happened", ""
			case a.InDoubt() && r.underWay():
				continue // it may still happen: who finds out knows that no process is at it
			case a.InDoubt():
				verdict, button, beside = approvals.RunAgain, "Run it again", ""
			case verdict == approvals.Deny:
				button = "Deny"
			}
			r.effects.Lock()
			r.pressed[v.user+" "+v.tool] = r.pressed[v.user+" "+v.tool] || button == "Approve"
			r.effects.Unlock()
			key, refusals := fmt.Sprint(id, v.user, v.tool), r.refusals(v.user)
			opens := verdict == approvals.Deny || verdict == approvals.Happened
			if r.said[key] || !r.tells(v.user, card, beside, button, opens) {
				continue
			}
			if r.refuses && !r.stored(id, v.user, v.tool, verdict) {
				continue
			}
			if !r.stored(id, v.user, v.tool, verdict) {
				// While a part of a cluster is away, it is not known who they are.
				what := fmt.Sprintf("%s to read that their %s about %s, which is not stored, was refused", v.user, verdict, v.tool)
				statetest.Await(r.people.t, what, func() bool { return r.refusals(v.user) > refusals })
				continue
			}
			r.said[key], most = true, most-1
		}
	}
}

// refusals counts what the person was told of clicks that count for nothing.
func (r *request) refusals(user string) (n int) {
	for _, m := range r.people.thread(user, r.root) {
		if m.Ephemeral && strings.Contains(m.words(), "Nothing changed") {
			n++
		}
	}
	return n
}

// tells presses the button beside a call and sends the form that it may open, or that
// it opens, and reports whether both were taken. A form that an earlier attempt left
// is closed first.
func (r *request) tells(user string, card message, call, text string, opens bool) bool {
	for _, v := range r.people.views(user) {
		r.people.do(http.MethodPost, "/sim/close", map[string]any{"user": user, "view_id": v.ID, "clear": true}, &struct{}{})
	}
	for _, b := range card.buttons(call) {
		if !strings.HasPrefix(b.text, text) {
			continue
		}
		if out := r.people.press(user, card.TS, b); out.VisibleError != "" || out.Error != "" {
			return false
		}
		views := r.people.views(user)
		if len(views) == 0 {
			return !opens
		}
		values := map[string]map[string]string{}
		for _, b := range views[0].Blocks {
			if b["type"] == "input" {
				values[b["block_id"].(string)] = map[string]string{b["element"].(map[string]any)["action_id"].(string): "because"}
			}
		}
		var out struct{ Closed bool }
		r.people.do(http.MethodPost, "/sim/submit", map[string]any{"user": user, "view_id": views[0].ID, "values": values}, &out)
		return out.Closed
	}
	return false
}

// batch reads a batch. A cluster cannot be read while a primary that died has no successor.
func (r *request) batch(id approvals.BatchID) (b approvals.Batch) {
	t := r.people.t
	t.Helper()
	statetest.Await(t, "the batch to be read", func() bool {
		var err error
		if b, err = r.records.Batch(t.Context(), id); err != nil {
			require.ErrorContains(t, err, "CLUSTERDOWN")
		}
		return err == nil
	})
	return b
}

func (r *request) stored(id approvals.BatchID, user, tool string, verdict approvals.Verdict) bool {
	for _, a := range r.batch(id).Approvals {
		for _, d := range a.Decisions {
			if a.Call.Name == tool && string(d.By.User) == user && d.Verdict == verdict {
				return true
			}
		}
	}
	return false
}

// holds checks what must be true in the end, whatever has happened.
func (r *request) holds(f fault) (doubts, copies int) {
	t := r.people.t
	require.Empty(t, r.early, "ran without approval")
	require.Equal(t, 1, r.times("pay", false), "payments")
	require.Equal(t, 1, r.times("post", true), "letters: %v", r.happened)
	require.Zero(t, r.times("wipe", false), "it was denied")
	copies = r.answers() - 1
	require.GreaterOrEqual(t, copies, 0, "the answer is still there")

	thread, err := r.records.Thread(t.Context(), r.thread())
	require.NoError(t, err)
	require.Empty(t, thread.Active)
	require.Empty(t, thread.Queue)
	parked, err := state.NewDue(r.records, state.DueOptions{}).Parked(t.Context())
	require.NoError(t, err)
	require.Empty(t, parked)

	cards := r.cards()
	for id, shown := range cards {
		copies += len(shown) - 1
		b := r.batch(id)
		require.True(t, b.Settled())
		for _, m := range shown {
			require.Empty(t, m.buttons(""), "nothing is left to decide")
		}
		for _, a := range b.Approvals {
			said := map[approvals.UserID]bool{}
			for _, d := range a.Decisions {
				require.False(t, said[d.By.User], "%s decided twice", d.By.User)
				said[d.By.User] = true
			}
			if a.InDoubt() {
				doubts++
				require.True(t, f.doubts, "%s is in doubt", a.Call.Name)
				require.Equal(t, "pay", a.Call.Name, "what can be repeated is")
				continue
			}
			want := map[string]approvals.Status{"pay": approvals.Approved, "post": approvals.Approved, "wipe": approvals.Denied}[a.Call.Name]
			require.Equal(t, want, a.Status)
		}
		if doubts == 0 {
			require.Contains(t, shown[0].words(), "3 calls: 2 approved, 1 denied")
		}
	}
	require.Len(t, cards, 1+doubts)
	return doubts, copies
}

// toll is what a fault has cost.
type toll struct{ points, doubts, again, copies int }

// tollHead is the head of the table of faults in docs/architecture.md.
const tollHead = `
| fault | Redis | times | lost | doubled | in doubt | idempotent calls repeated | messages posted twice |
|---|---|---|---|---|---|---|---|`

// row is a row of that table. What is lost or doubled fails the test that prints it. What
// is negative was not counted.
func (x toll) row(what, redis string) string {
	row := fmt.Sprintf("\n| %s | %s | %d | 0 | 0 |", what, redis, x.points)
	for _, n := range []int{x.doubts, x.again, x.copies} {
		if n < 0 {
			row += " |"
			continue
		}
		row += fmt.Sprintf(" %d |", n)
	}
	return row
}

// setting is how the bots of a configuration reach Redis, and what they ask of it.
func setting(t *testing.T, path string) string {
	t.Helper()
	c, err := config.Read(path)
	require.NoError(t, err)
	servers, level := "one server", "`"+string(c.Redis.Level())+"`"
	switch {
	case c.Redis.Sentinel.Master != "":
		servers = "Sentinel"
	case c.Redis.Cluster:
		servers = "Cluster"
	}
	if c.Redis.Level() == state.Replicated {
		level += fmt.Sprintf(" on %d", c.Redis.Replicas)
	}
	return servers + ", " + level
}

// dueWork is how much work is due, now or later, by kind. What has ended is removed when
// its time is over, which is no work that is left.
func dueWork(t *testing.T, c redis.UniversalClient) map[state.Kind]int {
	t.Helper()
	left := map[state.Kind]int{}
	keys, err := keysLike(t.Context(), c, "*}:due*")
	require.NoError(t, err)
	for _, key := range keys {
		if c.Type(t.Context(), key).Val() != "zset" {
			continue
		}
		base, kind, apart := strings.Cut(key, "}:due")
		if apart && kind != "" { // in the layout of older versions
			left[state.Kind(kind[1:])] += int(c.ZCard(t.Context(), key).Val())
			continue
		}
		prefix, partition, _ := strings.Cut(base, ":{p")
		n, err := strconv.Atoi(partition)
		require.NoError(t, err)
		s, err := state.Open(t.Context(), state.Options{Client: c, Prefix: prefix, Once: true})
		require.NoError(t, err)
		for _, k := range state.Kinds() {
			ids, err := s.Timed(t.Context(), string(k), n)
			require.NoError(t, err)
			left[k] += len(ids)
		}
	}
	maps.DeleteFunc(left, func(k state.Kind, n int) bool { return n == 0 || k == state.Removals })
	return left
}

// keysLike returns the keys of all servers that match the pattern.
func keysLike(ctx context.Context, c redis.UniversalClient, pattern string) (all []string, err error) {
	cluster, is := c.(*redis.ClusterClient)
	if !is {
		return c.Keys(ctx, pattern).Result()
	}
	var mu sync.Mutex
	err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		keys, err := node.Keys(ctx, pattern).Result()
		mu.Lock()
		defer mu.Unlock()
		all = append(all, keys...)
		return err
	})
	return all, err
}
