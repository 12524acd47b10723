package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/outbox"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state/statetest"
)

const hookKey = "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"

// A webhookBot has the remote agent "claude" with the webhook "ci" at a receiver.
type webhookBot struct {
	*follower

	mu     sync.Mutex
	status int
	got    []webhookMessage
}

type webhookMessage struct {
	id   string
	Type string
	Data struct {
		ID, State, Agent string
		Call, Tool       string
		Calls            []struct{ Outcome, Digest, Arguments string }
	}
}

func newWebhookBot(t *testing.T) *webhookBot {
	t.Helper()
	h := &webhookBot{status: http.StatusOK}
	receiver := httptest.NewServer(http.HandlerFunc(h.receive))
	t.Cleanup(receiver.Close)
	u, err := url.Parse(receiver.URL)
	require.NoError(t, err)
	i := newInstallation(t, slacksim.Config{})
	i.text, i.rules = twoAgents+fmt.Sprintf(`
http: {listen: "127.0.0.1:8090"}
remote_agents:
  - name: claude
    owner: %s
    channel: %s
    tokens: ["sha256:%064d"]
    doors: [api]
    webhooks:
      - {name: ci, url: "%s/hook", secrets: [CI_SECRET], events: [approval.created, approval.settled], arguments: true}
      - {name: all, url: "%[4]s/hook", secrets: [CI_SECRET], events: [approval.decided, approval.claimed]}
  - name: crm
    owner: %[1]s
    channel: %[2]s
    tokens: ["sha256:%064[6]d"]
    doors: [api]
    fulfills: [{agent: claude, tools: [lookup]}]
    webhooks:
      - {name: calls, url: "%[4]s/hook", secrets: [CI_SECRET], events: [call.waiting], arguments: true}
webhooks: {allow: [127.0.0.0/8], plain_hosts: [127.0.0.1], ports: [%[5]s]}
`, alice, ops, 0, receiver.URL, u.Port(), 1), oneOfSRE+"rules: [{name: lookups, tools: [lookup], allow: true}, {name: drops, tools: [drop], deny: Never.}]\n"
	i.env["CI_SECRET"] = "whsec_" + base64.StdEncoding.EncodeToString([]byte(hookKey))
	h.follower = &follower{installation: i, b: i.bot()}
	i.reconciles(h.b)
	i.mentions(h.b) // Slack knows where the bot is
	return h
}

func (h *webhookBot) receive(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	mac := hmac.New(sha256.New, []byte(hookKey))
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), body)
	signed := r.Header.Get("webhook-signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
	m := webhookMessage{id: r.Header.Get("webhook-id")}
	if !signed || json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	h.got = append(h.got, m)
	w.WriteHeader(h.status)
}

func (h *webhookBot) answers(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status = status
}

func (h *webhookBot) messages() []webhookMessage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]webhookMessage(nil), h.got...)
}

// deploys are the arguments of the call that is handed in, with a space to lose.
const deploys = `{"to": "prod"}`

// ask hands in a call that someone of @sre must approve.
func (h *webhookBot) ask(external string) intake.Request {
	h.t.Helper()
	client := h.b.remote[0].client
	client.Credential = "token:0"
	r, err := h.b.intake.Ask(h.t.Context(), client, intake.Ask{
		Door: intake.DoorAPI, ExternalID: external, Notify: "ci",
		Calls: []intake.Call{{ID: "c1", Tool: "deploy", Args: json.RawMessage(deploys)}},
	})
	require.NoError(h.t, err)
	return r
}

// bobApproves approves the only call of a request as Bob, who is in @sre.
func bobApproves(t *testing.T, b *bot, r intake.Request) {
	t.Helper()
	_, err := b.desk.Decide(t.Context(), r.Batch, approvals.RequestID("click:"+r.ID), approvals.Decide{Decision: approvals.Decision{
		Call: r.Calls[0].ID, By: approvals.Principal{User: bob, Groups: []approvals.GroupID{"S0SRE"}}, Verdict: approvals.Approve, Digest: r.Calls[0].Digest,
	}})
	require.NoError(t, err)
}

func (h *webhookBot) admin(args ...string) string {
	h.t.Helper()
	var out, logged bytes.Buffer
	err := run(h.t.Context(), append(append([]string{"admin"}, args...), "--config", h.o.Path), h.o.Environ, &out, &logged)
	require.NoError(h.t, err, "%s", logged.String())
	return out.String()
}

