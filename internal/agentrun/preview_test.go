package agentrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A thing is what a call of the tool "change" changes, and what "look" reads.
type thing struct {
	value atomic.Int64
	looks atomic.Int64 // previews that were computed
}

func (o *thing) preview(context.Context, agentrun.Call) (agentrun.Preview, error) {
	o.looks.Add(1)
	now := fmt.Sprint(o.value.Load())
	return agentrun.Preview{
		Facts: []approvals.Fact{{Label: "Value", Value: now}}, Content: "-" + now + "\n", Precondition: []byte(now),
	}, nil
}

func looking(c agentrun.Call) (approvals.ToolCall, error) {
	return approvals.ToolCall{Name: "look", Args: c.Args}, nil
}

// watches gives the agent the tools "change", which has a preview and compares
// the precondition itself if checks is set, and "look".
func (w *world) watches(o *thing, checks bool) (change, look *fake) {
	change, look = w.does("change", agentrun.KindUnapproved), w.does("look", agentrun.KindFunction)
	change.spec.Preview = &agentrun.Previewer{Reads: looking, Compute: o.preview, Checks: checks}
	run := change.execute
	change.execute = func(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
		if now := fmt.Sprint(o.value.Load()); checks && c.Precondition != nil && string(c.Precondition) != now {
			return agentrun.Result{}, &agentrun.PreconditionFailed{}
		}
		return run(ctx, c)
	}
	w.agent.Tools = []agentrun.Tool{change, look, w.does("gated", agentrun.KindUnapproved)}
	return change, look
}

func (w *world) previewOf(id approvals.BatchID) approvals.Preview {
	w.t.Helper()
	return w.batch(id).Approvals[0].Preview
}

func TestAPreviewIsStoredWithTheBatch(t *testing.T) {
	w, o := newWorld(t), &thing{}
	w.watches(o, false)
	o.value.Store(7)
	run := w.say(calls([3]string{"a", "change", `{"x":1}`}))
	digest := approvals.PreviewDigest(run.Deferred, "a", "-7\n")
	require.Equal(t, approvals.Preview{
		Status: approvals.PreviewMade, Reads: "look", Facts: []approvals.Fact{{Label: "Value", Value: "7"}},
		Content: approvals.Content{Digest: digest, Size: 3}, Precondition: []byte("7"), CheckedAt: epoch,
	}, w.previewOf(run.Deferred))
	content, err := w.store.Args(t.Context(), run.Deferred, digest)
	require.NoError(t, err)
	require.Equal(t, "-7\n", string(content))
	require.Empty(t, w.executed(), "nothing is read by the tool that reads")

	w.decide(run.Deferred, "a", approvals.Approve, "")
	require.Equal(t, agentrun.RunCompleted, w.resume(run.Deferred).Status)
	require.Equal(t, []string{"change:1"}, w.executed())
}

