package uistream_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/uistream"
)

// An editing desk has bob edit a call while a request about it is handled: before
// the batch is read for the second time, or before the decision.
type editing struct {
	*approvals.Desk

	edit   func() error
	second bool
	reads  int
}

func (d *editing) Batch(ctx context.Context, id approvals.BatchID) (approvals.Batch, error) {
	if d.reads++; d.second && d.reads == 2 {
		if err := d.edit(); err != nil {
			return approvals.Batch{}, err
		}
	}
	return d.Desk.Batch(ctx, id)
}

func (d *editing) DecideCase(ctx context.Context, c approvals.Case, r approvals.RequestID, v approvals.Verdict, reason string) (approvals.Case, error) {
	if !d.second {
		if err := d.edit(); err != nil {
			return c, err
		}
	}
	return d.Desk.DecideCase(ctx, c, r, v, reason)
}

// editedBefore replaces the server by one whose desk has the only call edited while
// the next answer is handled.
func (c *client) editedBefore(second bool, approval string) {
	c.Helper()
	id, _, _ := strings.Cut(approval, ".")
	config := c.config
	config.Desk = &editing{Desk: c.desk, second: second, edit: func() error {
		b, err := c.desk.Batch(c.Context(), approvals.BatchID(id))
		require.NoError(c, err)
		x, err := c.desk.Case(c.Context(), b, b.Approvals[0].Call.ID, b.Approvals[0].Call.Digest, people{}.resolver(bob))
		require.NoError(c, err)
		_, err = c.desk.AmendCase(c.Context(), x, "edit", json.RawMessage(`{"path":"b"}`))
		return err
	}}
	c.serve(config)
}

// serve replaces the server by one with this configuration.
func (c *client) serve(config uistream.Config) {
	c.Helper()
	chats, err := uistream.New(config)
	require.NoError(c, err)
	c.Cleanup(chats.Drain)
	c.http.Config.Handler = chats
}

// What was shown is what runs, also when the arguments change in the middle of the
// request.
func TestAnAnswerNeverCountsForArgumentsThatAreChangedWhileItIsHandled(t *testing.T) {
	for _, second := range []bool{true, false} {
		c := newWorld(t).client(alice)
		message, asked := c.ask("del:a")
		c.editedBefore(second, asked["c0.0.0"])
		got := read(t, c.answer(message, responded("del", "c0.0.0", asked["c0.0.0"], true, "a"))).all()
		require.Contains(t, short(got), "Someone edited the arguments")
		require.Equal(t, object{"path": "b"}, the(t, got, "tool-input-available")["input"])
		require.Empty(t, c.executed())
	}
}

func TestARefusedAnswerShowsTheArgumentsOfTheApprovalThatItNames(t *testing.T) {
	c := newWorld(t).client(alice)
	_, asked := c.ask("del:a")
	c.editedBefore(false, asked["c0.0.0"])
	r := c.do(http.MethodPost, "/api/chat/chat1/approvals/"+asked["c0.0.0"], object{"approved": true})
	require.Equal(t, http.StatusConflict, r.code)
	var p struct {
		Approval struct{ ApprovalID, Arguments string }
	}
	require.NoError(t, json.NewDecoder(r.body).Decode(&p))
	require.NotEqual(t, asked["c0.0.0"], p.Approval.ApprovalID)
	require.JSONEq(t, `{"path":"b"}`, p.Approval.Arguments)
	require.Empty(t, c.executed())
}

// later replaces the server by one at whose clock these hours have passed, before the
// deadlines of that time are due anywhere else.
func (c *client) later(hours int) {
	c.Helper()
	config := c.config
	config.Now = func() time.Time { return time.Now().Add(time.Duration(hours) * time.Hour) }
	config.Desk = approvals.NewDesk(c.store, rules{}, nil, config.Now)
	c.serve(config)
}

// A client that loads a chat between a deadline and the moment when that is due has to see
// the call as answered, or it never sends the answers to the others of its step.
func TestAClientThatLoadsAChatRightAfterADeadlineCanAnswerTheOtherCalls(t *testing.T) {
	for name, row := range map[string]struct {
		load  func(c *client) string
		shows string
	}{
		"page":   {func(c *client) string { return body(c.T, c.do(http.MethodGet, "/api/chat/"+c.chat, nil)) }, approvals.ExpiredMessage},
		"stream": {func(c *client) string { return short(c.replay().all()) }, "tool-approval-request c0.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newWorld(t).client(alice)
			message, asked := c.ask("hour:a del:b")
			c.later(2)
			require.Contains(t, row.load(c), row.shows)
			b, err := c.store.Batch(t.Context(), approvals.BatchID(strings.Split(asked["c0.0.0"], ".")[0]))
			require.NoError(t, err)
			require.Equal(t, approvals.Expired, b.Approvals[0].Status)
			echo := responded("hour", "c0.0.0", asked["c0.0.0"], false, "a")
			echo["approval"].(object)["reason"] = approvals.ExpiredMessage
			got := short(read(t, c.answer(message, echo, responded("del", "c0.0.1", asked["c0.0.1"], true, "b"))).all())
			require.Contains(t, got, "c0.0.0 expired")
			require.NotContains(t, got, "The time to decide is over")
			require.Equal(t, []string{`del{"path":"b"}`}, c.executed())
		})
	}
}

// A full desk stores nothing that time does.
type full struct{ *approvals.Desk }

func (full) Tick(context.Context, approvals.BatchID) error { return errors.New("redis is full") }

// What cannot be stored can still be read.
func TestAChatWithAnOverdueCallCanBeReadWhileNothingCanBeStored(t *testing.T) {
	c := newWorld(t).client(alice)
	c.ask("hour:a del:b")
	config := c.config
	config.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	config.Desk = full{c.desk}
	c.serve(config)
	require.Contains(t, body(t, c.do(http.MethodGet, "/api/chat/"+c.chat, nil)), `"status":"expired"`)
}

// Mute runs cannot be read.
type mute struct{ uistream.Runs }

func (mute) Thread(context.Context, agentrun.ThreadID) (agentrun.Thread, error) {
	return agentrun.Thread{}, errors.New("redis is away")
}

// Who only reads has sent nothing that could count.
func TestAReaderIsNotToldThatTheirRequestMayCount(t *testing.T) {
	c := newWorld(t).client(alice)
	c.ask("del:a")
	config := c.config
	config.Runs = mute{config.Runs}
	c.serve(config)
	r := c.do(http.MethodGet, "/api/chat/"+c.chat, nil)
	require.Equal(t, http.StatusServiceUnavailable, r.code)
	require.NotContains(t, body(t, r), "counts")
}
