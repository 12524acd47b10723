package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/gateway"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/plainhttp/plainhttptest"
)

func TestACallThatNeedsNobodyRunsAtOnce(t *testing.T) {
	w := newWorld(t)
	c := w.start().client(token)
	for range 2 {
		got := c.now("srv_free", `{"n":1}`)
		require.False(t, got.IsError)
		require.Equal(t, "did {\"n\":1}\n", got.text())
	}
	require.Equal(t, []string{`{"n":1}`, `{"n":1}`}, w.tool("srv.free").executions(), "each call of the client is one")
}

func TestACallThatThePolicyRefusesIsAnsweredWithItsReason(t *testing.T) {
	w := newWorld(t)
	got := w.start().client(token).now("srv_never", `{"n":1}`)
	require.True(t, got.IsError)
	require.Contains(t, got.text(), "Refused by the policy; nobody was asked. not on Fridays")
	require.Empty(t, w.tool("srv.never").executions())
}

func TestAHeldCallRunsOnceItIsApproved(t *testing.T) {
	w := newWorld(t)
	p := w.start()
	answer := p.client(token).call(t.Context(), "srv_write", `{"n":1}`, true)
	q := <-p.watch.asked
	require.Empty(t, w.tool("srv.write").executions())
	p.decide(q, "bob", approvals.Approve, "")
	got := <-answer
	require.False(t, got.IsError, got.text())
	require.Equal(t, "did {\"n\":1}\n", got.text())
	require.Equal(t, []string{`{"n":1}`}, w.tool("srv.write").executions())
	require.Equal(t, approvals.Ran, p.batch(q).Execution.State, "the card says so")
}

// The trace in the _meta of a call is given back with its request, and what its server
// does for the call continues it. So is that of the headers, where the _meta has none.
func TestACallIsExecutedInTheTraceOfItsCaller(t *testing.T) {
	const inMeta, inHeaders = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	for name, effect := range map[string]agentrun.Effect{"a journal": agentrun.EffectNone, "no journal": agentrun.EffectPure} {
		for version, meta := range map[string]mcp.Meta{"2026-07-28": {"traceparent": inMeta, "tracestate": "a=b"}, "2025-11-25": nil} {
			t.Run(name+", "+version, func(t *testing.T) {
				w := newWorld(t)
				executed := make(chan propagation.MapCarrier, 1)
				w.tool("srv.free").effect = effect
				w.tool("srv.free").execute = func(ctx context.Context, _ agentrun.Call) (agentrun.Result, error) {
					carrier := propagation.MapCarrier{}
					propagation.TraceContext{}.Inject(ctx, carrier)
					executed <- carrier
					return agentrun.Result{Value: json.RawMessage(`"done"`)}, nil
				}
				p := w.start()
				c := p.speaking(token, version)
				c.headers.Set("Traceparent", inHeaders)
				got, err := c.session.CallTool(t.Context(), &mcp.CallToolParams{Meta: meta, Name: "srv_free", Arguments: json.RawMessage(`{"n":1}`)})
				require.NoError(t, err)
				require.False(t, got.IsError)
				want := map[string]string{"traceparent": inHeaders}
				if meta != nil {
					want = map[string]string{"traceparent": inMeta, "tracestate": "a=b"}
				}
				require.Equal(t, want, map[string]string(<-executed))
				require.Equal(t, want["traceparent"], (<-p.watch.asked).Trace)
			})
		}
	}
}

func TestADenialReachesTheModelWithItsReason(t *testing.T) {
	w := newWorld(t)
	p := w.start()
	c := p.client(token)
	answer := c.call(t.Context(), "srv_write", `{"n":1}`, true)
	p.decide(<-p.watch.asked, "bob", approvals.Deny, "use the staging table")
	got := <-answer
	require.True(t, got.IsError)
	require.Contains(t, got.text(), "use the staging table")
	require.Contains(t, c.now("srv_write", `{"n":1}`).text(), "use the staging table", "it stands for a while")
	require.Empty(t, w.tool("srv.write").executions())
}

func TestWhatPeopleEditedIsWhatRunsAndTheResultSaysSo(t *testing.T) {
	w := newWorld(t)
	p := w.start()
	answer := p.client(token).call(t.Context(), "srv_write", `{"n":1}`, true)
	q := <-p.watch.asked
	require.Error(t, p.edit(q, `{"m":2}`), "the schema of the tool counts")
	require.NoError(t, p.edit(q, `{"n":2}`))
	p.decide(q, "bob", approvals.Approve, "")
	got := <-answer
	require.False(t, got.IsError)
	require.Contains(t, got.text(), `were changed by a person before it was run. It was run with: {"n":2}`)
	require.Contains(t, got.text(), `did {"n":2}`)
	require.Equal(t, []string{`{"n":2}`}, w.tool("srv.write").executions())
}

