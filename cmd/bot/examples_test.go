package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

// allFrameworks has each framework meet everything. Without it each is allowed to run a
// call and has its state edited, and two of them meet each of the other things, so that
// each client meets all of them.
var allFrameworks = flag.Bool("frameworks", false, "have each framework meet everything, not two of the four most of it")

// A framework is an agent of one, with the real package, as a process of its
// own. Every run has its own name, order and card.
type framework struct {
	*testing.T
	name  string
	agent *remote
	sim   *sim
	forms *sync.Mutex // a person fills in one form at a time
}

type finished struct {
	out string
	err error
}

// start starts the agent. The variables say how the one before was not.
func (e *framework) start(run, prompt string, env ...string) <-chan finished {
	e.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "examples", e.name))
	require.NoError(e, err)
	var cmd *exec.Cmd
	if e.name == pydantic {
		cmd = exec.CommandContext(e.Context(), "python3", pydanticAgent(), run, prompt)
	} else {
		require.DirExists(e, filepath.Join(dir, "node_modules"), "run .ci/deps, which installs the packages")
		cmd = exec.CommandContext(e.Context(), "node", "agent.mjs", run, prompt)
		cmd.Dir = dir
	}
	cmd.Env = append(os.Environ(), "COUNTERSIGN_URL="+e.agent.url, "COUNTERSIGN_TOKEN="+e.agent.token, "PYTHONPATH="+dir+":"+os.Getenv("PYTHONPATH"), "PYTHONDONTWRITEBYTECODE=1")
	cmd.Env = append(cmd.Env, env...)
	done := make(chan finished, 1)
	go func() {
		out, err := cmd.CombinedOutput()
		done <- finished{string(out), err}
	}()
	return done
}

// card is the card about an order, once it is there.
func (e *framework) card(order string) message {
	e.Helper()
	return e.sim.await(bob, "", e.name+": the card about "+order, says(order))
}

func (e *framework) approve(order string) {
	e.Helper()
	require.Empty(e, e.sim.click(carol, e.card(order), order, "Approve").VisibleError)
}

func (e *framework) deny(order, reason string) {
	e.Helper()
	card := e.card(order)
	e.forms.Lock()
	defer e.forms.Unlock()
	require.Empty(e, e.sim.click(carol, card, order, "Deny").VisibleError)
	e.sim.submit(carol, e.sim.views(carol)[0], reason)
}

// edit has carol change an argument, which takes nobody else's approval away.
func (e *framework) edit(order, from, to string) {
	e.Helper()
	card := e.card(order)
	e.forms.Lock()
	defer e.forms.Unlock()
	require.Empty(e, e.sim.click(carol, card, order, "Edit").VisibleError)
	e.sim.correct(carol, from, to)
}

// ran requires that the agent finished well, and returns what it says it did and read.
func (e *framework) ran(got finished) string {
	e.Helper()
	require.NoError(e, got.err, got.out)
	return got.out
}

// stopped requires that the agent failed, did nothing and said why.
func (e *framework) stopped(got finished, why string) {
	e.Helper()
	require.Error(e, got.err, got.out)
	require.Contains(e, got.out, why)
	require.NotContains(e, got.out, "refunding")
	require.NotContains(e, got.out, "canceling")
}

