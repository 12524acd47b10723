package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
)

const lookupTool = `
    external_tools:
      - name: lookup
        description: Looks up a customer.
        schema: {type: object, properties: {id: {type: integer}}, required: [id]}
`

const lookupFulfiller = `
  - name: crm
    owner: U0BOB
    channel: C0OPS
    tokens: ["sha256:0000000000000000000000000000000000000000000000000000000000000002"]
    doors: [api]
    fulfills: [{agent: ops, tools: [lookup]}]
`

// lookups is an installation whose model calls lookup and delete_file in one
// answer, and then says the results.
func lookups(t *testing.T) *installation {
	t.Helper()
	i := newInstallation(t, slacksim.Config{})
	i.text = strings.Replace(wholeConfig, "    files: reports\n", "    files: reports"+lookupTool, 1) + claudeConfig + lookupFulfiller
	model := httptest.NewServer(openaisim.New(openaisim.Story{
		Name: "both", Prompt: "clean up", Match: func(string) bool { return true },
		Turn: func(c openaisim.Conversation) openaisim.Reply {
			if c.Replies > 0 {
				return openaisim.Reply{Text: "Done."}
			}
			return openaisim.Reply{Calls: []openaisim.Call{{Name: "lookup", Args: `{"id": 9007199254740993}`}, {Name: "delete_file", Args: `{"path":"a.txt"}`}}}
		},
	}))
	t.Cleanup(model.Close)
	i.env["OPENAI_BASE_URL"] = model.URL + "/v1"
	return i
}

// clients are the remote agents, as their credentials prove them.
func (b *bot) client(name string) intake.Client {
	for _, r := range b.remote {
		if r.client.Name == name {
			r.client.Credential = "of " + name
			return r.client
		}
	}
	return intake.Client{}
}

// begun lets the bot work, asks it, and returns once the calls wait.
func (i *installation) begun(b *bot) {
	i.t.Helper()
	i.reconciles(b)
	i.mentions(b, slacksim.Post{User: alice, Channel: ops})
}

// await waits until Slack shows what it must.
func (i *installation) await(is func() bool) {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(i.t.Context(), time.Minute)
	defer cancel()
	require.NoError(i.t, i.slack.Await(ctx, is))
}

func (i *installation) waiting(b *bot, who string) []intake.WaitingCall {
	i.t.Helper()
	calls, _, err := b.intake.Waiting(i.t.Context(), b.client(who), "", 0)
	require.NoError(i.t, err)
	return calls
}

// approveOpen approves what is open of a run, as bob of @sre.
func (i *installation) approveOpen(b *bot, only string) {
	i.t.Helper()
	all, _, err := b.store.Inbox(i.t.Context(), []approvals.ListKey{approvals.Everything}, "", 10)
	require.NoError(i.t, err)
	for _, of := range all {
		for _, a := range of.Approvals {
			if a.Status != approvals.Pending || a.Call.Name != only {
				continue
			}
			_, err := b.desk.Decide(i.t.Context(), of.ID, approvals.RequestID("approve "+string(a.Call.ID)), approvals.Decide{Decision: approvals.Decision{
				Call: a.Call.ID, Digest: a.Call.Digest, Verdict: approvals.Approve,
				By: approvals.Principal{User: bob, Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: time.Now()},
			}})
			require.NoError(i.t, err)
		}
	}
}

// asked returns a bot that has asked people about delete_file, and the lookup that waits
// for crm.
func (i *installation) asked() (*bot, intake.WaitingCall) {
	i.t.Helper()
	i.rules = oneOfSRE
	b := i.bot()
	i.begun(b)
	i.await(func() bool { return len(i.waiting(b, "crm")) == 1 })
	return b, i.waiting(b, "crm")[0]
}

// A run that waits, or that another one continues, has not ended: an operator who wants to
// repair it is told where it is.
func TestAnOperatorIsToldWhereARunIs(t *testing.T) {
	t.Parallel()
	i := lookups(t)
	b, call := i.asked()
	var out bytes.Buffer
	a := admin{store: b.store, stdout: &out, log: b.log}
	refused := func(id approvals.RunID, words string) {
		t.Helper()
		_, err := a.abandon(t.Context(), id)
		require.ErrorContains(t, err, words)
		_, err = a.retry(t.Context(), state.Runs, string(id))
		require.ErrorContains(t, err, words)
	}
	refused(call.Request, "its calls wait for people, or for results from elsewhere")

	run, err := b.store.Run(t.Context(), call.Request)
	require.NoError(t, err)
	_, err = a.fulfill(t.Context(), run.Deferred, call.Call, `"Ann"`)
	require.NoError(t, err)
	i.approveOpen(b, "delete_file")
	i.await(func() bool { return strings.Contains(i.thread(t), "Done.") })
	next, err := agentrun.ResumeRunID(run.Deferred)
	require.NoError(t, err)
	refused(call.Request, fmt.Sprintf("run %s continues it, and is completed", next))
	refused(next, "the run has ended")
	require.NoError(t, a.story(t.Context(), next, false))
	require.Contains(t, out.String(), "the result came from elsewhere, given by cli:")
}