// Some clients, Claude Code and Codex among them, show their model only the structured content of a
// success. So one whose arguments people changed has none, and if its definition promises
// some, it is given as an error.
func TestAnEditIsNotHiddenByStructuredContent(t *testing.T) {
	const (
		note = `The arguments of call 1 (srv.write) were changed by a person before it was run. It was run with: {"n":2}` + "\n"
		text = `{"mcp":{"content":[{"type":"text","text":"full"}],"structuredContent":{"code":7}}}`
		same = `{"mcp":{"content":[{"type":"text","text":"{\"code\":7}"}],"structuredContent":{"code":7}}}`
	)
	for _, test := range []struct {
		schema, kept string
		isError      bool
		want         string
	}{
		{"", text, false, note + "full\n{\"code\":7}\n"},
		{"", same, false, note + "{\"code\":7}\n"},
		{`{"type":"object"}`, same, true, "The call ran and succeeded, so do not repeat it. It is given as an error only because some clients " +
			"would hide the next sentence otherwise.\n" + note + "{\"code\":7}\n"},
	} {
		w := newWorld(t)
		w.tool("srv.write").output = test.schema
		w.tool("srv.write").execute = func(context.Context, agentrun.Call) (agentrun.Result, error) {
			return agentrun.Result{Value: json.RawMessage(`"x"`), Metadata: json.RawMessage(test.kept)}, nil
		}
		p := w.start()
		answer := p.client(token).call(t.Context(), "srv_write", `{"n":1}`, true)
		q := <-p.watch.asked
		require.NoError(t, p.edit(q, `{"n":2}`))
		p.decide(q, "bob", approvals.Approve, "")
		got := <-answer
		require.NoError(t, got.err)
		require.Equal(t, test.want, got.text())
		require.Nil(t, got.StructuredContent)
		require.Equal(t, test.isError, got.IsError)
	}
}

func TestACallerHearsHowManyApprovalsAreMissing(t *testing.T) {
	w := newWorld(t)
	p := w.start()
	c := p.client(token)
	answer := c.call(t.Context(), "srv_both", `{"n":1}`, true)
	q := <-p.watch.asked
	last := 0.0
	hear := func(text string) {
		t.Helper()
		for said := range c.progress {
			require.Greater(t, said.Progress, last, "values rise")
			last = said.Progress
			if said.Message == text {
				return
			}
			require.Contains(t, []string{"asking", "waiting for 2 of 2 approvals in Slack, request " + string(q.ID)}, said.Message)
		}
	}
	hear("waiting for 2 of 2 approvals in Slack, request " + string(q.ID))
	p.decide(q, "bob", approvals.Approve, "")
	hear("waiting for 1 of 2 approvals in Slack, request " + string(q.ID))
	p.decide(q, "dora", approvals.Approve, "")
	require.Contains(t, (<-answer).text(), "did")
}

// While nothing changes, a caller gets one message every so often, and not two.
func TestACallerHearsTheSameOnceAtATime(t *testing.T) {
	p := newWorld(t).start()
	c, began := p.client(token), time.Now()
	c.call(t.Context(), "srv_write", `{"n":1}`, true)
	for range 22 { // two at once, and then one every 20 ms
		<-c.progress
	}
	require.Greater(t, time.Since(began), 18*20*time.Millisecond)
}

// A client that takes no progress gives up after a minute. It is told to ask again
// before, and finds the decision.
func TestASilentCallerIsToldToCallAgainAndFindsTheDecision(t *testing.T) {
	w := newWorld(t)
	p := w.start(func(c *gateway.Config) { c.Silent = 50 * time.Millisecond })
	c := p.client(token)
	got := c.now("srv_write", `{"n":1}`)
	q := <-p.watch.asked
	require.True(t, got.IsError)
	require.Contains(t, got.text(), "Pending")
	require.Contains(t, got.text(), string(q.ID))
	require.Contains(t, got.text(), "Call again with exactly the same arguments")
	require.Equal(t, q.ID, func() approvals.RunID { c.now("srv_write", `{"n":1}`); return (<-p.watch.asked).ID }())
	p.decide(q, "bob", approvals.Approve, "")
	require.Empty(t, w.tool("srv.write").executions(), "nothing runs while nobody waits")
	patient := w.start() // its callers are held until the result is there, however slow the machine is
	got = patient.client(token).now("srv_write", `{"n":1}`)
	require.Equal(t, "did {\"n\":1}\n", got.text())
	<-patient.watch.asked
	require.Contains(t, c.now("srv_write", `{"n":1}`).text(), "Pending", "one approval is for one call")
	require.NotEqual(t, q.ID, (<-p.watch.asked).ID)
	require.Len(t, w.tool("srv.write").executions(), 1)
}

