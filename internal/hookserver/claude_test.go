package hookserver_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/hookserver"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/intake/intaketest"
)

func TestAHeldCallRunsOnceItIsApproved(t *testing.T) {
	w := newWorld(t)
	q, answer := w.later(bash("t1", "make deploy"))
	b, err := w.store.Batch(t.Context(), q.Batch)
	require.NoError(t, err)
	require.Equal(t, "/srv/app", b.Approvals[0].Place.Cwd, "people see where it runs")
	require.JSONEq(t, `{"command":"make deploy","description":"x"}`, string(q.Calls[0].Args))
	w.decide(q, approvals.Approve, "")
	got := <-answer
	require.Equal(t, "PreToolUse", got.Event)
	require.Equal(t, "allow", got.Decision, got.Reason)
	require.JSONEq(t, `{"command":"make deploy","description":"x"}`, string(got.Input), "another hook may have changed it meanwhile")
	require.False(t, w.stands(q.ID).ClaimedAt.IsZero(), "the decision is used before the answer is sent")
}

func TestACardQuotesWhichSubAgentAsks(t *testing.T) {
	w := newWorld(t)
	of := func(use, id string) string {
		return strings.Replace(bash(use, "make deploy"), `{`, `{"agent_id":"`+id+`","agent_type":"Explore",`, 1)
	}
	q, answer := w.later(of("t1", "a1"))
	b, err := w.store.Batch(t.Context(), q.Batch)
	require.NoError(t, err)
	require.Equal(t, `The sub-agent "Explore" (id "a1") made this call.`, b.Said.Text)
	same, other := w.later(of("t2", "a2"))
	require.Equal(t, q.ID, same.ID, "the same call of another sub-agent joins the request")
	w.decide(q, approvals.Approve, "")
	require.ElementsMatch(t, []string{"allow", "deny"}, []string{(<-answer).Decision, (<-other).Decision}, "and runs once")
}

func TestADenialCarriesItsReason(t *testing.T) {
	w := newWorld(t)
	q, answer := w.later(bash("t1", "make deploy"))
	w.decide(q, approvals.Deny, "not before the freeze ends")
	got := <-answer
	require.Equal(t, "deny", got.Decision)
	require.Contains(t, got.Reason, "not before the freeze ends")
}

func TestWhatPeopleChangedIsWhatRuns(t *testing.T) {
	w := newWorld(t)
	q, answer := w.later(bash("t1", "make deploy"))
	w.edit(q, `{"command":"make -n deploy"}`)
	w.decide(q, approvals.Approve, "")
	got := <-answer
	require.Equal(t, "allow", got.Decision, got.Reason)
	require.JSONEq(t, `{"command":"make -n deploy"}`, string(got.Input))
}

// Claude Code takes updatedInput for the answer of the person at the terminal where a
// tool needs one.
func TestTheAnswerAboutAToolThatAsksItsPersonNamesNoInput(t *testing.T) {
	for _, tool := range []string{"AskUserQuestion", "ExitPlanMode", "mcp__db__drop"} {
		w := newWorld(t)
		q, answer := w.later(body("PreToolUse", "t1", tool, `{"a":1}`))
		w.decide(q, approvals.Approve, "")
		got := <-answer
		require.Equal(t, "allow", got.Decision, got.Reason)
		require.Nil(t, got.Input)
	}
}

func TestThePolicyAnswersAloneWhereItNeedsNobody(t *testing.T) {
	w := newWorld(t)
	permitted := w.now("", body("PreToolUse", "t1", "Read", `{"file_path":"/a"}`))
	require.Equal(t, "allow", permitted.Decision)
	require.Nil(t, permitted.Input)
	refused := w.now("", body("PreToolUse", "t2", "Never", `{}`))
	require.Equal(t, "deny", refused.Decision)
	require.Contains(t, refused.Reason, "not on Fridays")
}

func TestAHoldEndsWithADenialThatAsksToAskAgain(t *testing.T) {
	w := newWorld(t)
	got := w.now("?hold=1s", bash("t1", "make deploy"))
	q := <-w.watch.asked
	require.Equal(t, "deny", got.Decision)
	require.Contains(t, got.Reason, "Pending")
	require.Contains(t, got.Reason, string(q.ID))
	require.Equal(t, intake.OutcomePending, w.stands(q.ID).Outcome, "people may still decide")

	w.decide(q, approvals.Approve, "")
	require.Equal(t, "allow", w.now("", bash("t2", "make deploy")).Decision, "the same call finds the decision")
	require.Equal(t, q.ID, (<-w.watch.asked).ID)

	again, answer := w.later(bash("t3", "make deploy"))
	require.NotEqual(t, q.ID, again.ID, "a decision is for one execution")
	w.decide(again, approvals.Deny, "once is enough")
	require.Equal(t, "deny", (<-answer).Decision)
}

