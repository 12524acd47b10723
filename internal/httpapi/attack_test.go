package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/plainhttp/plainhttptest"
)

// revoke takes the credentials of all agents away.
func (w *world) revoke() { w.agents.Store(&[]bearer.Agent{}) }

func TestATokenThatIsTakenAwayDuringALongPollReadsNothing(t *testing.T) {
	for name, poll := range map[string]func(w *world, q ours) exchange{
		"reading": func(w *world, q ours) exchange { return w.get(q.ID, "?wait=50s") },
		"results": func(w *world, q ours) exchange { return w.get(q.ID, "/results?format=pydantic-ai&wait=50s") },
		"asking": func(w *world, _ ours) exchange {
			return w.do(http.MethodPost, "/v1/approvals?wait=50s", claudeToken, oneCall)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			q := w.post(oneCall)
			var wg sync.WaitGroup
			var got exchange
			wg.Go(func() { got = poll(w, q) })
			w.held(1)
			w.revoke()
			w.decide(q.ID, "c1", approvals.Approve, "")
			wg.Wait()
			require.Equal(t, http.StatusUnauthorized, got.status, string(got.body))
		})
	}
}

// What ends a long poll need not be the token: a client that reads 401 drops it.
func TestKeysThatCannotBeReadAfterALongPollAreAProblem(t *testing.T) {
	w := newWorld(t)
	agents := slices.Clone(*w.agents.Load())
	agents[0].Tokens = append(agents[0].Tokens, bearer.SumOf(unreadableToken))
	w.agents.Store(&agents)
	q := w.post(oneCall)
	var wg sync.WaitGroup
	var got exchange
	wg.Go(func() { got = w.do(http.MethodGet, "/v1/approvals/"+string(q.ID)+"?wait=50s", unreadableToken, "") })
	w.held(1)
	w.agents.Store(&[]bearer.Agent{{Client: agents[0].Client, Doors: agents[0].Doors, JWT: unreadableKeys}})
	w.decide(q.ID, "c1", approvals.Approve, "")
	wg.Wait()
	require.Equal(t, "unavailable", got.kind(t))
}

// Who asked learns the id, and nothing of what was decided since.
func TestWhoCannotBeProvedAnyMoreLearnsOnlyThatTheirRequestIsStored(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"the keys cannot be read": func(w *world) {
			a := (*w.agents.Load())[0]
			w.agents.Store(&[]bearer.Agent{{Client: a.Client, Doors: a.Doors, JWT: unreadableKeys}})
		},
		"its address is limited": func(w *world) {
			w.revoke()
			for range 25 {
				w.do(http.MethodGet, "/v1/approvals", "a.b.c", "")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			agents := slices.Clone(*w.agents.Load())
			agents[0].Tokens = append(agents[0].Tokens, bearer.SumOf(unreadableToken))
			w.agents.Store(&agents)
			var wg sync.WaitGroup
			var got exchange
			wg.Go(func() { got = w.do(http.MethodPost, "/v1/approvals?wait=50s", unreadableToken, oneCall) })
			w.held(1)
			all, err := w.intake.List(t.Context(), agents[0].Client, intake.Filter{})
			require.NoError(t, err)
			change(w)
			w.decide(all[0].ID, "c1", approvals.Approve, "")
			wg.Wait()
			require.Equal(t, http.StatusCreated, got.status, string(got.body))
			require.Contains(t, string(got.body), string(all[0].ID))
			require.NotContains(t, string(got.body), "approved")
		})
	}
}

func TestAStreamTellsNothingToATokenThatIsTakenAway(t *testing.T) {
	w := newWorld(t)
	q := w.post(oneCall)
	s := w.follow(claudeToken, "")
	s.next(t)
	w.revoke()
	w.decide(q.ID, "c1", approvals.Approve, "")
	rest, err := s.body.ReadString(0)
	require.ErrorContains(t, err, "EOF")
	require.Empty(t, rest)
}

// A list is without the state of its requests: 200 of them could have 200 MiB.
func TestAListDoesNotReadTheStateOfItsRequests(t *testing.T) {
	w := newWorld(t)
	big := strings.Repeat("x", 1<<20-2)
	for i := range 3 {
		w.post(fmt.Sprintf(`{"external_id":"r%d","calls":[{"id":"c1","tool":"refund","args":{}}],"state":%q}`, i, big))
	}
	all, err := w.intake.List(t.Context(), intake.Client{Name: "claude", Owner: "alice", Credential: "x"}, intake.Filter{})
	require.NoError(t, err)
	require.Len(t, all, 3)
	for _, q := range all {
		require.Empty(t, q.StateDoc)
		require.NotEmpty(t, q.Version)
	}
}