func TestADecisionIsFoundByTheSameCallOfTheSameCredentialOnly(t *testing.T) {
	w := newWorld(t)
	p := w.start(func(c *gateway.Config) { c.Silent = 50 * time.Millisecond })
	p.client(token).now("srv_write", `{"n":1}`)
	q := <-p.watch.asked
	p.decide(q, "bob", approvals.Approve, "")
	for _, c := range []struct{ secret, tool, args string }{
		{"carols-token", "srv_write", `{"n":1}`}, {token, "srv_both", `{"n":1}`}, {token, "srv_write", `{"n":2}`},
	} {
		require.Contains(t, p.client(c.secret).now(c.tool, c.args).text(), "Pending")
		require.NotEqual(t, q.ID, (<-p.watch.asked).ID)
	}
}

func TestAHeldCallOutlivesItsGateway(t *testing.T) {
	for name, v := range map[string]approvals.Verdict{"approved": approvals.Approve, "denied": approvals.Deny} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.start()
			answer := p.client(token).call(t.Context(), "srv_write", `{"n":1}`, true)
			q := <-p.watch.asked
			p.stop() // its connections end at once
			<-answer
			next := w.start()
			next.decide(q, "bob", v, "no")
			require.Empty(t, w.tool("srv.write").executions())
			got := next.client(token).now("srv_write", `{"n":1}`)
			require.Equal(t, q.ID, (<-next.watch.asked).ID)
			require.Equal(t, v == approvals.Deny, got.IsError)
			require.Len(t, w.tool("srv.write").executions(), map[bool]int{true: 0, false: 1}[got.IsError])
		})
	}
}

func TestCallersThatMakeOneCallAtOnceShareItsBatchAndItsExecution(t *testing.T) {
	w := newWorld(t)
	replicas := []*process{w.start(), w.start()}
	var answers []<-chan said
	var q intake.Request
	for i := range 6 {
		p := replicas[i%2]
		answers = append(answers, p.client(token).call(t.Context(), "srv_write", `{"n":1}`, true))
		next := <-p.watch.asked
		require.True(t, i == 0 || next.ID == q.ID)
		q = next
	}
	replicas[1].decide(q, "bob", approvals.Approve, "")
	for _, answer := range answers {
		got := <-answer
		require.False(t, got.IsError, got.text())
		require.Equal(t, "did {\"n\":1}\n", got.text())
	}
	require.Len(t, w.tool("srv.write").executions(), 1)
}

func TestNothingRunsForACallerThatIsGone(t *testing.T) {
	for name, keeps := range map[string]bool{"withdrawn": false, "kept": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.keeps = keeps
			p := w.start()
			c := p.client(token)
			ctx, leave := context.WithCancel(t.Context())
			c.call(ctx, "srv_write", `{"n":1}`, true)
			q := <-p.watch.asked
			leave()
			require.Equal(t, q.ID, <-p.watch.gone)
			require.Eventually(t, func() bool { return p.gateway.Held() == 0 }, time.Minute, time.Millisecond)
			if !keeps {
				a := p.batch(q)
				require.Equal(t, approvals.Withdrawn, a.Status)
				require.Equal(t, intake.CallerGone, a.Ending.Reason)
				return
			}
			p.decide(q, "bob", approvals.Approve, "")
			require.Empty(t, w.tool("srv.write").executions())
			require.Contains(t, p.client(token).now("srv_write", `{"n":1}`).text(), "did", "the next caller finds it")
			require.Len(t, w.tool("srv.write").executions(), 1)
		})
	}
}

// A client that cancels may reach another replica than the one that holds its call.
func TestACallThatIsCancelledOnAnotherReplicaDoesNotRun(t *testing.T) {
	for name, keeps := range map[string]bool{"withdrawn": false, "kept": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.keeps = keeps
			p, other := w.start(), w.start()
			post := func(p *process, body string) *http.Response {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.server.URL, strings.NewReader(body))
				require.NoError(t, err)
				for key, value := range map[string]string{
					"Authorization": "Bearer " + token, "Content-Type": "application/json",
					"Accept": "application/json, text/event-stream", "Mcp-Session-Id": "of the client", "MCP-Protocol-Version": "2025-11-25",
				} {
					r.Header.Set(key, value)
				}
				answer, err := http.DefaultClient.Do(r)
				require.NoError(t, err)
				return answer
			}
			answer := make(chan string, 1)
			go func() {
				got := post(p, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"srv_write","arguments":{"n":1}}}`)
				defer func() { _ = got.Body.Close() }()
				raw, _ := io.ReadAll(got.Body)
				answer <- string(raw)
			}()
			q := <-p.watch.asked
			require.NoError(t, post(other, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`).Body.Close()) //nolint:misspell // the word of MCP
			require.Contains(t, <-answer, `"isError":true`)
			require.Equal(t, q.ID, <-p.watch.gone)
			require.Equal(t, keeps, p.batch(q).Status == approvals.Pending)
			require.Empty(t, w.tool("srv.write").executions())
		})
	}
}

