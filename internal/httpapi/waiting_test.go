package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/intake"
)

const exporterToken = "exporter-token"

// fulfillers is a world in which other gives the results of render, and exporter
// those of export.
func fulfillers(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.policy.Set("export", approvals.Permit{})
	agents := append(*w.agents.Load(), bearer.Agent{
		Client: intake.Client{Name: "exporter", Owner: "carol", Channel: "C1", Fulfills: []intake.Fulfills{{Agent: "claude", Tool: "export"}}},
		Doors:  []intake.Door{intake.DoorAPI}, Tokens: []bearer.Sum{bearer.SumOf(exporterToken)},
	})
	w.agents.Store(&agents)
	return w
}

// A waitingPage is what a fulfiller reads.
type waitingPage struct {
	Calls []struct {
		Approval, Call, Agent, Tool, Cwd string
		Text                             string `json:"args_text"`
	}
	Next string
}

func (w *world) waiting(token, query string) waitingPage {
	w.Helper()
	got := w.do(http.MethodGet, "/v1/waiting-calls"+query, token, "")
	require.Equal(w, http.StatusOK, got.status, string(got.body))
	var p waitingPage
	got.json(w.T, &p)
	return p
}

func TestAFulfillerSeesTheCallsThatItMayFulfill(t *testing.T) {
	w := fulfillers(t)
	q := w.post(`{"calls":[{"id":"c1","tool":"render","external":true,"cwd":"/srv","args":{"n": 9007199254740993}},` +
		`{"id":"c2","tool":"export","external":true,"args":{}},{"id":"c3","tool":"refund"}]}`)
	require.Empty(t, w.waiting(claudeToken, "").Calls, "not those of the agent that asks")
	require.Equal(t, "c2", w.waiting(exporterToken, "").Calls[0].Call)
	require.Len(t, w.waiting(exporterToken, "").Calls, 1)
	got := w.waiting(otherToken, "")
	require.Len(t, got.Calls, 1)
	require.Empty(t, got.Next)
	c := got.Calls[0]
	require.Equal(t, string(q.ID)+" c1 claude render /srv", fmt.Sprint(c.Approval, " ", c.Call, " ", c.Agent, " ", c.Tool, " ", c.Cwd))
	require.Equal(t, `{"n": 9007199254740993}`, c.Text, "the exact bytes")

	result := w.do(http.MethodPost, "/v1/approvals/"+c.Approval+"/calls/"+c.Call+"/result", otherToken, `{"result":{"rows":12}}`)
	require.Equal(t, http.StatusOK, result.status, string(result.body))
	require.Empty(t, w.waiting(otherToken, "").Calls)
	require.Len(t, w.waiting(exporterToken, "").Calls, 1, "that of the other waits on")
	_, err := w.intake.Withdraw(t.Context(), intake.Client{Name: "claude", Owner: "alice"}, q.ID, "")
	require.NoError(t, err)
	require.Empty(t, w.waiting(exporterToken, "").Calls, "a withdrawn call waits for nobody")
}

// Its request may wait for other calls, so that it says more than that the request is settled.
func TestAResultThatDoesNotCountSaysSo(t *testing.T) {
	w := fulfillers(t)
	q := w.post(`{"calls":[{"id":"c1","tool":"render","external":true,"args":{}},{"id":"c2","tool":"export","external":true,"args":{}}]}`)
	give := func(token, call, body string) exchange {
		return w.do(http.MethodPost, "/v1/approvals/"+string(q.ID)+"/calls/"+call+"/result", token, body)
	}
	require.Equal(t, http.StatusOK, give(otherToken, "c1", `{"result":1}`).status)
	require.Equal(t, http.StatusOK, give(otherToken, "c1", `{"result":1}`).status, "the same again")
	_, err := w.intake.Withdraw(t.Context(), intake.Client{Name: "claude", Owner: "alice"}, q.ID, "")
	require.NoError(t, err)
	for call, token := range map[string]string{"c1": otherToken, "c2": exporterToken} {
		got := give(token, call, `{"result":2}`)
		require.Equal(t, http.StatusConflict, got.status, string(got.body))
		require.Contains(t, string(got.body), "the call has another result, or it ended without one; this result does not count", call)
	}
}

