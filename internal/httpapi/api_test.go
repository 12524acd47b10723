package httpapi_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/httpapi"
	"github.com/countersign/countersign/internal/intake/intaketest"
)

const oneCall = `{"external_id":"r1","calls":[{"id":"c1","tool":"refund","args":{"order": "R-17",  "cents": 9007199254740993},"cwd":"/srv","reason":"the customer asked"}]}`

// sent are the arguments of that call, and of one of the vectors.
const sent = `{"order": "R-17",  "cents": 9007199254740993}`

func TestARequestIsAskedDecidedClaimedAndReported(t *testing.T) {
	w := newWorld(t)
	created := w.do(http.MethodPost, "/v1/approvals", claudeToken, oneCall, "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	require.Equal(t, http.StatusCreated, created.status)
	q := w.read(created)
	require.Equal(t, "/v1/approvals/"+string(q.ID), created.header.Get("Location"))
	require.Equal(t, "pending", q.Calls[0].Outcome)
	require.Contains(t, string(created.body), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

	early := w.claim(q.ID, "c1")
	require.Equal(t, "pending", early.kind(t))
	w.decide(q.ID, "c1", approvals.Approve, "")
	q = w.read(w.get(q.ID, ""))
	require.Equal(t, "settled", q.Status)
	require.Equal(t, "approved", q.Calls[0].Outcome)
	require.Equal(t, []string{"bob"}, q.Calls[0].Approvers)

	var claim struct {
		Args json.RawMessage `json:"args"`
		Text string          `json:"args_text"`
		Sum  string          `json:"args_sha256"`
	}
	first := w.claim(q.ID, "c1")
	require.Equal(t, http.StatusOK, first.status, string(first.body))
	first.json(t, &claim)
	require.Equal(t, sent, claim.Text, "the bytes that were sent") //nolint:testifylint // every byte counts
	sum := sha256.Sum256([]byte(claim.Text))
	require.Equal(t, hex.EncodeToString(sum[:]), claim.Sum)
	require.Contains(t, string(first.body), `"cents":9007199254740993`, "no number is rounded")

	second := w.claim(q.ID, "c1")
	require.Equal(t, http.StatusConflict, second.status)
	require.Equal(t, "already-claimed", second.kind(t))
	require.Contains(t, string(second.body), "claimed_at")

	report := `{"state":"ran","took_ms":1200,"excerpt":"refunded"}`
	done := w.do(http.MethodPost, w.callPath(q.ID, "c1")+"/result", claudeToken, report)
	require.Equal(t, http.StatusOK, done.status, string(done.body))
	require.Equal(t, "ran", w.read(done).Calls[0].Report.State)
	require.Equal(t, http.StatusOK, w.do(http.MethodPost, w.callPath(q.ID, "c1")+"/result", claudeToken, report).status, "the same report again is the same")
	other := w.do(http.MethodPost, w.callPath(q.ID, "c1")+"/result", claudeToken, `{"state":"failed","words":"no"}`)
	require.Equal(t, "not-reportable", other.kind(t))
}

func (w *world) callPath(id approvals.RunID, call string) string {
	return "/v1/approvals/" + string(id) + "/calls/" + call
}

func (w *world) claim(id approvals.RunID, call string) exchange {
	w.Helper()
	return w.do(http.MethodPost, w.callPath(id, call)+"/claim", claudeToken, "")
}

func TestWhatThePolicyDecidesIsAnsweredAtOnce(t *testing.T) {
	w := newWorld(t)
	got := w.do(http.MethodPost, "/v1/approvals", claudeToken, `{"calls":[{"id":"a","tool":"free","args":{}},{"id":"b","tool":"never"}]}`)
	require.Equal(t, http.StatusOK, got.status)
	q := w.read(got)
	require.Equal(t, "settled", q.Status)
	require.Equal(t, "allowed", q.Calls[0].Outcome)
	require.Equal(t, "refused", q.Calls[1].Outcome)
	require.Equal(t, "not on Fridays", q.Calls[1].Reason)
	require.Equal(t, http.StatusOK, w.claim(q.ID, "a").status, "what is allowed is claimed like what is approved")
	no := w.claim(q.ID, "b")
	require.Equal(t, "not-approved", no.kind(t))
	require.Contains(t, string(no.body), `"outcome":"refused"`)
}

func TestARuleThatRefusesNowStopsTheClaim(t *testing.T) {
	w := newWorld(t)
	q := w.post(oneCall)
	w.decide(q.ID, "c1", approvals.Approve, "")
	w.policy.Set("refund", approvals.Refuse{Reason: "frozen"})
	got := w.claim(q.ID, "c1")
	require.Equal(t, "not-approved", got.kind(t))
	require.Contains(t, string(got.body), "frozen")
}

// A rule that cannot judge the call now, because the service that it asks does not
// answer, is no fault of this program. The decision stays usable.
func TestAClaimThatARuleCannotJudgeNowIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	q := w.post(oneCall)
	w.decide(q.ID, "c1", approvals.Approve, "")
	w.policy.Set("refund", approvals.Ask{Requirement: intaketest.Needs(1), Rule: "checked@1", Unjudged: true})
	got := w.claim(q.ID, "c1")
	require.Equal(t, "unavailable", got.kind(t))
	require.Equal(t, "5", got.header.Get("Retry-After"))
	require.Contains(t, string(got.body), "cannot judge the call now; the decision is not used")
	require.NotContains(t, w.log.String(), "level=ERROR")
	require.Contains(t, w.log.String(), `level=WARN msg="a call cannot be claimed now"`)

	w.policy.Set("refund", approvals.Ask{Requirement: intaketest.Needs(1), Rule: "checked@1"})
	require.Equal(t, http.StatusOK, w.claim(q.ID, "c1").status)
}

func TestACallThatNobodyApprovedIsNotClaimedOnceThePolicyAsks(t *testing.T) {
	w := newWorld(t)
	q := w.post(`{"calls":[{"id":"c1","tool":"free"}]}`)
	require.Equal(t, "allowed", q.Calls[0].Outcome)
	w.policy.Set("free", approvals.Ask{Requirement: intaketest.Needs(1), Rule: "asks@1"})
	got := w.claim(q.ID, "c1")
	require.Equal(t, "not-approved", got.kind(t))
	require.Contains(t, string(got.body), "nobody has approved it; ask again under another name")
	require.NotContains(t, w.log.String(), "level=ERROR")
}

// Whoever repeats the request finds it as it is, so the error says how to ask anew.
func TestADecisionThatLapsedIsAskedAboutAnewUnderAnotherName(t *testing.T) {
	w := newWorld(t)
	const named = `{"external_id":"%s","calls":[{"id":"c1","tool":"refund"}]}`
	q := w.post(fmt.Sprintf(named, "a"))
	w.decide(q.ID, "c1", approvals.Approve, "")
	w.ahead.Store(int64(24 * time.Hour))
	got := w.claim(q.ID, "c1")
	require.Equal(t, "decision-lapsed", got.kind(t))
	require.Contains(t, string(got.body), "ask again under another name")
	require.Equal(t, q.ID, w.post(fmt.Sprintf(named, "a")).ID)
	again := w.post(fmt.Sprintf(named, "b"))
	require.NotEqual(t, q.ID, again.ID)
	require.Equal(t, "pending", again.Status)
}

// Who claims a call can parse its arguments, also if the agent sent none.
func TestACallWithoutArgumentsHasAnEmptyObject(t *testing.T) {
	for name, call := range map[string]string{
		"left out": `{"id":"c1","tool":"refund"}`,
		"null":     `{"id":"c1","tool":"refund","args":null}`,
		"empty":    `{"id":"c1","tool":"refund","args":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			q := w.post(`{"external_id":"r1","calls":[` + call + `]}`)
			w.decide(q.ID, "c1", approvals.Approve, "")
			claimed := w.claim(q.ID, "c1")
			require.Equal(t, http.StatusOK, claimed.status, string(claimed.body))
			require.Contains(t, string(claimed.body), `"args":{},"args_text":"{}"`)
		})
	}
}

func TestOfManyClaimsOneCounts(t *testing.T) {
	w := newWorld(t)
	q := w.post(oneCall)
	w.decide(q.ID, "c1", approvals.Approve, "")
	var wg sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		wg.Go(func() { statuses[i] = w.claim(q.ID, "c1").status })
	}
	wg.Wait()
	count := map[int]int{}
	for _, s := range statuses {
		count[s]++
	}
	require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusConflict: 7}, count)
}

// Another agent's request, one that was never made and a call that is none are
// the same answer, byte for byte.
func TestARequestOfAnotherAgentIsLikeOneThatDoesNotExist(t *testing.T) {
	w := newWorld(t)
	q := w.post(oneCall)
	made := string(q.ID)
	unknown := made[:len(made)-6] + "aaaaaa"
	for _, path := range []string{"", "/results", "/withdraw", "/calls/c1/claim", "/calls/c1/result"} {
		method, body := http.MethodGet, ""
		switch path {
		case "/withdraw", "/calls/c1/claim":
			method = http.MethodPost
		case "/calls/c1/result":
			method, body = http.MethodPost, `{"state":"ran"}`
		}
		theirs := w.do(method, "/v1/approvals/"+made+path, otherToken, body)
		none := w.do(method, "/v1/approvals/"+unknown+path, otherToken, body)
		odd := w.do(method, "/v1/approvals/x%00y"+path, otherToken, body)
		require.Equal(t, http.StatusNotFound, theirs.status, path)
		require.Equal(t, string(none.body), string(theirs.body), path)
		require.Equal(t, string(none.body), string(odd.body), path)
	}
	const result = "/calls/c1/result"
	theirs := w.do(http.MethodPost, "/v1/approvals/"+made+result, otherToken, `{"result":1}`)
	none := w.do(http.MethodPost, "/v1/approvals/"+unknown+result, otherToken, `{"result":1}`)
	require.Equal(t, http.StatusNotFound, theirs.status)
	require.Equal(t, string(none.body), string(theirs.body), "a result")
	var list struct{ Approvals []ours }
	w.do(http.MethodGet, "/v1/approvals", otherToken, "").json(t, &list)
	require.Empty(t, list.Approvals)
	require.Equal(t, http.StatusNotFound, w.claim(q.ID, "c9").status)
}

func TestAnAgentListsItsOwnRequests(t *testing.T) {
	w := newWorld(t)
	w.post(`{"external_id":"a","group":"g","calls":[{"id":"c","tool":"free"}]}`)
	w.post(`{"external_id":"b","calls":[{"id":"c","tool":"refund"}]}`)
	for query, want := range map[string]int{"": 2, "?status=pending": 1, "?status=settled": 1, "?group=g": 1, "?external_id=b": 1, "?limit=1": 1} {
		var list struct{ Approvals []ours }
		w.do(http.MethodGet, "/v1/approvals"+query, claudeToken, "").json(t, &list)
		require.Len(t, list.Approvals, want, query)
	}
	require.Contains(t, string(w.do(http.MethodGet, "/v1/approvals?limit=100000", claudeToken, "").body), "must be between 1 and")
	for _, bad := range []string{"?status=open", "?limit=0", "?limit=x", "?limit=60000"} {
		require.Equal(t, http.StatusUnprocessableEntity, w.do(http.MethodGet, "/v1/approvals"+bad, claudeToken, "").status, bad)
	}
}

func TestAQueryThatWouldListMoreThanItsClientWantsIsRefused(t *testing.T) {
	w := newWorld(t)
	w.post(oneCall)
	for query, at := range map[string]string{
		"?group=": "group", "?external_id=": "external_id", "?status=": "status", "?group": "group", "?state=pending": "state",
		"?groups=g": "groups", "?group=g&group=h": "group", "?group=100%": "query", "?group=a;b": "query", "?wait=50s": "wait",
	} {
		var p struct {
			Detail string
			Errors []struct{ At string }
		}
		got := w.do(http.MethodGet, "/v1/approvals"+query, claudeToken, "")
		require.Equal(t, http.StatusUnprocessableEntity, got.status, query)
		got.json(t, &p)
		require.Equal(t, at, p.Errors[0].At, query)
		require.Contains(t, p.Detail, at+" is ", query)
	}
	require.Equal(t, http.StatusUnprocessableEntity, w.do(http.MethodGet, "/v1/waiting-calls?next=x", claudeToken, "").status)
	require.Equal(t, http.StatusOK, w.do(http.MethodGet, "/v1/waiting-calls?after=", claudeToken, "").status, "from the beginning")
}

func TestWithdrawingMayBeRepeatedAndDoesNotUndoAnOutcome(t *testing.T) {
	w := newWorld(t)
	q := w.post(oneCall)
	for range 2 {
		got := w.read(w.do(http.MethodPost, "/v1/approvals/"+string(q.ID)+"/withdraw", claudeToken, `{"reason":"the person answered in the terminal"}`))
		require.Equal(t, "withdrawn", got.Calls[0].Outcome)
	}
	require.Equal(t, "not-approved", w.claim(q.ID, "c1").kind(t))

	q = w.post(`{"external_id":"r2","calls":[{"id":"c1","tool":"refund"}]}`)
	w.decide(q.ID, "c1", approvals.Deny, "too much")
	got := w.do(http.MethodPost, "/v1/approvals/"+string(q.ID)+"/withdraw", claudeToken, "")
	require.Equal(t, "settled", got.kind(t))
	require.Contains(t, string(got.body), `"outcomes":{"c1":"denied"}`)
}

func TestAnIdempotencyKeyNamesOneRequest(t *testing.T) {
	w := newWorld(t)
	body := `{"calls":[{"id":"c1","tool":"refund","args":{}}]}`
	first := w.post(body, "Idempotency-Key", `"k-1"`)
	require.Equal(t, first.ID, w.post(body, "Idempotency-Key", `"k-1"`).ID)
	require.Equal(t, first.ID, w.post(body, "Idempotency-Key", `k-1`).ID, "without quotes it is the same key")
	require.NotEqual(t, first.ID, w.post(body, "Idempotency-Key", `"k-2"`).ID)
	changed := w.do(http.MethodPost, "/v1/approvals", claudeToken, strings.Replace(body, "{}", `{"cents":9999}`, 1), "Idempotency-Key", `"k-1"`)
	require.Equal(t, http.StatusUnprocessableEntity, changed.status)
	require.Equal(t, "idempotency-key-reused", changed.kind(t))
	require.Equal(t, http.StatusNotFound, w.do(http.MethodGet, "/v1/approvals/"+string(first.ID), otherToken, "").status)
	theirs := w.read(w.do(http.MethodPost, "/v1/approvals", otherToken, body, "Idempotency-Key", `"k-1"`))
	require.NotEqual(t, first.ID, theirs.ID, "the keys of agents are apart")
	for _, bad := range []string{`"`, `""`, `"a" "b"`, `"a`, `a b`, `a,b`, `"a\x"`, `"\"`, strings.Repeat("k", 256)} {
		require.Equal(t, http.StatusUnprocessableEntity, w.do(http.MethodPost, "/v1/approvals", claudeToken, body, "Idempotency-Key", bad).status, bad)
	}
}

func TestAtOnceTheSameRequestIsOneRequest(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	ids := make([]approvals.RunID, 8)
	for i := range ids {
		wg.Go(func() {
			got := w.do(http.MethodPost, "/v1/approvals", claudeToken, oneCall, "Idempotency-Key", `"k"`)
			for range 20 {
				if got.status != http.StatusConflict {
					break
				}
				got = w.do(http.MethodPost, "/v1/approvals", claudeToken, oneCall, "Idempotency-Key", `"k"`)
			}
			ids[i] = w.read(got).ID
		})
	}
	wg.Wait()
	for _, id := range ids {
		require.Equal(t, ids[0], id)
	}
}

// Requests of one group never wait for each other, and none replaces another.
func TestRequestsOfAGroupAreApart(t *testing.T) {
	w := newWorld(t)
	ids := map[approvals.RunID]bool{}
	for i := range 8 {
		q := w.post(fmt.Sprintf(`{"external_id":"r%d","group":"workflow-7","calls":[{"id":"c1","tool":"refund"}]}`, i))
		require.Equal(t, "pending", q.Status)
		ids[q.ID] = true
	}
	require.Len(t, ids, 8)
	for id := range ids {
		require.Equal(t, "pending", w.read(w.get(id, "")).Status)
	}
}

func TestOtherCallsUnderTheSameExternalIDSupersede(t *testing.T) {
	w := newWorld(t)
	old := w.post(oneCall)
	w.decide(old.ID, "c1", approvals.Approve, "")
	fresh := w.post(strings.Replace(oneCall, "9007199254740993", "9007199254740992", 1))
	require.NotEqual(t, old.ID, fresh.ID, "numbers that a float64 cannot tell apart are different")
	require.Equal(t, http.StatusConflict, w.claim(old.ID, "c1").status, "the decision about the other arguments is not usable")
	require.Equal(t, "pending", w.claim(fresh.ID, "c1").kind(t))
}

func TestStateIsGivenBackAsItWas(t *testing.T) {
	w := newWorld(t)
	state := `{"b": 1, "a": [9007199254740993, "ü 𝄞 <>&"]}`
	q := w.post(`{"calls":[{"id":"c1","tool":"refund"}],"state":` + state + `}`)
	require.JSONEq(t, state, string(q.State))
	require.Contains(t, string(q.State), "9007199254740993")
	bytes := "{ \"b\" :\t1,\n  \"a\": \"\\u003c<\\u2028\" }"
	signed := w.do(http.MethodPost, "/v1/approvals", claudeToken, `{"external_id":"bytes","calls":[{"id":"c1","tool":"refund"}],"state":`+bytes+`}`)
	require.Contains(t, string(signed.body), `"state":`+bytes+`}`, "byte for byte: its caller may have signed it")
	text := `"` + strings.Repeat("s", 1<<20-2) + `"`
	q = w.post(`{"external_id":"large","calls":[{"id":"c1","tool":"refund"}],"state":` + text + `}`)
	require.Len(t, q.State, 1<<20)
	got := w.do(http.MethodPost, "/v1/approvals", claudeToken, `{"calls":[{"id":"c1","tool":"refund"}],"state":`+text[:len(text)-1]+`s"}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, got.status)
}

func TestAnExternalCallIsFulfilledByTheAgentThatMay(t *testing.T) {
	w := newWorld(t)
	q := w.post(`{"calls":[{"id":"c1","tool":"render","external":true,"args":{}},{"id":"c2","tool":"refund"}]}`)
	path := w.callPath(q.ID, "c1") + "/result"
	result := `{"result":{"kind":"tool-return","return_value":{"rows":12}}}`
	require.Equal(t, http.StatusNotFound, w.do(http.MethodPost, path, claudeToken, result).status, "not by the agent that asks")
	bad := w.do(http.MethodPost, path, otherToken, `{"result":{"kind":"tool-failed"}}`)
	require.Equal(t, http.StatusUnprocessableEntity, bad.status, "a known kind with a missing field would be a success")
	require.Equal(t, http.StatusUnprocessableEntity, w.do(http.MethodPost, path, otherToken, `{"result":1,"state":"ran"}`).status)
	got := w.do(http.MethodPost, path, otherToken, result)
	require.Equal(t, http.StatusOK, got.status, string(got.body))
	require.Equal(t, http.StatusConflict, w.do(http.MethodPost, path, otherToken, `{"result":{"rows":13}}`).status)
	q = w.read(w.get(q.ID, ""))
	require.Equal(t, "fulfilled", q.Calls[0].Outcome)
	require.Equal(t, "pending", q.Status)
	w.decide(q.ID, "c2", approvals.Approve, "")
	answer := w.do(http.MethodGet, "/v1/approvals/"+string(q.ID)+"/results?format=pydantic-ai", claudeToken, "")
	require.Equal(t, http.StatusOK, answer.status, string(answer.body))
	require.Contains(t, string(answer.body), `"return_value":{"rows":12}`)
}

// The API asks, reads, withdraws, claims and reports. Every route that the server
// has is tried with every method and with words that would decide, and nothing
// is decided.
func TestNoRouteDecides(t *testing.T) {
	w := newWorld(t)
	q := w.post(oneCall)
	for pattern := range w.api.Routes() {
		for _, word := range []string{"decide", "approve", "deny", "reject", "resume", "decision"} {
			require.NotContains(t, pattern, word)
		}
	}
	paths := []string{}
	for pattern := range w.api.Routes() {
		paths = append(paths, strings.NewReplacer("{id}", string(q.ID), "{call}", "c1", "{name}", "not-found").Replace(pattern))
	}
	for _, verb := range []string{"approve", "deny", "decide", "decisions", "resume", "fulfill"} {
		paths = append(paths, "/v1/approvals/"+string(q.ID)+"/"+verb, w.callPath(q.ID, "c1")+"/"+verb)
	}
	for _, path := range paths {
		if path == "/v1/events" || strings.HasSuffix(path, "/withdraw") {
			continue
		}
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			for _, body := range []string{`{"approved":true}`, `{"decision":"approve"}`, `{"state":"approved"}`, `{"result":{"kind":"tool-approved"}}`, `{"approvals":{"c1":true}}`} {
				w.do(method, path, claudeToken, body)
			}
		}
	}
	require.Equal(t, "pending", w.read(w.get(q.ID, "")).Calls[0].Outcome)
}

func TestNoGetWrites(t *testing.T) {
	var writes atomic.Int64
	w := newWorld(t)
	q := w.post(oneCall)
	w.decide(q.ID, "c1", approvals.Approve, "")
	counted := newWorldOn(t, w, &writes)
	before := writes.Load()
	for pattern, methods := range w.api.Routes() {
		path := strings.NewReplacer("{id}", string(q.ID), "{call}", "c1", "{name}", "not-found").Replace(pattern)
		for _, m := range methods {
			if m == http.MethodGet && path != "/v1/events" {
				got := counted.do(m, path+"?approve=true&decision=approve&format=pydantic-ai&wait=0s", claudeToken, "", "X-Http-Method-Override", "POST")
				require.NotEqual(t, http.StatusInternalServerError, got.status)
			}
		}
	}
	require.Equal(t, before, writes.Load())
	require.Equal(t, http.StatusOK, counted.claim(q.ID, "c1").status)
	require.Greater(t, writes.Load(), before, "a write is seen")
}

// Readers of JSON disagree about a name that an object has twice: some take the first, some
// the last, and strict ones refuse the document.
func TestTheDocumentHasNoNameTwice(t *testing.T) {
	raw, err := httpapi.Document()
	require.NoError(t, err)
	var doc any
	require.NoError(t, jsonv2.Unmarshal(raw, &doc)) // it is strict about that
}

func TestTheOutcomesAreDocumented(t *testing.T) {
	raw, err := httpapi.Document()
	require.NoError(t, err)
	for _, o := range []string{"pending", "allowed", "refused", "approved", "denied", "expired", "withdrawn", "superseded", "fulfilled"} {
		require.Contains(t, string(raw), `"`+o+`"`)
	}
}