// One of two callers that leaves takes nothing from the other.
func TestARequestIsKeptForTheLastOfItsCallers(t *testing.T) {
	w := newWorld(t)
	p := w.start()
	first := p.client(token).call(t.Context(), "srv_write", `{"n":1}`, true)
	q := <-p.watch.asked
	ctx, leave := context.WithCancel(t.Context())
	second := p.client(token).call(ctx, "srv_write", `{"n":1}`, true)
	<-p.watch.asked
	leave()
	require.Error(t, (<-second).err)
	require.Eventually(t, func() bool { return p.gateway.Held() == 1 }, time.Minute, time.Millisecond)
	p.decide(q, "bob", approvals.Approve, "")
	require.False(t, (<-first).IsError)
}

// A caller that leaves while its call runs does not end it. Who makes the same call
// again gets the result, and the call is not repeated.
func TestACallThatRunsGoesOnWithoutItsCaller(t *testing.T) {
	w := newWorld(t)
	began, end := make(chan struct{}, 2), make(chan struct{})
	w.tool("srv.write").execute = func(context.Context, agentrun.Call) (agentrun.Result, error) {
		began <- struct{}{}
		<-end
		return agentrun.Result{Value: json.RawMessage(`"done"`)}, nil
	}
	p := w.start(func(c *gateway.Config) { c.Silent = 50 * time.Millisecond })
	c := p.client(token)
	ctx, leave := context.WithCancel(t.Context())
	c.call(ctx, "srv_write", `{"n":1}`, true)
	q := <-p.watch.asked
	p.decide(q, "bob", approvals.Approve, "")
	<-began
	require.Equal(t, approvals.Claimed, p.batch(q).Execution.State, "the card does not say that the approval is unused")
	leave()
	require.Contains(t, c.now("srv_write", `{"n":1}`).text(), "it has no result yet")
	elsewhere := w.start().client(token).call(t.Context(), "srv_write", `{"n":1}`, true)
	close(end)
	require.Equal(t, "done\n", (<-elsewhere).text(), "on another replica too")
	require.Len(t, w.tool("srv.write").executions(), 1)
}

// A spied tool says in what contexts it is called.
type spied struct {
	gateway.Tool
	called chan context.Context
}

func (t spied) Validate(ctx context.Context, c agentrun.Call) error {
	t.called <- ctx
	return t.Tool.Validate(ctx, c)
}

// Redis can be so slow that a caller gives up after its call ran, while it is stored that
// the caller is told.
func TestACallerThatLeavesBeforeItsResultFindsItAgain(t *testing.T) {
	w := newWorld(t)
	called := make(chan context.Context, 10)
	p := w.start(func(c *gateway.Config) {
		c.Silent = time.Second
		c.Tools = func(string) []gateway.Tool { return []gateway.Tool{spied{w.tool("srv.write"), called}} }
	})
	ctx, leave := context.WithCancel(t.Context())
	var once sync.Once
	p.watch.told = func() {
		once.Do(func() {
			leave()
			<-(<-called).Done()
		})
	}
	first := p.client(token).call(ctx, "srv_write", `{"n":1}`, true)
	p.decide(<-p.watch.asked, "bob", approvals.Approve, "")
	require.Error(t, (<-first).err)
	require.Eventually(t, func() bool { return p.gateway.Held() == 0 }, time.Minute, time.Millisecond)
	require.Equal(t, "did {\"n\":1}\n", p.client(token).now("srv_write", `{"n":1}`).text())
	require.Len(t, w.tool("srv.write").executions(), 1)
}

// A permitted call is found again by a caller that was told to make it again.
func TestAPermittedCallThatOutlastsItsCallerRunsOnce(t *testing.T) {
	w := newWorld(t)
	end := make(chan struct{})
	w.tool("srv.free").execute = func(context.Context, agentrun.Call) (agentrun.Result, error) {
		<-end
		return agentrun.Result{Value: json.RawMessage(`"done"`)}, nil
	}
	c := w.start(func(c *gateway.Config) { c.Silent = 50 * time.Millisecond }).client(token)
	for range 2 {
		require.Contains(t, c.now("srv_free", `{"n":1}`).text(), "it is not run twice")
	}
	elsewhere := w.start().client(token).call(t.Context(), "srv_free", `{"n":1}`, true)
	close(end)
	require.Equal(t, "done\n", (<-elsewhere).text(), "on another replica too")
	require.Len(t, w.tool("srv.free").executions(), 1)
	require.Equal(t, "done\n", w.start().client(token).now("srv_free", `{"n":1}`).text())
	require.Len(t, w.tool("srv.free").executions(), 2, "the result was given, so this is another call")
}