// It takes state.Webhooks, and state.Deliveries before it.
func TestAWebhookHearsOfARequestUntilItIsDisabledAndAgainAfterwards(t *testing.T) {
	t.Parallel()
	h := newWebhookBot(t)
	require.Equal(t, "claude\tall\tenabled\tnever delivered\t0 waiting\t\nclaude\tci\tenabled\tnever delivered\t0 waiting\t\n"+
		"crm\tcalls\tenabled\tnever delivered\t0 waiting\t\n3 webhooks, 0 disabled\n", h.admin("webhooks"), "those of the configuration")
	require.Equal(t, "enabled; 0 messages are due now\n", h.admin("enable", "claude", "ci"), "it is")
	first := h.ask("one")
	statetest.Await(t, "that it waits", func() bool { return len(h.messages()) == 1 })
	bobApproves(t, h.b, first)
	statetest.Await(t, "that it is decided", func() bool { return len(h.messages()) == 2 })
	got := h.messages()
	require.Equal(t, "approval.created", got[0].Type)
	require.Equal(t, "pending", got[0].Data.State)
	require.Equal(t, "approval.settled", got[1].Type)
	require.Equal(t, string(first.ID), got[1].Data.ID)
	require.Equal(t, "approved", got[1].Data.Calls[0].Outcome)
	require.Equal(t, deploys, got[1].Data.Calls[0].Arguments) //nolint:testifylint // byte for byte
	require.Equal(t, first.Calls[0].Digest.String(), got[1].Data.Calls[0].Digest, "that of the API without sha256:")
	require.Contains(t, h.admin("webhooks"), "claude\tci\tenabled\tdelivered ")

	h.answers(http.StatusGone)
	second := h.ask("two")
	h.sees("the channel that is told", func() bool { return h.reads(bob, ops, "", "no longer gets messages") })
	bobApproves(t, h.b, second)
	var list []outbox.Status
	statetest.Await(t, "the other message", func() bool {
		require.NoError(t, json.Unmarshal([]byte(h.admin("webhooks", "--json")), &list))
		return list[1].Waiting == 2
	})
	require.Len(t, list, 3)
	require.Contains(t, h.admin("webhooks", "--json"), `"webhook": "ci"`)
	require.Contains(t, h.admin("deliveries", string(second.ID), "--json"), `"webhook": "ci"`)
	require.Contains(t, list[1].Reason, "410")
	require.Contains(t, h.admin("webhooks"), "3 webhooks, 1 disabled\n")
	require.Equal(t, "0 messages are due now; 2 wait for bot admin enable, because the webhook is disabled\n", h.admin("redeliver", string(second.ID)))
	require.Contains(t, h.admin("deliveries", string(second.ID)), "waits for bot admin enable, because the webhook is disabled\n2 messages\n")
	require.Len(t, h.messages(), 3)

	text, err := os.ReadFile(h.o.Path)
	require.NoError(t, err)
	without := filepath.Join(filepath.Dir(h.o.Path), "without.yaml")
	require.NoError(t, os.WriteFile(without, []byte(strings.Replace(string(text), "{name: ci,", "{name: cd,", 1)), 0o600))
	err = run(t.Context(), []string{"admin", "enable", "claude", "ci", "--config", without}, h.o.Environ, io.Discard, io.Discard)
	require.ErrorContains(t, err, `the webhook "ci" of the agent "claude" is not in the configuration`)
	require.Contains(t, h.admin("webhooks"), "3 webhooks, 1 disabled\n", "nothing changed")

	h.answers(http.StatusOK)
	require.Equal(t, "enabled; 2 messages are due now\n", h.admin("enable", "claude", "ci"))
	statetest.Await(t, "both messages", func() bool { return len(h.messages()) == 5 })
	require.Contains(t, h.admin("webhooks"), "3 webhooks, 0 disabled\n")

	require.JSONEq(t, `{"agent":"claude","webhook":"ci","state":"enabled","due":0}`, h.admin("enable", "claude", "ci", "--json"))
	require.Equal(t, "2 messages are due now\n", h.admin("redeliver", string(first.ID)))
	statetest.Await(t, "the first ones again", func() bool { return len(h.messages()) == 7 })
	ids := map[string]int{}
	for _, m := range h.messages() {
		ids[m.id]++
	}
	require.Len(t, ids, 4, "a message that is sent again has its id")
}

