package hookserver_test

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/hook"
	"github.com/countersign/countersign/internal/httpapi"
	"github.com/countersign/countersign/internal/intake"
)

// commands is the HTTP API on the store of the world, for the command hook.
func (w *world) commands() *httptest.Server {
	w.Helper()
	agents := []bearer.Agent{{Client: claude, Doors: []intake.Door{intake.DoorAPI}, Tokens: []bearer.Sum{bearer.SumOf(token)}}}
	api, err := httpapi.New(httpapi.Config{
		Intake: whole{w.intake, w.watch}, Now: time.Now, Log: w.logger(),
		Guard: bearer.New(bearer.Config{Agents: func() []bearer.Agent { return agents }, Now: time.Now, Log: w.logger()}),
	})
	require.NoError(w, err)
	server := httptest.NewServer(api)
	w.Cleanup(server.Close)
	w.Cleanup(api.Drain)
	return server
}

// The command hook speaks the HTTP API: here it speaks the real one.
func TestTheCommandHookKeepsToTheAPI(t *testing.T) {
	w := newWorld(t)
	api := w.commands()
	call := func(question string, hold time.Duration) string {
		var out bytes.Buffer
		err := hook.Run(t.Context(), hook.Config{URL: api.URL, Token: token, Kind: hook.ClaudeCode, Hold: hold, Now: time.Now}, strings.NewReader(question), &out)
		if err != nil {
			return err.Error()
		}
		return out.String()
	}
	later := func(question string) (intake.Request, <-chan string) {
		answer := make(chan string, 1)
		go func() { answer <- call(question, time.Minute) }()
		return <-w.watch.asked, answer
	}

	q, answer := later(bash("t1", "make deploy"))
	w.edit(q, `{"command":"make -n deploy"}`)
	w.decide(q, approvals.Approve, "")
	require.Contains(t, <-answer, `"updatedInput":{"command":"make -n deploy"}`)
	require.JSONEq(t, `{}`, call(body("PostToolUse", "t1", "Bash", `{"command":"make -n deploy"}`), 0))
	require.Equal(t, approvals.Ran, w.stands(q.ID).Report.State)

	q, answer = later(bash("t2", "make test"))
	w.decide(q, approvals.Deny, "not today")
	require.Contains(t, <-answer, "not today")

	require.Contains(t, call(bash("t3", "make install"), time.Second), "Pending")
	q = <-w.watch.asked
	require.JSONEq(t, `{}`, call(body("PostToolUse", "t4", "Bash", `{"command":"make install","description":"x"}`), 0), "another id, the same call")
	require.Equal(t, intake.OutcomeWithdrawn, w.stands(q.ID).Outcome)

	require.Contains(t, call(bash("t5", "make clean"), time.Second), "Pending")
	q = <-w.watch.asked
	require.JSONEq(t, `{}`, call(body("SessionEnd", "", "", "{}"), 0))
	require.Equal(t, intake.OutcomeWithdrawn, w.stands(q.ID).Outcome)

	require.Contains(t, call(body("PreToolUse", "t6", "Never", "{}"), 0), "not on Fridays")
	require.Contains(t, call(body("PreToolUse", "t7", "Read", "{}"), 0), `"allow"`)
}