func TestAPermittedCallInDoubtIsNotRepeated(t *testing.T) {
	w := newWorld(t)
	w.tool("srv.free").execute = func(context.Context, agentrun.Call) (agentrun.Result, error) {
		return agentrun.Result{}, &agentrun.UnsureError{Message: "The connection ended."}
	}
	for range 2 {
		require.Contains(t, w.start().client(token).leftInDoubt("srv_free", `{"n":1}`).text(), "nothing runs twice")
	}
	require.Len(t, w.tool("srv.free").executions(), 1)
}

// A cut runner executes a call and cannot say so.
type cut struct{ gateway.Runner }

func (r cut) Execute(ctx context.Context, id approvals.RunID) (agentrun.Executed, error) {
	_, err := r.Runner.Execute(ctx, id)
	return agentrun.Executed{}, errors.Join(err, errors.New("the store is away"))
}

func (r cut) Continue(ctx context.Context, of agentrun.RemoteRun) (agentrun.Executed, error) {
	_, err := r.Runner.Continue(ctx, of)
	return agentrun.Executed{}, errors.Join(err, errors.New("the store is away"))
}

// A forgetful intake stores nothing of what callers are owed.
type forgetful struct{ gateway.Intake }

func (forgetful) Owe(context.Context, intake.Client, approvals.RunID) error {
	return errors.New("the store is away")
}

func TestAnErrorAfterACallMayHaveRunDoesNotSayThatItDidNot(t *testing.T) {
	w := newWorld(t)
	c := w.start(func(c *gateway.Config) { c.Runner = cut{c.Runner} }).client(token)
	got := c.now("srv_free", `{"n":1}`)
	require.True(t, got.IsError)
	require.NotContains(t, got.text(), "Not run")
	require.Equal(t, "did {\"n\":1}\n", w.start().client(token).now("srv_free", `{"n":1}`).text())
	require.Len(t, w.tool("srv.free").executions(), 1)

	c = w.start(func(c *gateway.Config) { c.Runner, c.Intake = cut{c.Runner}, forgetful{c.Intake} }).client(token)
	got = c.now("srv_free", `{"n":2}`)
	require.True(t, got.IsError)
	require.NotContains(t, got.text(), "Not run")
	require.Contains(t, got.text(), "The same call may run once more")
}

func TestACallInDoubtIsNotRepeated(t *testing.T) {
	w := newWorld(t)
	w.tool("srv.write").execute = func(context.Context, agentrun.Call) (agentrun.Result, error) {
		return agentrun.Result{}, &agentrun.UnsureError{Message: "The connection ended."}
	}
	p := w.start(func(c *gateway.Config) { c.Silent = 50 * time.Millisecond })
	p.client(token).now("srv_write", `{"n":1}`)
	q := <-p.watch.asked
	p.decide(q, "bob", approvals.Approve, "")
	for range 2 {
		got := w.start().client(token).leftInDoubt("srv_write", `{"n":1}`)
		require.True(t, got.IsError)
		require.Contains(t, got.text(), "it is not known whether it took effect")
		require.Contains(t, got.text(), "People are asked what to do")
	}
	require.Equal(t, approvals.InDoubt, p.batch(q).Execution.State)
	require.Len(t, w.tool("srv.write").executions(), 1)
}

// A process dies while the tool runs. The caller that makes the same call again hears
// that it is in doubt, and then what people say of it.
func TestACallWhoseProcessDiedIsForPeople(t *testing.T) {
	w := newWorld(t)
	var ahead atomic.Int64
	w.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	began := make(chan struct{}, 2)
	w.tool("srv.write").execute = func(context.Context, agentrun.Call) (agentrun.Result, error) {
		began <- struct{}{}
		select {} // its process is as good as dead
	}
	p := w.start(func(c *gateway.Config) { c.Silent = 100 * time.Millisecond })
	c := p.client(token)
	c.call(t.Context(), "srv_write", `{"n":1}`, false)
	q := <-p.watch.asked
	p.decide(q, "bob", approvals.Approve, "")
	c.now("srv_write", `{"n":1}`)
	<-began
	ahead.Store(int64(time.Hour))

	next := w.start()
	got := next.client(token).leftInDoubt("srv_write", `{"n":1}`)
	require.Equal(t, q.ID, (<-next.watch.asked).ID)
	require.Contains(t, got.text(), "it is not known whether it took effect")
	require.Contains(t, got.text(), "People are asked what to do")
	next = w.start()
	e, err := next.runner.Executed(t.Context(), q.ID)
	require.NoError(t, err)
	run, err := next.store.Run(t.Context(), e.Run)
	require.NoError(t, err)
	next.decide(intake.Request{Batch: run.Deferred}, "bob", approvals.Happened, "")
	require.NoError(t, next.runner.Resume(t.Context(), run.Deferred))
	resumed, err := agentrun.ResumeRunID(run.Deferred)
	require.NoError(t, err)
	require.NoError(t, next.runner.Work(t.Context(), resumed))
	got = next.client(token).now("srv_write", `{"n":1}`)
	require.False(t, got.IsError)
	require.Contains(t, got.text(), approvals.HappenedMessage)
	require.Len(t, w.tool("srv.write").executions(), 1)
}