// Ids are looked up as they are written: no spelling of another's id, and none that
// reaches elsewhere in the store, is anything but not found.
func TestAnIDIsOnlyWhatItIs(t *testing.T) {
	w := newWorld(t)
	theirs := w.read(w.do(http.MethodPost, "/v1/approvals", otherToken, oneCall))
	id := string(theirs.ID)
	for _, path := range []string{
		id, strings.ToUpper(id), id + "%00", id + "%0A", "%20" + id, id + "%2F..", "x%2F" + id, id + "%2Fresults", "..%2F" + id, "{" + id + "}",
		strings.Replace(id, "-", "-0", 1), strings.Replace(id, "-", "-+", 1), strings.Replace(id, "run", "batch", 1), strings.Replace(id, "run", "thread", 1),
		"%7Brun%7D-01-x", "run-01-", "-01-x", "run-99999999999999999999-x", strings.Repeat("a", 4000),
	} {
		for method, suffixes := range map[string][]string{
			http.MethodGet: {"", "/results?format=pydantic-ai", "?wait=1s"}, http.MethodPost: {"/withdraw", "/calls/c1/claim", "/calls/c1/result"},
		} {
			for _, suffix := range suffixes {
				body := ""
				if strings.HasSuffix(suffix, "/result") {
					body = `{"state":"ran"}`
				}
				got := w.do(method, "/v1/approvals/"+path+suffix, claudeToken, body)
				require.Equal(t, http.StatusNotFound, got.status, "%s %s%s: %s", method, path, suffix, got.body)
				require.Equal(t, "not-found", got.kind(t))
			}
		}
	}
	require.Equal(t, "pending", w.read(w.do(http.MethodGet, "/v1/approvals/"+id, otherToken, "")).Status)
}

// The server of a tool is approved with it, so people are shown it: query on a test
// database is not query on the one of production.
func TestPeopleAreShownTheServerOfATool(t *testing.T) {
	w := newWorld(t)
	q := w.post(`{"calls":[{"id":"c1","tool":"query","server":"prod-db","args":{}},{"id":"c2","tool":"query","server":"test-db","args":{}}]}`)
	got, err := w.intake.Get(t.Context(), intake.Client{Name: "claude", Owner: "alice", Credential: "x"}, q.ID)
	require.NoError(t, err)
	b, err := w.store.Batch(t.Context(), got.Batch)
	require.NoError(t, err)
	require.Equal(t, "prod-db", b.Approvals[0].Place.Server)
	require.Equal(t, "test-db", b.Approvals[1].Place.Server)
	read := string(w.do(http.MethodGet, "/v1/approvals/"+string(q.ID), claudeToken, "").body)
	require.Contains(t, read, `"server":"prod-db"`, "who asked reads it too")
	require.Contains(t, read, `"server":"test-db"`)
}

func TestATokenThatIsTakenAwayWhileABodyArrivesChangesNothing(t *testing.T) {
	for path, body := range map[string]string{
		"": strings.Replace(oneCall, "c1", "c2", 1), "/withdraw": `{}`, "/calls/c1/claim": `{}`, "/calls/c1/result": `{"state":"ran"}`,
	} {
		t.Run(path, func(t *testing.T) {
			w := newWorld(t)
			q := w.post(oneCall)
			w.decide(q.ID, "c1", approvals.Approve, "")
			before, url := *w.agents.Load(), "/v1/approvals"
			if path != "" {
				url += "/" + string(q.ID) + path
			}
			out := plainhttptest.PostLate(w.api, url, claudeToken, body, w.revoke)
			require.Equal(t, http.StatusUnauthorized, out.Code, out.Body)
			w.agents.Store(&before)
			var list struct{ Approvals []ours }
			w.do(http.MethodGet, "/v1/approvals", claudeToken, "").json(t, &list)
			require.Len(t, list.Approvals, 1)
			require.Equal(t, http.StatusOK, w.do(http.MethodPost, "/v1/approvals/"+string(q.ID)+"/calls/c1/claim", claudeToken, "").status)
		})
	}
}