// A preview runs with arguments that a model chose, so it shows nothing that the
// agent could not read without asking.
func TestAPreviewRunsOnlyWhereTheAgentMayReadTheSame(t *testing.T) {
	ask := approvals.Ask{Requirement: signedBy("bob")}
	yes := func(context.Context, agentrun.Call) (bool, error) { return true, nil }
	for name, c := range map[string]struct {
		rule func(w *world, look *fake)
		want approvals.PreviewStatus
	}{
		"the policy asks":    {rule: func(w *world, _ *fake) { w.policy.by = map[string]approvals.Ruling{"look": ask} }, want: approvals.PreviewReadAsks},
		"the policy refuses": {rule: func(w *world, _ *fake) { w.policy.by = map[string]approvals.Ruling{"look": approvals.Refuse{}} }, want: approvals.PreviewReadRefused},
		"the policy is mute": {rule: func(w *world, _ *fake) { w.policy.by = map[string]approvals.Ruling{"look": nil} }, want: approvals.PreviewReadUnjudged},
		"the policy fails":   {rule: func(w *world, _ *fake) { w.policy.err = errors.New("no file") }, want: approvals.PreviewReadUnjudged},
		"the policy panics":  {rule: func(w *world, _ *fake) { w.policy.panics = true }, want: approvals.PreviewReadUnjudged},
		"the tool asks":      {rule: func(_ *world, f *fake) { f.spec.Kind = agentrun.KindUnapproved }, want: approvals.PreviewReadAsks},
		"the tool asks now":  {rule: func(_ *world, f *fake) { f.spec.NeedsApproval = yes }, want: approvals.PreviewReadAsks},
		"the tool raises":    {rule: func(_ *world, f *fake) { f.validate = raises(&agentrun.ApprovalRequired{}) }, want: approvals.PreviewReadAsks},
		"the tool defers":    {rule: func(_ *world, f *fake) { f.validate = raises(&agentrun.CallDeferred{}) }, want: approvals.PreviewReadAsks},
		"it runs elsewhere":  {rule: func(_ *world, f *fake) { f.spec.Kind = agentrun.KindExternal }, want: approvals.PreviewReadRefused},
		"no such tool":       {rule: func(_ *world, f *fake) { f.spec.Name = "peek" }, want: approvals.PreviewReadRefused},
		"other arguments":    {rule: func(_ *world, f *fake) { f.validate = raises(errors.New("no")) }, want: approvals.PreviewFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w, o := newWorld(t), &thing{}
			_, look := w.watches(o, false)
			c.rule(w, look)
			run := w.say(calls([3]string{"a", "change", `{"x":1}`}))
			got := w.previewOf(run.Deferred)
			require.Equal(t, approvals.Preview{Status: c.want, Reads: "look"}, got)
			require.Zero(t, o.looks.Load())
			require.Empty(t, w.executed())
		})
	}
}

func raises(err error) func(context.Context, agentrun.Call) error {
	return func(context.Context, agentrun.Call) error { return err }
}

// The policy judges the read as if the model had asked for it then.
func TestThePolicyHearsOfTheReadAndNotOfTheCall(t *testing.T) {
	w, o := newWorld(t), &thing{}
	w.watches(o, false)
	w.say(calls([3]string{"l", "look", `{"x":3}`}, [3]string{"a", "change", `{"x":1}`}))
	require.Len(t, w.policy.seen, 3)
	require.Equal(t, approvals.Proposal{
		Call:  approvals.ToolCall{ID: "preview:a", Name: "look", Args: json.RawMessage(`{"x":1}`)},
		Agent: "ops", Requester: "alice", Channel: "C1", At: epoch,
		SoFar: approvals.SoFar{Steps: 1, Executed: map[string]int{"look": 1}},
	}, w.policy.seen[2])
}

// Whatever a preview does, people are asked.
func TestAPreviewThatBreaksDoesNotStopTheRequest(t *testing.T) {
	for name, compute := range map[string]func(context.Context, agentrun.Call) (agentrun.Preview, error){
		"fails": func(context.Context, agentrun.Call) (agentrun.Preview, error) {
			return agentrun.Preview{Content: "x"}, errAway
		},
		"panics": func(context.Context, agentrun.Call) (agentrun.Preview, error) { panic("no") },
		"leaves": func(context.Context, agentrun.Call) (agentrun.Preview, error) {
			runtime.Goexit()
			return agentrun.Preview{}, nil
		},
		"too much to keep": func(context.Context, agentrun.Call) (agentrun.Preview, error) {
			return agentrun.Preview{Precondition: make([]byte, approvals.MaxPrecondition+1)}, nil
		},
		"stops when it is told to": func(ctx context.Context, _ agentrun.Call) (agentrun.Preview, error) {
			<-ctx.Done()
			return agentrun.Preview{Content: "late"}, nil
		},
		"hangs": func(context.Context, agentrun.Call) (agentrun.Preview, error) {
			time.Sleep(time.Hour)
			return agentrun.Preview{}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, o := newWorld(t), &thing{}
				change, _ := w.watches(o, false)
				change.spec.Preview.Compute = compute
				began := time.Now()
				run := w.say(calls([3]string{"a", "change", `{"x":1}`}))
				require.LessOrEqual(t, time.Since(began), agentrun.DefaultPreviewTimeout+5*time.Second)
				require.Equal(t, approvals.Preview{Status: approvals.PreviewFailed, Reads: "look"}, w.previewOf(run.Deferred))
				w.decide(run.Deferred, "a", approvals.Approve, "")
				require.Equal(t, agentrun.RunCompleted, w.resume(run.Deferred).Status, "people knew that nobody had looked")
				require.Equal(t, []string{"change:1"}, w.executed())
				time.Sleep(time.Hour) // until what hangs has returned
			})
		})
	}
}