func TestADecisionIsForItsSession(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, "deny", w.now("?hold=1s", bash("t1", "make deploy")).Decision)
	q := <-w.watch.asked
	w.decide(q, approvals.Approve, "")
	other := `{"session_id":"s-2","cwd":"/srv/app","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"make deploy","description":"x"},"tool_use_id":"t1"}`
	require.Contains(t, w.now("?hold=1s", other).Reason, "Pending")
	require.NotEqual(t, q.ID, (<-w.watch.asked).ID)
}

func TestADeferredCallIsOptIn(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, "deny", w.now("?hold=1s", bash("t1", "make a")).Decision)
	require.Equal(t, "defer", w.now("?hold=1s&pending=defer", bash("t2", "make b")).Decision)
	<-w.watch.asked
	q := <-w.watch.asked
	w.now("?pending=defer", body("SessionEnd", "", "", "{}"))
	require.Equal(t, intake.OutcomePending, w.stands(q.ID).Outcome, "the session comes back for it")
	w.decide(q, approvals.Approve, "")
	require.Equal(t, "allow", w.now("?hold=1s&pending=defer", bash("t2", "make b")).Decision)
}

func TestACallerThatIsGoneLeavesNoOpenCard(t *testing.T) {
	for query, outcome := range map[string]intake.Outcome{"": intake.OutcomeWithdrawn, "?late=keep": intake.OutcomePending} {
		t.Run(string(outcome), func(t *testing.T) {
			w := newWorld(t)
			ctx, leave := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			go func() {
				_, err := w.ask(ctx, query, token, bash("t1", "make deploy"))
				failed <- err
			}()
			q := <-w.watch.asked
			leave()
			require.ErrorIs(t, <-failed, context.Canceled)
			require.Equal(t, q.ID, <-w.watch.gone)
			require.Equal(t, outcome, w.stands(q.ID).Outcome)
			require.True(t, w.stands(q.ID).ClaimedAt.IsZero())
			if outcome == intake.OutcomeWithdrawn {
				require.Equal(t, intake.CallerGone, w.reason(q))
			}
		})
	}
}

func TestAServerThatStopsAnswersWhatItHolds(t *testing.T) {
	w := newWorld(t)
	q, answer := w.later(bash("t1", "make deploy"))
	w.hooks.Drain()
	require.Contains(t, (<-answer).Reason, "Pending")
	require.Equal(t, intake.OutcomePending, w.stands(q.ID).Outcome)
}

// hang is an intake that does not even mind that its time is over.
type hang struct{ hookserver.Intake }

func (hang) Ask(context.Context, intake.Client, intake.Ask) (intake.Request, error) { select {} }

// broken is an intake that says yes without a request.
type broken struct{ hookserver.Intake }

func (broken) Ask(context.Context, intake.Client, intake.Ask) (intake.Request, error) {
	return intake.Request{State: intake.StateSettled}, nil
}