// between is the address of something between the agent and the bot that changes
// answers whose method and path match.
func (e *framework) between(match string, change func(*http.Response, []byte) []byte) (env string) {
	e.Helper()
	proxy := e.proxy()
	proxy.ModifyResponse = func(r *http.Response) error {
		if !regexp.MustCompile(match).MatchString(r.Request.Method + " " + r.Request.URL.Path) {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		body = change(r, body)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Length", fmt.Sprint(len(body)))
		return nil
	}
	server := httptest.NewServer(proxy)
	e.Cleanup(server.Close)
	return "COUNTERSIGN_URL=" + server.URL
}

func (e *framework) proxy() *httputil.ReverseProxy {
	e.Helper()
	to, err := url.Parse(e.agent.url)
	require.NoError(e, err)
	return httputil.NewSingleHostReverseProxy(to)
}

// requests is how many requests the run has made.
func (e *framework) requests(run string) int {
	e.Helper()
	req, err := http.NewRequestWithContext(e.Context(), http.MethodGet, e.agent.url+"/v1/approvals?group="+run, nil)
	require.NoError(e, err)
	req.Header.Set("Authorization", "Bearer "+e.agent.token)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(e, err)
	defer func() { _ = resp.Body.Close() }()
	var list struct{ Approvals []struct{} }
	require.NoError(e, json.NewDecoder(resp.Body).Decode(&list))
	return len(list.Approvals)
}

// pydantic is the example whose package the tests cannot install. Where it is not
// there, a stand-in hands in the JSON that PydanticAI was seen to dump, and the client
// and the tools are those of the example.
const pydantic = "pydantic-ai"

var pydanticAgent = sync.OnceValue(func() string {
	if exec.Command("python3", "-c", "import pydantic_ai").Run() == nil {
		return filepath.Join("..", "..", "examples", pydantic, "agent.py")
	}
	return filepath.Join("testdata", "pydantic.py")
})

// impatient does not wait for people.
const impatient = "COUNTERSIGN_WAIT=0"

// The agents of the examples, with the real packages of their frameworks, against a
// real bot, with people who decide in Slack.
func TestTheAgentsOfFrameworksRunWhatWasApprovedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.listen()
	old, err := os.ReadFile(w.config)
	require.NoError(t, err)
	w.config = write(t, string(old)+"slack: {cards_per_minute: 10000}\n")
	w.start()
	var forms sync.Mutex
	everybody := []string{"ai-sdk", "langchain", "openai-agents", pydantic}
	of := func(some ...string) []string { // the others in make soak
		if *allFrameworks {
			return everybody
		}
		return some
	}
	in := func(t *testing.T, what string, names []string, test func(*framework)) {
		t.Helper()
		for _, name := range names {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				test(&framework{t, name, agent, newSim(t, w.sim.url), &forms})
			})
		}
	}
	t.Run("first", func(t *testing.T) { // they wait for updates of cards, of which there are so many in a minute
		in(t, "allow", everybody, allowed)
		in(t, "edit", of("langchain", pydantic), corrected)
	})
	t.Run("then", func(t *testing.T) {
		in(t, "deny", of("openai-agents", pydantic), refused)
		in(t, "approver down", of("ai-sdk", pydantic), unreachable)
		in(t, "late", of("langchain", pydantic), late)
		in(t, "asked twice", of("ai-sdk", pydantic), askedTwice)
		in(t, "one of two denied", of("langchain", pydantic), oneOfTwo)
		in(t, "the state was edited", everybody, editedState)
		in(t, "the answers were edited", []string{"langchain", "openai-agents"}, editedAnswers) // which take answers of the API
		in(t, "the answer to the claim is lost", []string{"ai-sdk", pydantic}, lostClaim)       // one for each client
	})
}

func allowed(e *framework) {
	order := e.name + "-allow"
	done := e.start(order, "refund "+order+" 4200")
	e.approve(order)
	out := e.ran(<-done)
	require.Contains(e, out, `refunding with {"order":"`+order+`","cents":4200}`)
	require.Contains(e, out, "I read: Refunded 4200 cents")
	card := e.sim.await(bob, "", "the report", says(order, "Ran"))
	require.NotContains(e, card.words(), "requires approval", "what the framework says of every call is not a reason")
}

func refused(e *framework) {
	order := e.name + "-deny"
	done := e.start(order, "refund "+order+" 4200")
	e.deny(order, "Too much.")
	out := e.ran(<-done)
	require.Regexp(e, `I read: .*"Too much\."`, out, "the model reads why")
	require.NotContains(e, out, "refunding")
}

func corrected(e *framework) {
	order := e.name + "-edit"
	done := e.start(order, "refund "+order+" 4200")
	e.edit(order, "4200", "1000")
	require.Empty(e, e.sim.click(bob, e.sim.await(bob, "", "the edited card", says(order, "1000")), "", "Approve").VisibleError)
	out := e.ran(<-done)
	require.Contains(e, out, `refunding with {"order":"`+order+`","cents":1000}`)
	require.NotContains(e, out, "4200")
}

// While the service is away nothing runs, and the agent continues once it is there
// again.
func unreachable(e *framework) {
	order := e.name + "-down"
	closed := httptest.NewServer(nil)
	closed.Close()
	stopped := <-e.start(order, "refund "+order+" 4200", "COUNTERSIGN_URL="+closed.URL)
	e.stopped(stopped, "Countersign cannot be reached")
	require.Regexp(e, "ECONNREFUSED|Connection refused", stopped.out)
	gone := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/claim") {
			panic(http.ErrAbortHandler)
		}
		e.proxy().ServeHTTP(rw, r)
	}))
	e.Cleanup(gone.Close)
	done := e.start(order, "refund "+order+" 4200", "COUNTERSIGN_URL="+gone.URL)
	e.approve(order)
	e.stopped(<-done, "Countersign cannot be reached")
	require.Contains(e, e.ran(<-e.start(order, "")), "refunding with")
}

// When the answer to a claim is lost, nobody knows whether the call has run.
func lostClaim(e *framework) {
	order := e.name + "-lost"
	done := e.start(order, "refund "+order+" 4200", e.between("POST .*/claim$", func(r *http.Response, _ []byte) []byte {
		r.StatusCode = http.StatusBadGateway
		return []byte("<html>Bad Gateway</html>")
	}))
	e.approve(order)
	e.stopped(<-done, "Countersign cannot be reached")
	e.stopped(<-e.start(order, ""), "The decision was claimed before")
}

