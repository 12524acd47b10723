package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/intake"
)

// elsewhere is an agent that asks over the HTTP API of whichever bot answers.
type elsewhere struct {
	r       *rollout
	bots    []*remote
	next    int // the bot that is asked next
	open    []remoteCall
	ran     int
	refused int // requests that an older bot did not serve
}

// A remoteCall is one that people decide about and the agent runs.
type remoteCall struct{ id, path string }

// newElsewhere opens the HTTP API of each bot.
func newElsewhere(r *rollout) *elsewhere {
	e := &elsewhere{r: r}
	common := r.config
	for _, u := range r.bots {
		r.config = common
		e.bots = append(e.bots, r.listen())
		u.config = r.config
	}
	return e
}

// do calls the API of the nth bot. Only an older one may not serve it.
func (e *elsewhere) do(n int, method, path, body string) (status int, a approval) {
	e.r.t.Helper()
	status, a = e.bots[n].do(method, path, body)
	if status >= http.StatusInternalServerError {
		version, log := e.r.bots[n].process()
		require.NotEqual(e.r.t, e.r.now, version, "%s %s: %d\n%s", method, path, status, log)
	}
	return status, a
}

// calls calls the API of one bot after the other until one serves it.
func (e *elsewhere) calls(method, path, body string) (status int, a approval) {
	e.r.t.Helper()
	e.r.until(method+" "+path, func() bool {
		e.next = (e.next + 1) % len(e.bots)
		status, a = e.do(e.next, method, path, body)
		if status >= http.StatusInternalServerError {
			e.refused++
		}
		return status < http.StatusInternalServerError
	})
	return status, a
}

// asks asks about two calls, of which people decide about one at once.
func (e *elsewhere) asks() {
	e.r.t.Helper()
	for range 2 {
		path := fmt.Sprintf("/srv/%d.csv", e.ran+len(e.open))
		status, a := e.calls(http.MethodPost, "/v1/approvals",
			`{"external_id":"`+path+`","calls":[{"id":"c1","tool":"delete_file","args":{"path":"`+path+`"},"reason":"It is old."}]}`)
		require.Equal(e.r.t, http.StatusCreated, status)
		e.open = append(e.open, remoteCall{a.ID, path})
	}
	last := len(e.open) - 1
	e.run(e.open[last])
	e.open = e.open[:last]
}

// decides has people decide about all that is open.
func (e *elsewhere) decides() {
	e.r.t.Helper()
	for _, c := range e.open {
		e.run(c)
	}
	e.open = nil
}

// run has people approve a call while the agent waits at each bot, and the agent claim it
// at all of them at once. One claim succeeds.
func (e *elsewhere) run(c remoteCall) {
	t := e.r.t
	t.Helper()
	at := "/v1/approvals/" + c.id
	var all sync.WaitGroup
	for n := range e.bots {
		all.Go(func() { e.do(n, http.MethodGet, at+"?wait=50s", "") })
	}
	people := newRequest(e.r.sim, e.r.records)
	e.r.until("the approval of "+c.path, func() bool {
		for _, m := range e.r.sim.thread(bob, "") {
			if says(c.path)(m) {
				people.tells(bob, m, c.path, "Approve", false)
			}
		}
		_, a := e.calls(http.MethodGet, at, "")
		return a.Status == "settled"
	})
	all.Wait()
	claims := 0
	e.r.until("the claim of "+c.path, func() bool {
		statuses := make([]int, len(e.bots))
		for n := range e.bots {
			all.Go(func() { statuses[n], _ = e.do(n, http.MethodPost, at+"/calls/c1/claim", "") })
		}
		all.Wait()
		for _, status := range statuses {
			if status == http.StatusOK {
				claims++
			}
		}
		return claims > 0
	})
	require.Equal(t, 1, claims, c.path)
	status, _ := e.calls(http.MethodPost, at+"/calls/c1/result", `{"state":"ran","took_ms":40}`)
	require.Equal(t, http.StatusOK, status)
	e.ran++
}

// told returns of how many calls the nth bot lists all events, in order and each once.
// It reads from the first event until it knows of all that ran, or the stream ends.
func (e *elsewhere) told(n int) (calls int) {
	t, bot := e.r.t, e.bots[n]
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, bot.url+"/v1/events", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+bot.token)
	req.Header.Set("Last-Event-ID", "0-1")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	seen := map[string][]string{}
	for lines := bufio.NewScanner(resp.Body); calls < e.ran && lines.Scan(); {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is {
			continue
		}
		var event struct{ Type, Approval string }
		require.NoError(t, json.Unmarshal([]byte(data), &event))
		seen[event.Approval] = append(seen[event.Approval], event.Type)
		if event.Type == intake.EventReported {
			require.Equal(t, []string{
				intake.EventCreated, intake.EventDecided, intake.EventCall, intake.EventSettled, intake.EventClaimed, intake.EventReported,
			}, seen[event.Approval])
			calls++
		}
	}
	return calls
}