func TestEveryFailureOfTheHookIsADenial(t *testing.T) {
	good := bash("t1", "make deploy")
	with := func(i func(hookserver.Intake) hookserver.Intake) func(*hookserver.Config) {
		return func(c *hookserver.Config) {
			c.Intake = i(c.Intake)
			c.Handling = 50 * time.Millisecond
		}
	}
	failing := func(err error) func(*hookserver.Config) {
		return func(c *hookserver.Config) {
			c.Intake = &watched{Intake: c.Intake, fail: func() error { return err }}
		}
	}
	for name, c := range map[string]struct {
		query, token, body string
		change             func(*hookserver.Config)
		says               string
	}{
		"no token":                     {"", "", good, nil, "no bearer token"},
		"another token":                {"", "what", good, nil, "proves no agent"},
		"an agent without the door":    {"", "api-token", good, nil, "does not list the door hooks"},
		"no body":                      {"", token, "", nil, "not JSON"},
		"a body that is cut off":       {"", token, good[:40], nil, "not JSON"},
		"a key twice":                  {"", token, `{"hook_event_name":"PreToolUse","hook_event_name":"SessionEnd"}`, nil, "not JSON"},
		"a key twice in the arguments": {"", token, bash("t1", `a","command":"b`), nil, "not JSON"},
		"a list":                       {"", token, `[]`, nil, "not a JSON object"},
		"no event":                     {"", token, `{}`, nil, "does not name its event"},
		"no session":                   {"", token, `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}}`, nil, "names no session"},
		"arguments that are a list":    {"", token, body("PreToolUse", "t", "Bash", `[1]`), nil, "cannot be asked about"},
		"a number for a session":       {"", token, `{"hook_event_name":"PreToolUse","session_id":4}`, nil, "session_id"},
		"no arguments":                 {"", token, `{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_use_id":"t"}`, nil, "or no input"},
		"an option that is none":       {"?hodl=9m", token, good, nil, "and nothing else"},
		"a hold that is none":          {"?hold=-1s", token, good, nil, "must be a duration"},
		"another hook":                 {"/../gemini", token, good, nil, "no hook at this URL"},
		"a name of another host":       {"", token, good, func(c *hookserver.Config) { c.Refuses = func(*http.Request) string { return "wrong host" } }, "wrong host"},
		"a store that fails":           {"", token, good, failing(errors.New("redis: dial 10.0.0.1")), "cannot answer now"},
		"too many requests":            {"", token, good, failing(&intake.LimitError{What: "open requests", Limit: 3, RetryAfter: time.Second}), "at most 3 open requests"},
		"a request without a call":     {"", token, good, with(func(hookserver.Intake) hookserver.Intake { return broken{} }), "something is wrong"},
		"an intake that hangs":         {"?hold=1s", token, good, with(func(hookserver.Intake) hookserver.Intake { return hang{} }), "took too long"},
		"a panic": {"", token, good, func(c *hookserver.Config) {
			c.Intake = &watched{Intake: c.Intake, fail: func() error { panic("bug") }}
		}, "something is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			var changes []func(*hookserver.Config)
			if c.change != nil {
				changes = append(changes, c.change)
			}
			w := newWorld(t, changes...)
			got, err := w.ask(t.Context(), c.query, c.token, c.body)
			require.NoError(t, err)
			require.Equal(t, "PreToolUse", got.Event)
			require.Equal(t, "deny", got.Decision)
			require.Contains(t, got.Reason, c.says)
			require.NotContains(t, got.Reason, "redis")
		})
	}
}

func TestAHookThatIsHeldTooOftenIsADenial(t *testing.T) {
	w := newWorld(t, func(c *hookserver.Config) { c.Holds = 1 })
	q, answer := w.later(bash("t1", "make a"))
	require.Contains(t, w.now("", bash("t2", "make b")).Reason, "1 calls that wait")
	w.decide(q, approvals.Approve, "")
	require.Equal(t, "allow", (<-answer).Decision)
}

// A rule whose check does not answer is no fault of this program, and the approval stays
// usable.
func TestAnApprovalThatARuleCannotJudgeNowIsKept(t *testing.T) {
	w := newWorld(t)
	q, answer := w.later(bash("t1", "make deploy"))
	w.policy.Set("Bash", approvals.Ask{Requirement: intaketest.Needs(1), Unjudged: true})
	w.decide(q, approvals.Approve, "")
	got := <-answer
	require.Equal(t, "deny", got.Decision)
	require.Contains(t, got.Reason, "cannot judge the call now; ask again with the same call")
	require.NotContains(t, w.log.String(), "level=ERROR")
	require.Contains(t, w.log.String(), `level=WARN msg="a call cannot be claimed now"`)

	w.policy.Set("Bash", approvals.Ask{Requirement: intaketest.Needs(1)})
	require.Equal(t, "allow", w.now("", bash("t2", "make deploy")).Decision)
}

func TestAnApprovalThatThePolicyRefusesByNowDoesNotRun(t *testing.T) {
	w := newWorld(t)
	q, answer := w.later(bash("t1", "make deploy"))
	w.policy.Set("Bash", approvals.Refuse{Reason: "the freeze began"})
	w.decide(q, approvals.Approve, "")
	got := <-answer
	require.Equal(t, "deny", got.Decision)
	require.Contains(t, got.Reason, "the freeze began")
}