func late(e *framework) {
	order := e.name + "-late"
	e.stopped(<-e.start(order, "refund "+order+" 4200", impatient), "Nobody has decided yet")
	e.approve(order)
	require.Contains(e, e.ran(<-e.start(order, "")), `refunding with {"order":"`+order+`","cents":4200}`, "the state of the first process is enough")
}

// Two processes do the same at once: people are asked once, and one of them runs it.
func askedTwice(e *framework) {
	order := e.name + "-twice"
	first, second := e.start(order, "refund "+order+" 4200"), e.start(order, "refund "+order+" 4200")
	e.approve(order)
	a, b := <-first, <-second
	if a.err != nil {
		a, b = b, a
	}
	require.Contains(e, e.ran(a), "refunding with")
	e.stopped(b, "The decision was claimed before")
	require.Equal(e, 1, e.requests(order))
}

func oneOfTwo(e *framework) {
	kept, gone := e.name+"-kept", e.name+"-gone"
	done := e.start(kept, "refund "+gone+" 4200; cancel "+kept)
	e.approve(gone)
	e.deny(kept, "Still needed.")
	out := e.ran(<-done)
	require.Contains(e, out, "Still needed.")
	require.NotContains(e, out, "canceling")
	if e.name == "langchain" { // drops what was approved beside a denial; the model has to ask again
		require.NotContains(e, out, "refunding")
		return
	}
	require.Contains(e, out, `refunding with {"order":"`+gone+`","cents":4200}`)
	doc, standIn := strings.CutPrefix(strings.Split(out, "\n")[0], "results ")
	if !standIn {
		return
	}
	var results approvals.DeferredToolResults
	require.NoError(e, json.Unmarshal([]byte(doc), &results), "our strict reader holds the vectors: %s", out)
	require.Equal(e, approvals.ToolApproved{}, results.Approvals["call_1"])
	require.IsType(e, approvals.ToolDenied{}, results.Approvals["call_2"])
}

// A framework takes the state that it is given: unsigned, an edited one ran with
// other arguments. What the claim returns are those that were approved, and another
// tool has no claim.
func editedState(e *framework) {
	order := e.name + "-state"
	done := e.start(order, "refund "+order+" 4200", e.forged("refund", "cancel"))
	e.approve(order)
	got := <-done
	require.Regexp(e, `Nobody was asked about cancel\.|AI_InvalidToolInputError|extra_forbidden`, got.out, "by us, the AI SDK or PydanticAI")
	require.NotContains(e, got.out, "canceling")
	require.NotContains(e, got.out, "refunding")
	out := e.ran(<-e.start(order, "", e.forged("4200", "9999")))
	require.Contains(e, out, `"cents":4200`)
	require.NotContains(e, out, "9999")
}

// checkpointed are the bytes of LangChain's checkpoints.
var checkpointed = regexp.MustCompile(`[A-Za-z0-9+/]{100,}=*`)

// forged replaces a text in the state that comes back.
func (e *framework) forged(from, to string) (env string) {
	return e.between(`GET /v1/approvals/[^/]+$`, func(_ *http.Response, body []byte) []byte {
		var doc map[string]json.RawMessage
		require.NoError(e, json.Unmarshal(body, &doc))
		state := checkpointed.ReplaceAllStringFunc(string(doc["state"]), func(s string) string {
			raw, err := base64.StdEncoding.DecodeString(s)
			if err != nil {
				return s
			}
			return base64.StdEncoding.EncodeToString(bytes.ReplaceAll(raw, []byte(from), []byte(to)))
		})
		state = strings.ReplaceAll(state, from, to)
		require.NotEqual(e, state, string(doc["state"]))
		doc["state"] = json.RawMessage(state)
		out, err := json.Marshal(doc)
		require.NoError(e, err)
		return out
	})
}

// An answer that is too short, is about another call or changes the tool runs
// nothing.
func editedAnswers(e *framework) {
	order := e.name + "-answers"
	approve := sync.OnceFunc(func() { e.approve(order) })
	changes := map[string]map[string]string{
		"langchain": {
			`[{"type":"approve"}]`: `[]`,
			`{"type":"approve"}`:   `{"type":"edit","editedAction":{"name":"cancel","args":{"order":"all"}}}`,
		},
		"openai-agents": {`[{"callId":"call_1","approve":true}]`: `[]`, `call_1`: `call_2`},
	}[e.name]
	for from, to := range changes {
		done := e.start(order, "refund "+order+" 4200", e.between(`GET .*/results$`, func(_ *http.Response, body []byte) []byte {
			return []byte(strings.ReplaceAll(string(body), from, to))
		}))
		approve()
		e.stopped(<-done, "")
	}
	require.Contains(e, e.ran(<-e.start(order, "")), "refunding", "nobody has used the decision")
}
