package hookserver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/hookserver"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/state/statetest"
)

const deploy = `{"command":"make deploy","description":"x"}`

func after(event, more string) string {
	whole := body(event, "t1", "Bash", deploy)
	return whole[:len(whole)-1] + more + "}"
}

func TestTheCardLearnsWhatBecameOfTheCall(t *testing.T) {
	for event, c := range map[string]struct {
		more  string
		state approvals.ExecutionState
		text  string
	}{
		"PostToolUse":        {`,"tool_response":{"stdout":"deployed","stderr":""}`, approvals.Ran, "deployed"},
		"PostToolUseFailure": {`,"error":"exit status 2"`, approvals.RanFailed, "exit status 2"},
		"PermissionDenied":   {`,"reason":"a rule"`, approvals.NotRun, "a rule"},
	} {
		t.Run(event, func(t *testing.T) {
			w := newWorld(t)
			q, answer := w.later(bash("t1", "make deploy"))
			w.decide(q, approvals.Approve, "")
			require.Equal(t, "allow", (<-answer).Decision)
			require.Empty(t, w.now("", after(event, c.more)))
			report := w.stands(q.ID).Report
			require.NotNil(t, report)
			require.Equal(t, c.state, report.State)
			require.Equal(t, c.text, report.Words+report.Excerpt)
			require.Empty(t, w.now("", after(event, c.more)), "it may be said again")
		})
	}
}

// A coding agent in JavaScript can cut what a tool said between the halves of a
// character.
func TestAResultThatIsCutWithinACharacterIsReported(t *testing.T) {
	cut := "\"deployed \\ud83d\""
	w := newWorld(t)
	report := func(event, more string) *intake.Report {
		q, answer := w.later(bash("t1", "make deploy"))
		w.decide(q, approvals.Approve, "")
		require.Equal(t, "allow", (<-answer).Decision)
		require.Empty(t, w.now("", after(event, more)))
		return w.stands(q.ID).Report
	}
	require.Equal(t, "deployed \ufffd", report("PostToolUse", `,"tool_response":{"stdout":`+cut+`}`).Excerpt)
	require.Equal(t, "deployed \ufffd", report("PostToolUseFailure", `,"error":`+cut).Words)
	require.Equal(t, "[\"\ufffd\"]", report("PostToolUse", `,"tool_response":["`+"\xff"+`"]`).Excerpt)

	for name, question := range map[string]string{
		"an event that decides":    body("PreToolUse", "t2", "Bash", deploy+`,"tool_response":`+cut),
		"an event twice":           after("PostToolUse", `,"tool_response":`+cut+`,"hook_event_name":"PreToolUse"`),
		"the input":                body("PostToolUse", "t2", "Bash", `{"command":`+cut+`},"tool_response":`+cut),
		"what the tool said twice": after("PostToolUse", `,"tool_response":`+cut+`,"tool_response":`+cut),
	} {
		require.Contains(t, w.now("", question).Reason, "not JSON that every reader reads alike", name)
	}
}

// The result of a call can be larger than any question: that of an edit has the whole file.
func TestALargeResultIsReported(t *testing.T) {
	large := `{"originalFile":"` + strings.Repeat(`a\\\"}]\n`, 1<<20) + `","patch":[{}]}`
	question := func(response, behind string) string {
		return strings.Replace(body("PostToolUse", "t1", "Bash", deploy), `,"tool_use_id"`, `,"tool_response":`+response+behind+`,"tool_use_id"`, 1)
	}
	w := newWorld(t, func(c *hookserver.Config) { c.Handling = time.Minute })
	for _, response := range []string{large, "[" + large + "]", `"` + strings.Repeat("a", 5<<20) + `"`} {
		q, answer := w.later(bash("t1", "make deploy"))
		w.edit(q, `{"command":"make deploy DRY=1","description":"x"}`) // only its id names it
		w.decide(q, approvals.Approve, "")
		require.Equal(t, "allow", (<-answer).Decision)
		require.Empty(t, w.now("", question(response, "")))
		require.Equal(t, approvals.Ran, w.stands(q.ID).Report.State)
	}

	for name, question := range map[string]string{
		"an event that decides":         strings.Replace(question(large, ""), "PostToolUse", "PreToolUse", 1),
		"an event that is not known":    strings.Replace(question(large, ""), "PostToolUse", "Later", 1),
		"an event twice":                question(large, `,"hook_event_name":"PreToolUse"`),
		"a result twice":                question(large, `,"tool_response":""`),
		"a large input":                 body("PostToolUse", "t1", "Bash", large),
		"a result that does not end":    question(large[:len(large)-1], ""),
		"a result with an end too many": question(large+"}", ""),
		"much behind the result":        question(large, `,"more":"`+strings.Repeat("a", 100<<10)+`"`),
	} {
		got := w.now("", question)
		require.Equal(t, "deny", got.Decision, name)
		require.Contains(t, got.Reason, "bytes", name)
	}
}