func TestAToolThatIsNotAsItWasAcceptedIsNotThere(t *testing.T) {
	w := newWorld(t)
	p := w.start()
	c := p.client(token)
	names := func() (all []string) {
		got, err := c.session.ListTools(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "private", got.CacheScope, "another credential can have other tools")
		for _, l := range got.Tools {
			all = append(all, l.Name)
			require.Equal(t, "A title", l.Title)
			require.NotEmpty(t, l.Description)
			require.NotNil(t, l.InputSchema)
		}
		return all
	}
	require.Equal(t, []string{"srv_both", "srv_free", "srv_never", "srv_write"}, names())
	write := w.tool("srv.write")
	write.mu.Lock()
	write.gone = errors.New("its server has changed it")
	write.mu.Unlock()
	require.Equal(t, []string{"srv_both", "srv_free", "srv_never"}, names())
	require.Contains(t, c.now("srv_write", `{"n":1}`).text(), "unknown tool")
	require.Empty(t, p.watch.asked)
}

// Whoever accepts another definition while people decide does not make them approve it.
func TestADecisionAboutADefinitionRunsNoOther(t *testing.T) {
	w := newWorld(t)
	p := w.start()
	answer := p.client(token).call(t.Context(), "srv_write", `{"n":1}`, true)
	q := <-p.watch.asked
	write := w.tool("srv.write")
	write.mu.Lock()
	write.gone = errors.New("its definition has changed since it was offered")
	write.mu.Unlock()
	p.decide(q, "bob", approvals.Approve, "")
	require.Contains(t, (<-answer).text(), "its definition has changed since it was offered")
	require.Empty(t, write.executions())
	got, err := p.intake.Get(t.Context(), desk, q.ID)
	require.NoError(t, err)
	require.Zero(t, got.Calls[0].ClaimedAt, "the decision is not used")
}

// Another definition may be accepted after the decision is claimed, before the call is
// executed.
func TestAClaimedDecisionAboutADefinitionRunsNoOther(t *testing.T) {
	w := newWorld(t)
	write := w.tool("srv.write")
	defines := func(as string) {
		write.mu.Lock()
		defer write.mu.Unlock()
		write.definition = as
	}
	defines("first")
	p := w.start()
	answer := p.client(token).call(t.Context(), "srv_write", `{"n":1}`, true)
	q := <-p.watch.asked
	defines("second")
	p.decide(q, "bob", approvals.Approve, "")
	got := <-answer
	require.Contains(t, got.text(), "The definition of this tool has changed since the call was approved. It was not run.")
	require.Empty(t, write.executions())
}

func TestArgumentsThatDoNotFitAreRefusedBeforeAnybodyIsAsked(t *testing.T) {
	p := newWorld(t).start()
	c := p.client(token)
	for _, args := range []string{`{}`, `{"m":1}`, `{"n":"x"}`} {
		got := c.now("srv_write", args)
		require.True(t, got.IsError)
		require.Contains(t, got.text(), "do not fit the schema")
	}
	require.Empty(t, p.watch.asked)
}

func TestTheWholeResultIsPassedOn(t *testing.T) {
	w := newWorld(t)
	result := ""
	rich := &tool{name: "srv.rich", output: `{"type":"object"}`, execute: func(context.Context, agentrun.Call) (agentrun.Result, error) {
		return agentrun.Result{Value: json.RawMessage(`{"content":"described"}`), Metadata: json.RawMessage(result)}, nil
	}}
	w.tools = append(w.tools, rich)
	w.policy.Set("srv.rich", approvals.Permit{})
	p := w.start()
	c := p.client(token)
	result = `{"mcp":{"content":[{"type":"text","text":"see"},{"type":"image","data":"aGVsbG8=","mimeType":"image/png"},` +
		`{"type":"resource_link","uri":"file:///x","name":"x"}],"structuredContent":{"n":9007199254740993}}}`
	got := c.now("srv_rich", `{"n":1}`)
	require.False(t, got.IsError)
	require.Len(t, got.Content, 3)
	require.Equal(t, []byte("hello"), got.Content[1].(*mcp.ImageContent).Data)
	require.Equal(t, "file:///x", got.Content[2].(*mcp.ResourceLink).URI)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.server.URL,
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv_rich","arguments":{"n":1}}}`))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"structuredContent":{"n":9007199254740993}`, "as the server wrote it, not the nearest number")

	result = "" // it was too large to be kept
	got = c.now("srv_rich", `{"n":1}`)
	require.True(t, got.IsError, "a client would refuse a success without its structured content")
	require.Contains(t, got.text(), "The call ran and succeeded.")
	require.Contains(t, got.text(), "described")
}