// A body that is right for another kind of call says so, to those who may know of the
// call; for everyone else there is no such call.
func TestAResultOfTheWrongKindSaysWhatTheCallTakes(t *testing.T) {
	w := fulfillers(t)
	q := w.post(`{"calls":[{"id":"c1","tool":"render","external":true,"args":{}},{"id":"c2","tool":"refund"}]}`)
	const report, result = `{"state":"ran"}`, `{"result":{"rows":12}}`
	for name, c := range map[string]struct {
		token, call, body string
		status            int
		says              string
	}{
		"neither":                                {claudeToken, "c2", `{}`, 422, `"at":"/state","problem":"is missing: the report of a claimed call has state (ran, failed or not_run)`},
		"no body":                                {claudeToken, "c2", ``, 422, `"at":"/state","problem":"is missing`},
		"other fields":                           {claudeToken, "c2", `{"took_ms":7}`, 422, `"at":"/state","problem":"is missing`},
		"neither, of a call that is none":        {claudeToken, "c9", `{}`, 422, `"at":"/state","problem":"is missing`},
		"a result of the agent's own call":       {claudeToken, "c2", result, 422, `"at":"/result","problem":"is for external calls of other agents`},
		"a result of its own external call":      {claudeToken, "c1", result, 404, "not-found"},
		"a report of an external call":           {otherToken, "c1", report, 422, `"at":"/state","problem":"is for calls that the agent claimed`},
		"a report of what another agent asks":    {otherToken, "c2", report, 404, "not-found"},
		"a result of what another agent asks":    {otherToken, "c2", result, 404, "not-found"},
		"a report of what a third one fulfills":  {exporterToken, "c1", report, 404, "not-found"},
		"a result of what a third one fulfills":  {exporterToken, "c1", result, 404, "not-found"},
		"a report of a call that is none":        {claudeToken, "c9", report, 404, "not-found"},
		"a result of a call that is none":        {claudeToken, "c9", result, 404, "not-found"},
		"a fulfiller's result of a call of none": {otherToken, "c9", result, 404, "not-found"},
	} {
		got := w.do(http.MethodPost, "/v1/approvals/"+string(q.ID)+"/calls/"+c.call+"/result", c.token, c.body)
		require.Equal(t, c.status, got.status, "%s: %s", name, got.body)
		require.Contains(t, string(got.body), c.says, name)
	}
}

func TestTheCallsThatWaitComeInPages(t *testing.T) {
	w := fulfillers(t)
	for i := range 5 {
		w.post(fmt.Sprintf(`{"external_id":"r%d","calls":[{"id":"c%[1]d","tool":"render","external":true,"args":{}}]}`, i))
		w.post(fmt.Sprintf(`{"external_id":"e%d","calls":[{"id":"e%[1]d","tool":"export","external":true,"args":{}}]}`, i))
	}
	var seen []string
	pages, after := 0, ""
	for {
		pages++
		require.LessOrEqual(t, pages, 5)
		p := w.waiting(otherToken, "?limit=2&after="+url.QueryEscape(after))
		require.LessOrEqual(t, len(p.Calls), 2)
		for _, c := range p.Calls {
			require.Equal(t, "render", c.Tool)
			seen = append(seen, c.Call)
		}
		if after = p.Next; after == "" {
			break
		}
	}
	require.Equal(t, []string{"c0", "c1", "c2", "c3", "c4"}, seen, "each once, the oldest first")
	require.Equal(t, 5, pages)
	for query, at := range map[string]string{"?limit=0": "limit", "?limit=201": "limit", "?limit=x": "limit", "?after=x": "after", "?after=17%7C": "after"} {
		got := w.do(http.MethodGet, "/v1/waiting-calls"+query, otherToken, "")
		require.Equal(t, http.StatusUnprocessableEntity, got.status, query)
		require.Equal(t, "invalid-request", got.kind(t))
		require.Contains(t, string(got.body), `"at":"`+at+`"`, query)
	}
}