func TestAPreviewIsGivenItsTimeAndNoMore(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		0: agentrun.DefaultPreviewTimeout, time.Second: time.Second, time.Hour: agentrun.MaxPreviewTimeout,
	} {
		synctest.Test(t, func(t *testing.T) {
			w, o := newWorld(t), &thing{}
			change, _ := w.watches(o, false)
			var left time.Duration
			change.spec.Preview.Timeout = timeout
			change.spec.Preview.Compute = func(ctx context.Context, _ agentrun.Call) (agentrun.Preview, error) {
				deadline, _ := ctx.Deadline()
				left = time.Until(deadline)
				return agentrun.Preview{}, nil
			}
			w.say(calls([3]string{"a", "change", `{"x":1}`}))
			require.Equal(t, want, left)
		})
	}
}

func TestAPreviewIsCut(t *testing.T) {
	w, o := newWorld(t), &thing{}
	change, _ := w.watches(o, false)
	change.spec.Preview.Compute = func(context.Context, agentrun.Call) (agentrun.Preview, error) {
		return agentrun.Preview{
			Facts:   append(make([]approvals.Fact, 7), approvals.Fact{Label: strings.Repeat("ü", 200), Value: "\xff"}, approvals.Fact{Label: "ninth"}),
			Content: "x" + strings.Repeat("ü", approvals.MaxPreviewContent/2),
		}, nil
	}
	run := w.say(calls([3]string{"a", "change", `{"x":1}`}))
	got := w.previewOf(run.Deferred)
	require.Len(t, got.Facts, approvals.MaxFacts)
	require.Equal(t, approvals.Fact{Label: strings.Repeat("ü", 119) + "…", Value: "\ufffd"}, got.Facts[7])
	require.Equal(t, []int{approvals.MaxPreviewContent - 1, 2}, []int{got.Content.Size, got.Content.Left})
	content, err := w.store.Args(t.Context(), run.Deferred, got.Content.Digest)
	require.NoError(t, err)
	require.Equal(t, "x"+strings.Repeat("ü", approvals.MaxPreviewContent/2-1), string(content), "between two characters")
}

// What the tool said was about the arguments that it was given.
func TestAnEditDropsThePreview(t *testing.T) {
	w, o := newWorld(t), &thing{}
	w.watches(o, false)
	run := w.say(calls([3]string{"a", "change", `{"x":1}`}))
	w.amend(run.Deferred, "a", `{"x":2}`)
	require.Equal(t, approvals.Preview{Status: approvals.PreviewEdited}, w.previewOf(run.Deferred))
	o.value.Store(1)
	w.decide(run.Deferred, "a", approvals.Approve, "")
	require.Equal(t, agentrun.RunCompleted, w.resume(run.Deferred).Status, "nothing was said that has to hold")
	require.Equal(t, []string{"change:2"}, w.executed())
}

// Only calls that people are asked about are previewed, and those that run
// elsewhere are not.
func TestOnlyWhatPeopleAreAskedAboutIsPreviewed(t *testing.T) {
	w, o := newWorld(t), &thing{}
	change, _ := w.watches(o, false)
	change.spec.Kind = agentrun.KindFunction
	w.policy.by = map[string]approvals.Ruling{"external": approvals.Ask{Requirement: signedBy("bob")}}
	external := w.does("external", agentrun.KindExternal)
	external.spec.Preview = change.spec.Preview
	w.agent.Tools = append(w.agent.Tools, external)
	run := w.say(calls([3]string{"a", "change", `{"x":1}`}, [3]string{"e", "external", `{"x":1}`}))
	people, _ := w.pending(run)
	require.Equal(t, []string{"e"}, people)
	require.Zero(t, w.previewOf(run.Deferred))
	require.Zero(t, o.looks.Load())
}
