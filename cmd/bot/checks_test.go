package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/slacksim"
)

const checkConfig = `
http: {listen: "127.0.0.1:8090"}
remote_agents:
  - name: claude
    owner: U0ALICE
    channel: C0OPS
    tokens: ["sha256:0000000000000000000000000000000000000000000000000000000000000001"]
    doors: [api]
checks:
  - {name: fraud, url: "%s/check", secrets: [CHECK_SECRET], timeout: 5s, arguments: true}
webhooks: {allow: [127.0.0.0/8], plain_hosts: [127.0.0.1], ports: [%s]}
`

const checkPolicy = oneOfSRE + `
rules:
  - {name: refunds, tools: [refund], check: fraud, allow: true}
  - {name: deploys, tools: [deploy], check: fraud, ask: {why: It is production.}}
`

// A checked installation has rules with a check, and the service that answers it.
type checkedInstallation struct {
	*installation
	b      *bot
	client intake.Client

	mu     sync.Mutex
	answer string // what it says; empty: it is broken
	asked  []string
}

func newChecked(t *testing.T) *checkedInstallation {
	t.Helper()
	c := &checkedInstallation{installation: newInstallation(t, slacksim.Config{})}
	service := httptest.NewServer(http.HandlerFunc(c.receive))
	t.Cleanup(service.Close)
	u, err := url.Parse(service.URL)
	require.NoError(t, err)
	c.text, c.rules = wholeConfig+fmt.Sprintf(checkConfig, service.URL, u.Port()), checkPolicy
	c.env["CHECK_SECRET"] = "whsec_" + base64.StdEncoding.EncodeToString([]byte(hookKey))
	return c
}

func (c *checkedInstallation) start() {
	c.b = c.bot()
	c.client = c.b.remote[0].client
	c.client.Credential = "token"
}

func (c *checkedInstallation) receive(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	mac := hmac.New(sha256.New, []byte(hookKey))
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), body)
	var m struct {
		Data struct{ Tool, Arguments string }
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Header.Get("webhook-signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) || json.Unmarshal(body, &m) != nil || c.answer == "" {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	c.asked = append(c.asked, m.Data.Tool+m.Data.Arguments)
	_, _ = io.WriteString(w, c.answer)
}

func (c *checkedInstallation) says(answer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = answer
}

// ask hands in a call of the remote agent.
func (c *checkedInstallation) ask(name, tool string) intake.Request {
	c.t.Helper()
	r, err := c.b.intake.Ask(c.t.Context(), c.client, intake.Ask{
		Door: intake.DoorAPI, ExternalID: name, Calls: []intake.Call{{ID: "c1", Tool: tool, Args: json.RawMessage(`{"n":1}`)}},
	})
	require.NoError(c.t, err)
	return r
}

func (c *checkedInstallation) claim(r intake.Request) error {
	c.t.Helper()
	_, err := c.b.intake.Claim(c.t.Context(), c.client, r.ID, "c1")
	return err
}

const (
	checkOK   = `{"answer":"ok"}`
	checkAsk  = `{"answer":"ask","reason":"A new customer."}`
	checkDeny = `{"answer":"deny","reason":"The customer is blocked."}`
)

func TestACheckIsAskedWhenACallIsProposedAndWhenItIsUsed(t *testing.T) {
	t.Parallel()
	c := newChecked(t)
	c.start()

	c.says(checkOK)
	r := c.ask("agrees", "refund")
	require.Equal(t, intake.OutcomeAllowed, r.Calls[0].Outcome)
	require.NoError(t, c.claim(r))
	require.Equal(t, []string{`refund{"n":1}`, `refund{"n":1}`}, c.asked)

	r = c.ask("denies later", "refund")
	require.Equal(t, intake.OutcomeAllowed, r.Calls[0].Outcome)
	c.says(checkDeny)
	require.ErrorIs(t, c.claim(r), approvals.ErrRefused)

	r = c.ask("denies", "refund")
	require.Equal(t, intake.OutcomeRefused, r.Calls[0].Outcome)
	require.Equal(t, "The check fraud denies this call: The customer is blocked.", r.Calls[0].Reason)
	require.Contains(t, r.Calls[0].Rule, "refunds@")

	c.says(checkAsk)
	r = c.ask("asks", "refund")
	require.Equal(t, intake.OutcomePending, r.Calls[0].Outcome)
	b, err := c.b.store.Batch(t.Context(), r.Batch)
	require.NoError(t, err)
	require.Equal(t, approvals.Checked{Check: "fraud", Answer: approvals.CheckAsk, Said: approvals.Quote{Text: "A new customer."}}, b.Approvals[0].Checked)
	var story bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"admin", "run", string(r.ID), "--config", c.o.Path}, c.o.Environ, &story, io.Discard))
	require.Contains(t, story.String(), "people are asked about refund (check fraud: ask)")
	require.NotContains(t, story.String(), "A new customer")
	bobApproves(t, c.b, r)
	require.NoError(t, c.claim(r), "people have approved what the check asks about")
}

