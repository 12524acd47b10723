package uistream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/uistream"
)

// A typist writes responses piece by piece, each when it is told to, by a key.
type typist struct {
	mu       sync.Mutex
	attempts map[string]int
	next     map[string]chan struct{}
	kill     map[string]context.CancelFunc
}

func newTypist() *typist {
	return &typist{attempts: map[string]int{}, next: map[string]chan struct{}{}, kill: map[string]context.CancelFunc{}}
}

// worker is the context of a worker, with which it can be killed.
type worker struct{}

// begin notes an attempt.
func (y *typist) begin(ctx context.Context, key string) (attempt int, next <-chan struct{}) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.attempts[key]++
	y.kill[key], _ = ctx.Value(worker{}).(context.CancelFunc)
	return y.attempts[key], y.goOn(key)
}

func (y *typist) goOn(key string) chan struct{} {
	if y.next[key] == nil {
		y.next[key] = make(chan struct{})
	}
	return y.next[key]
}

// write writes the pieces, and waits after each.
func (y *typist) write(ctx context.Context, q agentrun.ModelRequest, next <-chan struct{}, d agentrun.Delta, pieces []string) error {
	for _, d.Text = range pieces {
		if q.Written != nil {
			q.Written(d)
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// types is a part that is written slowly:
//
//	type:KEY:one,two  a text
//	typo:KEY:one,two  likewise, but the first attempt begins with something else
//	args:KEY:PATH     a call of del
func (y *typist) types(ctx context.Context, q agentrun.ModelRequest, id approvals.ToolCallID, kind, spec string) (agentrun.ResponsePart, error) {
	key, rest, _ := strings.Cut(spec, ":")
	attempt, next := y.begin(ctx, key)
	if kind == "args" {
		args := fmt.Sprintf(`{"path":%q}`, rest)
		err := y.write(ctx, q, next, agentrun.Delta{Kind: agentrun.DeltaCall, Call: id, Tool: "del"}, []string{args[:9], args[9:]})
		return agentrun.CallPart{ToolCall: approvals.ToolCall{ID: id, Name: "del", Args: json.RawMessage(args)}}, err
	}
	pieces := strings.Split(rest, ",")
	if kind == "typo" && attempt == 1 {
		pieces[0] = "oops"
	}
	return agentrun.Text{Content: strings.Join(pieces, "")}, y.write(ctx, q, next, agentrun.Delta{Kind: agentrun.DeltaText}, pieces)
}

// control is what a test says to the typist: go, kill, and attempts.
func (y *typist) control(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Query().Get("key")
	y.mu.Lock()
	next, kill, attempts := y.goOn(key), y.kill[key], y.attempts[key]
	y.mu.Unlock()
	switch r.PathValue("what") {
	case "go":
		select {
		case next <- struct{}{}:
		case <-r.Context().Done():
		}
	case "kill":
		kill()
	}
	_ = json.NewEncoder(w).Encode(attempts)
}

// release has the typist go on.
func (y *typist) release(key string) {
	y.mu.Lock()
	next := y.goOn(key)
	y.mu.Unlock()
	next <- struct{}{}
}

// What others asked for in a shared conversation is shown when it is stored: only
// then is it known what of it they may see.
func TestInASharedConversationOnlyWhoAskedSeesTextComing(t *testing.T) {
	w, _ := inSlack(t, bob, "say hello")
	w.opens(bob).ended()
	mine := read(t, w.opens(alice).say("u1", "type:k:one,two"))
	mine.until("text-delta")
	theirs := read(t, w.opens(bob).do(http.MethodGet, "/api/chat/"+uistream.ChatID(slackThread)+"/stream", nil))
	theirs.until("start")
	w.typist.release("k")
	mine.until("text-delta")
	w.typist.release("k")
	require.NotContains(t, short(mine.all()), "text-delta", "all of it has come")
	require.Contains(t, short(theirs.all()), "text-delta onetwo")
}