// That the tool reports an error does not take anything from its result.
func TestTheWholeResultOfAFailedCallIsPassedOn(t *testing.T) {
	w := newWorld(t)
	kept := ""
	w.tools = append(w.tools, &tool{name: "srv.fails", output: `{"type":"object"}`, execute: func(context.Context, agentrun.Call) (agentrun.Result, error) {
		return agentrun.Result{}, &agentrun.FailedError{Message: "it failed", Metadata: json.RawMessage(kept)}
	}})
	w.policy.Set("srv.fails", approvals.Permit{})
	c := w.start().client(token)
	for _, test := range []struct{ kept, text, structured string }{
		{`{"mcp":{"content":[{"type":"text","text":"full"},{"type":"image","data":"aGVsbG8=","mimeType":"image/png"}],"structuredContent":{"code":7}}}`, "full\n", `{"code":7}`},
		{`{"mcp":{"content":[],"structuredContent":{"code":7}}}`, "it failed\n", `{"code":7}`},
		{"", "it failed\n", "null"},
	} {
		kept = test.kept
		got := c.now("srv_fails", `{"n":1}`)
		require.True(t, got.IsError)
		require.Equal(t, test.text, got.text())
		structured, err := json.Marshal(got.StructuredContent)
		require.NoError(t, err)
		require.JSONEq(t, test.structured, string(structured))
		require.Equal(t, strings.Contains(kept, "image"), len(got.Content) == 2)
	}
}

// Since 2026-07-28 the results of a tool may be any JSON value. An older client that is told
// of one such schema cannot read the list at all, and a result only after the call has run.
func TestResultsThatAreNoObjectsAreForClientsThatCanReadThem(t *testing.T) {
	w := newWorld(t)
	w.tools = append(w.tools, &tool{name: "srv.list", output: `{"type":"array"}`, execute: func(context.Context, agentrun.Call) (agentrun.Result, error) {
		return agentrun.Result{Value: json.RawMessage(`"x"`), Metadata: json.RawMessage(`{"mcp":{"content":[],"structuredContent":[1,2]}}`)}, nil
	}}, &tool{name: "srv.object", output: `{"type":"object"}`})
	w.policy.Set("srv.list", approvals.Permit{})
	p := w.start()
	for version, newer := range map[string]bool{"2025-11-25": false, "2026-07-28": true} {
		c := p.speaking(token, version)
		list, err := c.session.ListTools(t.Context(), nil)
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == "srv_object" }))
		for _, tool := range list.Tools {
			object := tool.Name == "srv_object"
			require.Equal(t, object || newer && tool.Name == "srv_list", tool.OutputSchema != nil, "%s in %s", tool.Name, version)
		}
		got := c.now("srv_list", `{"n":1}`)
		require.False(t, got.IsError, got.text())
		if newer {
			require.Equal(t, []any{1.0, 2.0}, got.StructuredContent)
			continue
		}
		require.Nil(t, got.StructuredContent)
		require.Equal(t, "[1,2]\n", got.text())
	}
}

func TestTheCredentialSaysWhoAsks(t *testing.T) {
	w := newWorld(t)
	p := w.start(func(c *gateway.Config) { c.Silent = 50 * time.Millisecond })
	for _, secret := range []string{"", "wrong", "api-token"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.server.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		require.NoError(t, err)
		if secret != "" {
			r.Header.Set("Authorization", "Bearer "+secret)
		}
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	}
	for secret, owner := range map[string]approvals.UserID{token: "alice", "carols-token": "carol"} {
		p.client(secret).now("srv_write", `{"n":1,"requester":"bob","agent":"ops"}`)
		b, err := p.store.Batch(t.Context(), (<-p.watch.asked).Batch)
		require.NoError(t, err)
		require.Equal(t, owner, b.Requester)
		require.Equal(t, "desk", b.Agent)
		require.Equal(t, "C1", b.Channel)
	}
}

func TestATokenThatIsTakenAwayWhileItsCallWaitsRunsNothing(t *testing.T) {
	w := newWorld(t)
	p := w.start()
	answer := p.client(token).call(t.Context(), "srv_write", `{"n":1}`, true)
	q := <-p.watch.asked
	p.tokens.Store(token, true)
	p.decide(q, "bob", approvals.Approve, "")
	require.Contains(t, (<-answer).text(), "does not prove the agent any more")
	require.Empty(t, w.tool("srv.write").executions())
}