func TestACallThatACheckDeniesAfterPeopleApprovedDoesNotRun(t *testing.T) {
	t.Parallel()
	c := newChecked(t)
	c.start()
	c.says(checkOK)
	r := c.ask("one", "deploy")
	require.Equal(t, intake.OutcomePending, r.Calls[0].Outcome)
	bobApproves(t, c.b, r)
	c.says("")
	require.ErrorIs(t, c.claim(r), agentrun.ErrUnjudged, "while the check does not answer, nothing runs")
	c.says(checkDeny)
	require.ErrorIs(t, c.claim(r), approvals.ErrRefused)
}

// An agent of this program, and a click in Slack.
func TestAClickDoesNotGetPastACheckThatDeniesByThen(t *testing.T) {
	t.Parallel()
	c := newChecked(t)
	c.text = strings.Replace(c.text, wholeConfig, twoAgents, 1)
	c.rules = oneOfSRE + "rules: [{name: deletions, tools: [delete_file], check: fraud, ask: {why: It is gone then.}}]\n"
	c.says(checkAsk)
	f := deferralOn(t, c.installation)
	require.True(t, f.reads(bob, ops, f.root, "The check fraud asks for approval and says:"))
	require.True(t, f.reads(bob, ops, f.root, "A new customer."))
	rows := adminJSON[waitingRow](f, "list")
	require.Equal(t, []string{"fraud", "ask"}, []string{rows[0].Calls[0].Check, rows[0].Calls[0].Answer})
	c.says(checkDeny)
	f.approves()
	story := f.admin("run", string(rows[0].Run))
	require.Contains(t, story, "U0BOB decided: approve")
	require.Contains(t, story, "the model was given the result of delete_file: denied")
	require.NotContains(t, story, "delete_file began")
}

func TestACheckThatDoesNotAnswerMeansAsk(t *testing.T) {
	t.Parallel()
	c := newChecked(t)
	c.start()
	r := c.ask("one", "refund")
	require.Equal(t, intake.OutcomePending, r.Calls[0].Outcome)
	b, err := c.b.store.Batch(t.Context(), r.Batch)
	require.NoError(t, err)
	require.Equal(t, approvals.Checked{Check: "fraud", Answer: approvals.CheckFailed}, b.Approvals[0].Checked)
	require.Contains(t, b.Approvals[0].Why, "The rule refunds could not be judged for this call: its check gave no answer that could be used.")
	bobApproves(t, c.b, r)
	require.NoError(t, c.claim(r), "people approved it knowing that")
}

func TestPolicyCommandsAskChecksOnlyOnRequest(t *testing.T) {
	t.Parallel()
	c := newChecked(t)
	c.says(checkAsk)
	c.writes()
	config := filepath.Join(c.dir, configName)
	require.Contains(t, c.policySays("check", "--config", config), "  allow  refunds, unless the check fraud is stricter\n")
	explain := []string{"explain", "--config", config, "--agent", "claude", "--tool", "refund", "--args", `{"n":1}`}
	require.Contains(t, c.policySays(explain...), "-> runs without approval (refunds)\n   if the check fraud agrees, which was not asked here")
	require.Contains(t, c.policySays(append(explain, "--json")...), `"check":"fraud"`)
	require.Empty(t, c.asked)
	said := c.policySays(append(explain, "--ask-checks")...)
	require.Contains(t, said, "-> needs approval (default)")
	require.Contains(t, said, "the check fraud says: ask A new customer.")
	require.Len(t, c.asked, 1)

	c.says(`{"answer":"yes"}`)
	said = c.policySays(append(explain, "--ask-checks")...)
	require.Contains(t, said, "its check gave no answer that could be used")
	require.Contains(t, said, "the answer is not a JSON object with answer (ok, ask or deny) and reason", "whoever tries a new check reads why")
}

func TestBotCheckSaysWhatIsWrongWithChecks(t *testing.T) {
	t.Parallel()
	c := newChecked(t)
	require.Contains(t, c.check(), "checks: 1 check with a secret")
	require.NotContains(t, c.check(), "never asked")
	c.rules = oneOfSRE
	require.Contains(t, c.check(), "checks[0]: no rule of the policy names fraud, so it is never asked")
	delete(c.env, "CHECK_SECRET")
	require.Contains(t, c.check(), "checks[0].secrets[0]: CHECK_SECRET is not set")
	c.env["CHECK_SECRET"] = "short"
	require.Contains(t, c.check(), "does not begin with whsec_")
	c.rules = strings.ReplaceAll(checkPolicy, "check: fraud", "check: frauds")
	require.Contains(t, c.check(), `there is no check "frauds"; did you mean fraud?`)
	c.text = strings.Replace(c.text, "timeout: 5s", "timeout: 1m", 1)
	require.Contains(t, c.check(), "checks[0].timeout: must be at most 10s, but is 1m0s")
}