// A coding agent says so after every call, so it must not cost more the longer the
// session is.
func TestWhatBecameOfACallIsStoredAtTheSameCostInALongSession(t *testing.T) {
	shared := redisServer
	t.Cleanup(func() { redisServer = shared })
	of, ok := shared.(*redis.Client)
	require.True(t, ok)
	own, seen := redis.NewClient(of.Options()), &statetest.Trips{}
	t.Cleanup(func() { require.NoError(t, own.Close()) })
	own.AddHook(seen)
	redisServer = own
	w := newWorld(t)
	cost := func(n int) int {
		use, input := fmt.Sprintf("t%d", n), fmt.Sprintf(`{"file_path":"/%d"}`, n)
		require.Equal(t, "allow", w.now("", body("PreToolUse", use, "Read", input)).Decision)
		q := <-w.watch.asked
		seen.Taken()
		w.now("", body("PostToolUse", use, "Read", input))
		trips := len(seen.Taken())
		require.Equal(t, approvals.Ran, w.stands(q.ID).Report.State)
		return trips
	}
	first := cost(0)
	for n := range 40 {
		require.Equal(t, first, cost(n+1))
	}
}

func TestAnAnswerAtTheTerminalWithdrawsTheCard(t *testing.T) {
	for event, reason := range map[string]string{
		"PostToolUse":        "it was answered at the terminal first, and the tool ran",
		"PostToolUseFailure": "it was answered at the terminal first, and the tool ran",
		"PermissionDenied":   "it was answered at the terminal first, and the tool did not run",
		"SessionEnd":         "the session of the agent ended",
	} {
		t.Run(event, func(t *testing.T) {
			w := newWorld(t)
			q, answer := w.later(bash("t1", "make deploy"))
			require.Empty(t, w.now("", after(event, "")))
			require.Equal(t, intake.OutcomeWithdrawn, w.stands(q.ID).Outcome)
			require.Equal(t, reason, w.reason(q))
			require.Equal(t, "deny", (<-answer).Decision)
		})
	}
}

func TestEventsOfAnotherCallOrSessionChangeNothing(t *testing.T) {
	w := newWorld(t)
	q, _ := w.later(bash("t1", "make deploy"))
	w.now("", body("PostToolUse", "t2", "Bash", `{"command":"ls"}`))
	w.now("", `{"hook_event_name":"SessionEnd","session_id":"s-2"}`)
	w.now("", `{"hook_event_name":"SessionEnd"}`)
	w.now("", `{"hook_event_name":"Stop","session_id":"s-1"}`)
	got, err := w.ask(t.Context(), "", "api-token", after("SessionEnd", ""))
	require.NoError(t, err)
	require.Empty(t, got, "an event decides nothing, whoever sends it")
	require.Equal(t, intake.OutcomePending, w.stands(q.ID).Outcome)
}

func TestAPermissionRequestFindsTheOpenRequestOrSaysNothing(t *testing.T) {
	w := newWorld(t)
	request := `{"session_id":"s-1","cwd":"/srv/app","hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":` + deploy + `}`
	require.Empty(t, w.now("", request), "it opens nothing")
	require.Empty(t, w.watch.asked)

	require.Contains(t, w.now("?hold=1s", bash("t1", "make deploy")).Reason, "Pending")
	q := <-w.watch.asked
	require.Equal(t, "deny", w.now("?hold=1s", request).Request.Behavior)
	w.edit(q, `{"command":"make -n deploy"}`)
	w.decide(q, approvals.Approve, "")
	require.Empty(t, w.now("", request), "what was changed is another call")
	again, answer := w.later(bash("t2", "make deploy"))
	require.Equal(t, q.ID, again.ID)
	require.Equal(t, "allow", (<-answer).Decision)

	require.Contains(t, w.now("?hold=1s", bash("t3", "make deploy")).Reason, "Pending")
	q = <-w.watch.asked
	w.decide(q, approvals.Approve, "")
	got := w.now("", request)
	require.Equal(t, "PermissionRequest", got.Event)
	require.Equal(t, "allow", got.Request.Behavior)
	require.False(t, w.stands(q.ID).ClaimedAt.IsZero())
}