func TestATokenThatIsTakenAwayWhileACallArrivesRunsNothing(t *testing.T) {
	w := newWorld(t)
	p := w.start()
	asks := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv_free","arguments":{"n":1}}}`
	out := plainhttptest.PostLate(p.server.Config.Handler, gateway.Path, token, asks, func() { p.tokens.Store(token, true) })
	require.Equal(t, http.StatusUnauthorized, out.Code, out.Body)
	require.Empty(t, w.tool("srv.free").executions())
}

func TestMessagesThatCannotBeReadAreRefused(t *testing.T) {
	p := newWorld(t).start(func(c *gateway.Config) { c.Hosts = []string{"mcp.example.com"} })
	words := ""
	post := func(query, body string, header ...string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.server.URL+query, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
			if header[i] == "Host" {
				r.Host = header[i+1]
			}
		}
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		raw, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		words = string(raw)
		return answer.StatusCode
	}
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	require.Equal(t, http.StatusOK, post("", list))
	require.Equal(t, http.StatusOK, post("?hold=9m", list))
	for _, query := range []string{"?hold=1ms", "?hold=24h", "?hold=x", "?late=keep"} {
		require.Equal(t, http.StatusBadRequest, post(query, list))
	}
	for _, id := range []string{"9007199254740992", "-9007199254740993", "1.5", "1e3", "99999999999999999999"} {
		require.Equal(t, http.StatusBadRequest, post("", `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/list"}`), id)
	}
	require.Equal(t, http.StatusBadRequest, post("", `{"jsonrpc":"2.0","id":9007199254740993,"ID":1,"method":"tools/list"}`))
	require.Equal(t, http.StatusBadRequest, post("", `[`+list+`,{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/list"}]`, "MCP-Protocol-Version", "2025-03-26"))
	require.Equal(t, http.StatusOK, post("", `[`+list+`]`, "MCP-Protocol-Version", "2025-03-26"))
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"srv_write","arguments":{"n":1}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, //nolint:misspell // the word of MCP
	} {
		require.Equal(t, http.StatusBadRequest, post("", `[`+list+`,`+message+`]`, "MCP-Protocol-Version", "2025-03-26"))
		require.Contains(t, words, "send each as a message of its own")
	}
	for _, id := range []string{"9007199254740991", "-1", "0", `"9007199254740993"`} {
		require.Equal(t, http.StatusOK, post("", `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/list"}`), id)
	}
	require.Equal(t, http.StatusBadRequest, post("", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv_write","name":"srv_free","arguments":{"n":1}}}`))
	require.Contains(t, words, `at byte 75: the key "name" occurs twice in one object`)
	require.Equal(t, http.StatusBadRequest, post("", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv_write","arguments":{"n":"\ud800"}}}`))
	require.Contains(t, words, "half a surrogate pair stands for no character")
	require.Equal(t, http.StatusRequestEntityTooLarge, post("", strings.Repeat(" ", 1<<20)+list))
	require.Contains(t, words, "more than 1048576 bytes")
	require.Equal(t, http.StatusOK, post("", list, "Host", "mcp.example.com:8090"))
	require.Equal(t, http.StatusForbidden, post("", list, "Host", "evil.example"), "the SDK's protection of local servers is on")
}

func TestCallsOfAnAgentThatAreHeldAreBounded(t *testing.T) {
	p := newWorld(t).start(func(c *gateway.Config) { c.Holds = 1 })
	c := p.client(token)
	c.call(t.Context(), "srv_write", `{"n":1}`, true)
	<-p.watch.asked
	require.Contains(t, c.now("srv_write", `{"n":2}`).text(), "1 calls that wait")
}

func TestManyCallsAtOnceRunOnceEach(t *testing.T) {
	w := newWorld(t)
	p := w.start()
	c := p.client(token)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			require.Contains(t, c.now("srv_free", `{"n":`+string(rune('0'+i%10))+`}`).text(), "did")
		})
	}
	all.Wait()
}

// A client whose body never comes as a whole is answered, and its connection closed.
func TestAMessageWhoseRestNeverComesIsRefused(t *testing.T) {
	w := newWorld(t)
	p := w.start(func(c *gateway.Config) { c.Handling = 50 * time.Millisecond })
	for credential, want := range map[string]string{token: "did not arrive as a whole", "wrong": "401 Unauthorized"} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.server.Listener.Addr().String())
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\n\r\n{", gateway.Path, credential)
		require.NoError(t, err)
		got, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Contains(t, string(got), want)
	}
}
