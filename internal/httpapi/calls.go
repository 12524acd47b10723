package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/httpapi/format"
	"github.com/countersign/countersign/internal/intake"
)

// claim is POST /v1/approvals/{id}/calls/{call}/claim.
func (a *API) claim(c caller) (answer, error) {
	if _, err := c.object(); err != nil {
		return answer{}, err
	}
	got, err := a.c.Intake.Claim(c.r.Context(), c.Client, c.id(), c.call())
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, wireClaim{
		Call: got.Call, Tool: got.Tool, Digest: digest(got.Digest), ClaimedAt: got.ClaimedAt.UTC(), wireArgs: argsOf(got.Args), Receipt: got.Receipt,
	})
}

// result is POST /v1/approvals/{id}/calls/{call}/result: what became of a call
// that was claimed, or the result of one that is to be fulfilled.
func (a *API) result(c caller) (answer, error) {
	doc, err := c.object("state", "took_ms", "words", "excerpt", "result")
	if err != nil {
		return answer{}, err
	}
	if v, fulfilled := doc["result"]; fulfilled {
		if len(doc) > 1 {
			return answer{}, &format.RequestError{At: "/result", Problem: "is of a call that is to be fulfilled; a report has state instead"}
		}
		return a.fulfill(c, v)
	}
	r, err := readReport(doc)
	if err != nil {
		return answer{}, err
	}
	q, err := a.c.Intake.Report(c.r.Context(), c.Client, c.id(), c.call(), r)
	if err != nil {
		return answer{}, err
	}
	return c.reply(http.StatusOK, q)
}

func readReport(doc map[string]format.Value) (intake.Report, error) {
	var r intake.Report
	if doc["state"].Raw == nil {
		return r, &format.RequestError{At: "/state", Problem: "is missing: the report of a claimed call has state (ran, failed or not_run), and an external call has result instead"}
	}
	state, err := doc["state"].Text(maxName)
	if err != nil {
		return r, err
	}
	r.State = approvals.ExecutionState(state)
	if !slices.Contains([]approvals.ExecutionState{approvals.Ran, approvals.RanFailed, approvals.NotRun}, r.State) {
		return r, &format.RequestError{At: "/state", Problem: "must be ran, failed or not_run"}
	}
	if took := doc["took_ms"]; took.Raw != nil {
		ms, err := strconv.ParseUint(string(took.Raw), 10, 40)
		if err != nil {
			return r, &format.RequestError{At: took.At, Problem: "must be a whole number of milliseconds"}
		}
		r.Took = time.Duration(ms) * time.Millisecond
	}
	if r.Words, err = doc["words"].Text(maxReport); err != nil {
		return r, err
	}
	r.Excerpt, err = doc["excerpt"].Text(maxReport)
	return r, err
}

// maxReport is how many bytes a report may say; the card shows the beginning.
const maxReport = 16 << 10

func (a *API) fulfill(c caller, v format.Value) (answer, error) {
	doc, err := encode(map[string]map[string]json.RawMessage{"calls": {"r": v.Raw}})
	if err != nil {
		return answer{}, err
	}
	var results approvals.DeferredToolResults
	if err := json.Unmarshal(doc, &results); err != nil {
		return answer{}, &format.RequestError{At: v.At, Problem: "is no result of a call: " + strings.TrimPrefix(plain(err), `calls: "r": `)}
	}
	err = a.c.Intake.Fulfill(c.r.Context(), c.Client, c.id(), c.call(), results.Calls["r"])
	if errors.Is(err, approvals.ErrSettled) { // the request may wait for other calls
		return answer{}, refuse(kindSettled, "the call has another result, or it ended without one; this result does not count")
	}
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, map[string]any{"call": c.call(), "outcome": intake.OutcomeFulfilled})
}

// waiting is GET /v1/waiting-calls: a page of the external calls of other agents
// that the agent may fulfill.
func (a *API) waiting(c caller) (answer, error) {
	q, err := c.query("after", "limit")
	if err != nil {
		return answer{}, err
	}
	most, err := limit(q)
	if err != nil {
		return answer{}, err
	}
	after := q.Get("after")
	if len(after) > maxCursor {
		return answer{}, &format.RequestError{At: "after", Problem: "must be next of an answer before"}
	}
	all, next, err := a.c.Intake.Waiting(c.r.Context(), c.Client, approvals.Cursor(after), most)
	if err != nil {
		return answer{}, err
	}
	doc := struct {
		Calls []wireWaiting    `json:"calls"`
		Next  approvals.Cursor `json:"next,omitempty"`
	}{[]wireWaiting{}, next}
	for _, w := range all {
		doc.Calls = append(doc.Calls, waitingOf(w))
	}
	return reply(http.StatusOK, doc)
}

// maxCursor is how many bytes the place of a page may have. Ours have fewer.
const maxCursor = 1 << 10

// withOutcomes adds to a refusal because a request is settled, how it stands.
func (a *API) withOutcomes(c caller, err error) error {
	if !errors.Is(err, approvals.ErrSettled) {
		return err
	}
	q, again := a.c.Intake.Get(c.r.Context(), c.Client, c.id())
	if again != nil {
		return again
	}
	return refuse(kindSettled, "").with("outcomes", outcomes(q))
}

func outcomes(q intake.Request) map[approvals.ToolCallID]intake.Outcome {
	out := map[approvals.ToolCallID]intake.Outcome{}
	for _, c := range q.Calls {
		out[c.ID] = c.Outcome
	}
	return out
}