// Calls and approvals of one answer mix: the run continues when both are there.
func TestAnotherCredentialGivesTheResultOfAnExternalCall(t *testing.T) {
	t.Parallel()
	i := lookups(t)
	b, call := i.asked()
	require.Equal(t, "ops lookup {\"id\": 9007199254740993}", call.Agent+" "+call.Tool+" "+string(call.Args))
	require.Empty(t, i.waiting(b, "claude"), "it may not")
	i.await(func() bool { return strings.Contains(i.thread(t), "It also waits for crm to run 1 call.") })
	i.await(func() bool { return strings.Contains(i.thread(t), "the results of 1 call from crm.") })

	result := approvals.ToolReturn{ReturnValue: json.RawMessage(`{"name":"Ann"}`)}
	require.ErrorIs(t, b.intake.Fulfill(t.Context(), b.client("claude"), call.Request, call.Call, result), approvals.ErrNotFound)
	require.NoError(t, b.intake.Fulfill(t.Context(), b.client("crm"), call.Request, call.Call, result))
	require.Empty(t, i.waiting(b, "crm"))
	run, err := b.store.Run(t.Context(), call.Request)
	require.NoError(t, err)
	require.Equal(t, agentrun.RunDeferred, run.Status, "people have not decided on the other call")
	i.approveOpen(b, "delete_file")
	i.await(func() bool { return strings.Contains(i.thread(t), "Done.") })
}

// The policy is asked about external calls too. What it asks for is decided first.
func TestAnExternalCallIsApprovedBeforeItIsFulfilled(t *testing.T) {
	t.Parallel()
	i := lookups(t)
	i.rules = oneOfSRE + "rules: [{name: private, tools: [lookup], ask: {why: It is a person.}}]\n"
	b := i.bot()
	i.begun(b)
	open := func(tool string) bool {
		all, _, err := b.store.Inbox(t.Context(), []approvals.ListKey{approvals.Everything}, "", 10)
		require.NoError(t, err)
		return len(all) == 1 && len(all[0].Approvals) == 2 && strings.Contains(all[0].Approvals[0].Call.Name+all[0].Approvals[1].Call.Name, tool)
	}
	i.await(func() bool { return open("lookup") })
	require.Empty(t, i.waiting(b, "crm"), "nobody has approved it")
	i.approveOpen(b, "lookup")
	i.approveOpen(b, "delete_file")
	i.await(func() bool { return len(i.waiting(b, "crm")) == 1 })
	call := i.waiting(b, "crm")[0]
	require.NoError(t, b.intake.Fulfill(t.Context(), b.client("crm"), call.Request, call.Call, approvals.ToolFailed{Message: "no such customer"}))
	i.await(func() bool { return strings.Contains(i.thread(t), "Done.") })
}

func TestAnExternalCallThatThePolicyDeniesWaitsForNobody(t *testing.T) {
	t.Parallel()
	i := lookups(t)
	i.rules = oneOfSRE + "rules: [{name: private, tools: [lookup], deny: People are private.}]\n"
	b := i.bot()
	i.begun(b)
	i.await(func() bool {
		all, _, err := b.store.Inbox(t.Context(), []approvals.ListKey{approvals.Everything}, "", 10)
		require.NoError(t, err)
		return len(all) == 1
	})
	require.Empty(t, i.waiting(b, "crm"))
	i.approveOpen(b, "delete_file")
	i.await(func() bool { return strings.Contains(i.thread(t), "Done.") })
}

// thread is everything that the people read in the channel and its threads.
func (i *installation) thread(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	messages, err := i.slack.Messages(alice, ops, "")
	require.NoError(t, err)
	for _, m := range messages {
		replies, err := i.slack.Messages(alice, ops, m.TS)
		require.NoError(t, err)
		for _, r := range replies {
			all.WriteString(r.Shown())
		}
	}
	return all.String()
}

// One key says who may give results, and both sides of it are checked.
func TestAnExternalToolHasSomebodyWhoGivesItsResults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, by, want string }{
		"right":           {"", "", "0 wrong"},
		"nobody":          {"tools: [lookup]}]", "tools: [read_file]}]", "agents[0].external_tools[0]: no agent may give the results of lookup, so its calls would wait forever"},
		"no such tool":    {"tools: [lookup]}]", "tools: [lookup, serach]}]", `remote_agents[1].fulfills[0].tools: ops has no tool "serach"`},
		"no door":         {"000002\"]\n    doors: [api]", "000002\"]\n    doors: [hooks]", "remote_agents[1].fulfills: results come in over the HTTP API; add api to doors"},
		"no object":       {"{type: object, properties", "{type: array, properties", "tool lookup: the schema must be one of an object"},
		"no schema":       {"properties: {id: {type: integer}}", "properties: {id: {type: number of}}", "agents[0].external_tools[0]: tool lookup"},
		"no mapping":      {"schema: {type: object, properties: {id: {type: integer}}, required: [id]}", "schema: object", "must be a JSON Schema"},
		"a bad name":      {"name: lookup", "name: look up", "a name is 1 to 64 letters"},
		"a name of files": {"name: lookup", "name: read_file", "two tools are called read_file"},
	} {
		i := lookups(t)
		i.rules = oneOfSRE
		if c.old != "" {
			i.replace(c.old, c.by)
		}
		require.Contains(t, i.check(), c.want, name)
	}
}