func TestAdminNamesTheWebhookOrTheRequestThatItDoesNotFind(t *testing.T) {
	t.Parallel()
	h := newWebhookBot(t)
	client := h.b.remote[0].client
	client.Credential = "token:0"
	r, err := h.b.intake.Ask(t.Context(), client, intake.Ask{
		Door: intake.DoorAPI, ExternalID: "untold", Calls: []intake.Call{{ID: "c1", Tool: "deploy", Args: json.RawMessage(deploys)}},
	})
	require.NoError(t, err)
	for want, args := range map[string][]string{
		`enable: there is no webhook "cii" of the agent "claude"; did you mean claude ci?`:                          {"enable", "claude", "cii"},
		`enable: there is no webhook "claude" of the agent "ci"; use one of claude all, claude ci, crm calls`:       {"enable", "ci", "claude"},
		"redeliver: there are no webhook messages about " + string(r.ID) + "; a request has them if it names a web": {"redeliver", string(r.ID)},
	} {
		err := run(t.Context(), append(append([]string{"admin"}, args...), "--config", h.o.Path), h.o.Environ, io.Discard, io.Discard)
		require.ErrorContains(t, err, want)
	}
}

// It takes state.Announcements.
func TestAWebhookHearsOfEachDecisionAndOfCallsToFulfill(t *testing.T) {
	t.Parallel()
	h := newWebhookBot(t)
	client := h.b.remote[0].client
	client.Credential = "token:0"
	r, err := h.b.intake.Ask(t.Context(), client, intake.Ask{
		Door: intake.DoorAPI, ExternalID: "one", Notify: "all",
		Calls: []intake.Call{{ID: "c1", Tool: "deploy", Args: json.RawMessage(deploys)}, {ID: "c2", Tool: "lookup", Args: json.RawMessage(deploys), External: true}},
	})
	require.NoError(t, err)
	statetest.Await(t, "that a call waits", func() bool { return len(h.messages()) == 1 })
	got := h.messages()[0]
	require.Equal(t, "call.waiting", got.Type)
	require.Equal(t, []string{string(r.ID), "claude", "c2", "lookup", "pending"}, []string{got.Data.ID, got.Data.Agent, got.Data.Call, got.Data.Tool, got.Data.State})
	require.Empty(t, got.Data.Calls, "the arguments are fetched")

	bobApproves(t, h.b, r)
	statetest.Await(t, "that somebody decided", func() bool { return len(h.messages()) == 2 })
	got = h.messages()[1]
	require.Equal(t, []string{"approval.decided", "c1"}, []string{got.Type, got.Data.Call})
	_, err = h.b.intake.Claim(t.Context(), client, r.ID, "c1")
	require.NoError(t, err)
	statetest.Await(t, "that it is claimed", func() bool { return len(h.messages()) == 3 })
	require.Equal(t, "approval.claimed", h.messages()[2].Type)
	require.Contains(t, h.admin("webhooks"), "crm\tcalls\tenabled\tdelivered ")
}

// Streams and webhooks have one list of events, and the documents of both name all.
func TestTheEventsOfWebhooksAreThoseOfStreams(t *testing.T) {
	t.Parallel()
	require.Equal(t, append(slices.Clone(intake.EventTypes), intake.EventWaiting), config.WebhookEvents)
	for path, types := range map[string][]string{"../../docs/webhooks.md": config.WebhookEvents, "../../docs/api.md": intake.EventTypes, "../../internal/httpapi/openapi.yaml": intake.EventTypes} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, event := range types {
			require.Contains(t, string(text), event, path)
		}
	}
}

func TestASecretThatIsMissingFailsTheStart(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	i.text = twoAgents + `
http: {listen: "127.0.0.1:8090"}
remote_agents:
  - name: claude
    owner: U0ALICE
    channel: C0OPS
    tokens: ["sha256:` + strings.Repeat("0", 64) + `"]
    doors: [api]
    webhooks: [{name: ci, url: "https://ci.example.com/", secrets: [CI_SECRET]}]
`
	i.rules = oneOfSRE
	i.o.Online = false
	require.Contains(t, i.check(), "remote_agents[0].webhooks[0].secrets[0]: CI_SECRET is not set")
	c, err := config.Read(i.o.Path)
	require.NoError(t, err)
	require.NoError(t, c.Check())
	e, err := config.ReadEnvironment(i.o.Environ)
	require.NoError(t, err)
	_, err = newBot(t.Context(), c, e, nil, slog.New(slog.DiscardHandler), func(string) {})
	require.ErrorContains(t, err, "CI_SECRET is not set")

	i.env["CI_SECRET"] = "whsec_" + base64.StdEncoding.EncodeToString([]byte(hookKey))
	require.Contains(t, i.check(), "webhooks: 1 webhook with a secret")
}
