package uistream_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/uistream"
)

// answer is the follow-up request of a client with this part in its assistant
// message.
func (c *client) answer(message string, parts ...object) reply {
	c.Helper()
	return c.do(http.MethodPost, uistream.Path, object{"id": c.chat, "trigger": "submit-message", "messageId": message, "messages": []any{
		userMessage("u1", "x"), object{"id": message, "role": "assistant", "parts": parts},
	}})
}

// responded is a part that a person has answered.
func responded(tool, call, approval string, approved bool, path string) object {
	return object{
		"type": "tool-" + tool, "toolCallId": call, "state": "approval-responded", "input": object{"path": path},
		"approval": object{"id": approval, "approved": approved, "reason": "because"},
	}
}

// ask begins a chat, and returns the message and the approvals by the id of their
// calls.
func (c *client) ask(text string) (message string, approvals map[string]string) {
	c.Helper()
	approvals = map[string]string{}
	for _, x := range read(c.T, c.say("u1", text)).all() {
		switch x["type"] {
		case "start":
			message, _ = x["messageId"].(string)
		case "tool-approval-request":
			call, _ := x["toolCallId"].(string)
			approvals[call], _ = x["approvalId"].(string)
		}
	}
	return message, approvals
}

func TestAnAnswerThatFitsNoRequestIsRefusedAndNothingRuns(t *testing.T) {
	w := newWorld(t)
	c, other := w.client(alice), w.client(bob)
	message, asked := c.ask("del:a del:b")
	_, others := other.ask("del:c")
	a := asked["c0.0.0"]
	good := responded("del", "c0.0.1", asked["c0.0.1"], true, "b")
	for name, part := range map[string]object{
		"an approval that was never issued":     responded("del", "c0.0.0", "batch-00-x."+strings.Repeat("0", 32), true, "a"),
		"an id of another form":                 responded("del", "c0.0.0", "aitxt-123", true, "a"),
		"an empty id":                           responded("del", "c0.0.0", "", true, "a"),
		"a digest of other arguments":           responded("del", "c0.0.0", a[:len(a)-32]+strings.Repeat("0", 32), true, "a"),
		"a shorter digest":                      responded("del", "c0.0.0", a[:len(a)-1], true, "a"),
		"other arguments":                       responded("del", "c0.0.0", a, true, "etc"),
		"the approval of another call":          responded("del", "c0.0.0", asked["c0.0.1"], true, "a"),
		"a call that there is not":              responded("del", "c9", a, true, "a"),
		"another tool":                          responded("free", "c0.0.0", a, true, "a"),
		"a call in the chat of another person":  responded("del", "c0.0.0", others["c0.0.0"], true, "c"),
		"an approval with the name of a method": responded("del", "c0.0.0", "__proto__", true, "a"),
	} {
		r := c.answer(message, good, part)
		require.Equal(t, http.StatusConflict, r.code, name)
		require.Contains(t, body(t, r), "Nothing changed", name)
	}
	require.Equal(t, http.StatusConflict, c.answer("msg-run-00-x", object{"type": "text", "text": "x"}).code, "a message of nobody")
	require.Equal(t, http.StatusConflict, other.answer(message, good).code, "a message of another person")
	b, err := w.desk.Batch(t.Context(), approvals.BatchID(strings.Split(a, ".")[0]))
	require.NoError(t, err)
	for _, x := range b.Approvals {
		require.Empty(t, x.Decisions, "the good answer beside a forged one is not taken either")
	}
	require.Empty(t, w.executed())
}

func TestAReplayedAnswerRunsNothingAgain(t *testing.T) {
	c := newWorld(t).client(alice)
	message, asked := c.ask("del:a")
	part := responded("del", "c0.0.0", asked["c0.0.0"], true, "a")
	for range 3 {
		got := read(t, c.answer(message, part)).all()
		require.Equal(t, message, got[0]["messageId"])
		require.Contains(t, short(got), "tool-output-available c0.0.0")
		require.Contains(t, short(got), "finish stop")
	}
	require.Len(t, c.executed(), 1)
}

func TestADenialThatIsFlippedStaysADenial(t *testing.T) {
	c := newWorld(t).client(alice)
	message, asked := c.ask("del:a")
	require.Contains(t, short(read(t, c.answer(message, responded("del", "c0.0.0", asked["c0.0.0"], false, "a"))).all()), "tool-output-denied")
	flipped := read(t, c.answer(message, responded("del", "c0.0.0", asked["c0.0.0"], true, "a"))).all()
	require.Contains(t, short(flipped), "tool-output-denied c0.0.0")
	require.Contains(t, short(flipped), "denied 0 of 1 This was already decided. Nothing changed.", "the same person decided it")
	r := c.do(http.MethodPost, "/api/chat/chat1/approvals/"+asked["c0.0.0"], object{"approved": true})
	require.Equal(t, http.StatusConflict, r.code)
	require.Empty(t, c.executed())
}

func TestOfContradictoryAnswersTheFirstCounts(t *testing.T) {
	c := newWorld(t).client(alice)
	message, asked := c.ask("del:a")
	got := short(read(t, c.answer(message,
		responded("del", "c0.0.0", asked["c0.0.0"], false, "a"), responded("del", "c0.0.0", asked["c0.0.0"], true, "a"))).all())
	require.Contains(t, got, "tool-output-denied")
	require.Empty(t, c.executed())
}

func TestHalfABatchIsHeldAndNotRun(t *testing.T) {
	c := newWorld(t).client(alice)
	message, asked := c.ask("del:a del:b")
	got := short(read(t, c.answer(message, responded("del", "c0.0.0", asked["c0.0.0"], true, "a"))).all())
	require.Contains(t, got, "finish tool-calls")
	require.NotContains(t, got, "tool-output")
	require.Empty(t, c.executed())
	got = short(read(t, c.answer(message,
		responded("del", "c0.0.0", asked["c0.0.0"], true, "a"), responded("del", "c0.0.1", asked["c0.0.1"], true, "b"))).all())
	require.Contains(t, got, "finish stop")
	require.Len(t, c.executed(), 2)
}

// A client sends its answers again with every message, and nobody can change one
// there. So an answer with a reason that is too long is asked about again; it doesn't
// have each message of the chat refused.
func TestAReasonThatIsTooLongDoesNotEndTheChat(t *testing.T) {
	c := newWorld(t).client(alice)
	message, asked := c.ask("del:a")
	long := responded("del", "c0.0.0", asked["c0.0.0"], false, "a")
	long["approval"].(object)["reason"] = strings.Repeat("x", approvals.MaxReason+1)
	got := read(t, c.answer(message, long)).all()
	require.Contains(t, short(got), "tool-approval-request")
	require.Contains(t, toJSON(t, got), "Your reason is too long.")
	require.Empty(t, c.executed())
	got = read(t, c.answer(message, responded("del", "c0.0.0", asked["c0.0.0"], false, "a"))).all()
	require.Contains(t, short(got), "tool-output-denied", "it can be decided again")
}

// What was shown is what runs: arguments that somebody changed in Slack are asked
// about anew.
func TestArgumentsThatWereChangedMeanwhileAreAskedAboutAnew(t *testing.T) {
	c := newWorld(t).client(alice)
	message, asked := c.ask("bobs:a")
	id := approvals.BatchID(strings.Split(asked["c0.0.0"], ".")[0])
	b, err := c.desk.Batch(t.Context(), id)
	require.NoError(t, err)
	of := func(user approvals.UserID) approvals.Case {
		x, err := c.desk.Case(t.Context(), b, "c0.0.0", b.Approvals[0].Call.Digest, people{}.resolver(user))
		require.NoError(t, err)
		return x
	}
	_, err = c.desk.AmendCase(t.Context(), of(bob), "edit", json.RawMessage(`{"path":"b"}`))
	require.NoError(t, err)

	got := read(t, c.answer(message, responded("bobs", "c0.0.0", asked["c0.0.0"], true, "a"))).all()
	require.Contains(t, short(got), "Someone edited the arguments")
	require.Equal(t, object{"path": "b"}, the(t, got, "tool-input-available")["input"])
	anew, _ := the(t, got, "tool-approval-request")["approvalId"].(string)
	require.NotEqual(t, asked["c0.0.0"], anew)
	require.Equal(t, http.StatusConflict, c.client(bob).do(http.MethodPost, "/api/chat/chat1/approvals/"+asked["c0.0.0"], object{"approved": true}).code)
	require.Empty(t, c.executed())
}

func the(t *testing.T, all []object, kind string) object {
	t.Helper()
	found := of(all, kind)
	require.NotNil(t, found, kind)
	return found
}

func TestAnAnswerBesideTheProtocolIsForThoseWhoMayReadTheCall(t *testing.T) {
	w := newWorld(t)
	c := w.client(alice)
	_, asked := c.ask("bobs:a")
	path := "/api/chat/chat1/approvals/" + asked["c0.0.0"]
	for name, row := range map[string]struct {
		user approvals.UserID
		path string
		body any
		code int
	}{
		"nobody":                 {"x", path, object{"approved": true}, http.StatusUnauthorized},
		"who may not read":       {carol, path, object{"approved": true}, http.StatusNotFound},
		"who may not approve":    {alice, path, object{"approved": true}, http.StatusForbidden},
		"another chat":           {bob, "/api/chat/chat2/approvals/" + asked["c0.0.0"], object{"approved": true}, http.StatusNotFound},
		"no such approval":       {bob, "/api/chat/chat1/approvals/x", object{"approved": true}, http.StatusNotFound},
		"no verdict":             {bob, path, object{"reason": "x"}, http.StatusUnprocessableEntity},
		"a verdict that is none": {bob, path, object{"approved": "yes"}, http.StatusUnprocessableEntity},
		"no lookup":              {"ULOST", path, object{"approved": true}, http.StatusServiceUnavailable},
	} {
		r := w.client(row.user).do(http.MethodPost, row.path, row.body)
		require.Equal(t, row.code, r.code, name)
		if row.code == http.StatusUnprocessableEntity {
			require.Equal(t, 1, strings.Count(body(t, r), `{"at":"/approved","problem":"must be true or false"}`), name)
		}
	}
	require.Equal(t, http.StatusNotFound, w.client(carol).do(http.MethodGet, path, nil).code)
	require.Contains(t, body(t, w.client(bob).do(http.MethodGet, path, nil)), `"status":"waiting"`)
	require.Empty(t, w.executed())
	require.Contains(t, body(t, w.client(bob).do(http.MethodPost, path, object{"approved": true})), `"status":"approved"`)
	require.Eventually(t, func() bool { return len(w.executed()) == 1 }, waitTime, tick)
}

// A client sends what was answered before with every message. A decision that its person
// took back meanwhile does not count again by that, and nobody is told that it does.
func TestAnAnswerThatWasTakenBackDoesNotCountAgain(t *testing.T) {
	w := newWorld(t, func(c *uistream.Config, _ *agentrun.Agent) { c.Hold = 200 * time.Millisecond })
	c := w.client(alice)
	message, asked := c.ask("two:a")
	part := responded("two", "c0.0.0", asked["c0.0.0"], true, "a")
	at := "/api/chat/" + c.chat + "/approvals/" + asked["c0.0.0"]
	older := object{"id": c.chat, "messages": []any{
		userMessage("u1", "x"), object{"id": message, "role": "assistant", "parts": []any{part}}, userMessage("u2", "say next"),
	}}
	decisions := func() int {
		x, err := w.caseOf(t.Context(), bob, "a")
		require.NoError(t, err)
		return len(x.Approval.Decisions)
	}
	require.Contains(t, short(read(t, c.answer(message, part)).all()), "counts")
	require.Equal(t, 1, decisions())
	x, err := w.caseOf(t.Context(), alice, "a")
	require.NoError(t, err)
	_, err = w.desk.RetractCase(t.Context(), x, "back")
	require.NoError(t, err)

	got := short(read(t, c.answer(message, part)).all())
	require.Contains(t, got, "You took a decision back")
	require.NotContains(t, got, "counts")
	require.Zero(t, decisions())
	r := c.do(http.MethodPost, at, object{"approved": true, "reason": "because"})
	require.Equal(t, http.StatusConflict, r.code)
	require.Contains(t, body(t, r), "You took a decision back")
	require.Zero(t, decisions())
	require.Equal(t, http.StatusOK, c.do(http.MethodPost, at, object{"approved": true, "reason": "on second thoughts"}).code)
	require.Equal(t, 1, decisions(), "what is said anew counts")
	_, err = w.desk.RetractCase(t.Context(), x, "back again")
	require.NoError(t, err)
	require.NoError(t, w.decide(t.Context(), bob, "a", approvals.Approve, ""))
	require.Contains(t, short(read(t, c.do(http.MethodPost, uistream.Path, older)).all()), "superseded", "alice approved it no more")
	require.Empty(t, w.executed())
}

// A chat sends its old answers with every message, for as long as it is open.
func TestAnAnswerThatWasTakenBackNeverCountsAgain(t *testing.T) {
	w := newWorld(t, func(c *uistream.Config, _ *agentrun.Agent) { c.Hold = 200 * time.Millisecond })
	c := w.client(alice)
	message, asked := c.ask("two:a")
	part := responded("two", "c0.0.0", asked["c0.0.0"], true, "a")
	back := func(who approvals.UserID, r string) {
		x, err := w.caseOf(t.Context(), who, "a")
		require.NoError(t, err)
		_, err = w.desk.RetractCase(t.Context(), x, approvals.RequestID(r))
		require.NoError(t, err)
	}
	for n := range 10 { // more than the batch itself remembers
		require.NoError(t, w.decide(t.Context(), bob, "a", approvals.Approve, ""))
		back(bob, fmt.Sprint("back ", n))
	}
	require.Contains(t, short(read(t, c.answer(message, part)).all()), "counts")
	back(alice, "back")
	w.pass(11 * time.Minute)
	require.Contains(t, short(read(t, c.answer(message, part)).all()), "You took a decision back")
	x, err := w.caseOf(t.Context(), bob, "a")
	require.NoError(t, err)
	require.Empty(t, x.Approval.Decisions)
	require.NoError(t, w.decide(t.Context(), bob, "a", approvals.Approve, ""))
	require.Empty(t, w.executed(), "alice does not approve it any more")
}

// An answer that says what its person had decided elsewhere already changes nothing. It
// does not count later either, when that decision was taken back.
func TestAnAnswerThatRepeatedADecisionDoesNotCountOnceThatIsTakenBack(t *testing.T) {
	w := newWorld(t, func(c *uistream.Config, _ *agentrun.Agent) { c.Hold = 200 * time.Millisecond })
	c := w.client(alice)
	message, asked := c.ask("two:a")
	part := responded("two", "c0.0.0", asked["c0.0.0"], true, "a")
	require.NoError(t, w.decide(t.Context(), alice, "a", approvals.Approve, ""))
	require.Contains(t, short(read(t, c.answer(message, part)).all()), "counts")
	x, err := w.caseOf(t.Context(), alice, "a")
	require.NoError(t, err)
	require.Len(t, x.Approval.Decisions, 1)
	_, err = w.desk.RetractCase(t.Context(), x, "back")
	require.NoError(t, err)

	require.Contains(t, short(read(t, c.answer(message, part)).all()), "You took a decision back")
	require.NoError(t, w.decide(t.Context(), bob, "a", approvals.Approve, ""))
	require.Empty(t, w.executed(), "alice does not approve it any more")
}

// An answer that was refused, because its person had said the opposite, does not count
// later either, when that decision was taken back.
func TestAnAnswerThatContradictedADecisionDoesNotCountOnceThatIsTakenBack(t *testing.T) {
	w := newWorld(t, func(c *uistream.Config, _ *agentrun.Agent) { c.Hold = 200 * time.Millisecond })
	c := w.client(alice)
	message, asked := c.ask("two:a")
	part := responded("two", "c0.0.0", asked["c0.0.0"], false, "a")
	require.NoError(t, w.decide(t.Context(), alice, "a", approvals.Approve, ""))
	for range 2 {
		require.Contains(t, short(read(t, c.answer(message, part)).all()), "already decided otherwise")
	}
	x, err := w.caseOf(t.Context(), alice, "a")
	require.NoError(t, err)
	_, err = w.desk.RetractCase(t.Context(), x, "back")
	require.NoError(t, err)

	require.Contains(t, short(read(t, c.answer(message, part)).all()), "You took a decision back")
	x, err = w.caseOf(t.Context(), alice, "a")
	require.NoError(t, err)
	require.Equal(t, approvals.Pending, x.Approval.Status)
	require.Empty(t, x.Approval.Decisions)
}

// Operators count decisions by the log.
func TestADecisionIsLoggedOnceHoweverOftenItsAnswerIsSent(t *testing.T) {
	var logged decisionsLogged
	w := newWorld(t, func(c *uistream.Config, _ *agentrun.Agent) {
		c.Hold, c.Log = 200*time.Millisecond, slog.New(slog.NewTextHandler(&logged, nil))
	})
	c := w.client(alice)
	message, asked := c.ask("two:a")
	for range 3 {
		require.Contains(t, short(read(t, c.answer(message, responded("two", "c0.0.0", asked["c0.0.0"], true, "a"))).all()), "counts")
	}
	require.EqualValues(t, 1, logged.Load())
}

// decisionsLogged counts the decisions in a log.
type decisionsLogged struct{ atomic.Int64 }

func (n *decisionsLogged) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("decided on the web")) {
		n.Add(1)
	}
	return len(line), nil
}

func TestAnAnswerInAMessageThatIsNotOfTheChatIsNotTaken(t *testing.T) {
	c := newWorld(t).client(alice)
	message, asked := c.ask("del:a del:b")
	for _, id := range []string{"", "mine", "msg-run-01-x", message + "x"} {
		r := c.answer(id, responded("del", "c0.0.0", asked["c0.0.0"], true, "a"))
		require.Equal(t, http.StatusConflict, r.code, id)
		require.Contains(t, body(t, r), "Nothing changed.", id)
		x, err := c.caseOf(t.Context(), alice, "a")
		require.NoError(t, err)
		require.Empty(t, x.Approval.Decisions, id)
	}
	require.Empty(t, c.executed())
}

// The history shows a call of a step that expired before the others as answered, and the
// client sends that back beside the answer to the other. It is no answer of its person.
func TestAnEchoOfACallThatExpiredIsNotAnsweredAsIfItCameTooLate(t *testing.T) {
	c := newWorld(t).client(alice)
	message, asked := c.ask("brief:a del:b")
	at := "/api/chat/" + c.chat
	require.Eventually(t, func() bool { // that it expired is stored
		shown := body(t, c.do(http.MethodGet, at, nil))
		return strings.Contains(shown, `"status":"expired"`) && strings.Contains(shown, `"approval-responded"`)
	}, waitTime, tick)
	var now struct{ Messages []struct{ Parts []object } }
	require.NoError(t, json.Unmarshal([]byte(body(t, c.do(http.MethodGet, at, nil))), &now))
	var echo object
	for _, p := range now.Messages[1].Parts {
		if p["toolCallId"] == "c0.0.0" {
			echo = p
		}
	}
	require.Equal(t, "approval-responded", echo["state"])
	got := short(read(t, c.answer(message, echo, responded("del", "c0.0.1", asked["c0.0.1"], true, "b"))).all())
	require.Contains(t, got, "c0.0.0 expired")
	require.NotContains(t, got, "The time to decide is over")
	require.Equal(t, []string{`del{"path":"b"}`}, c.executed())
	late := short(read(t, c.answer(message, responded("brief", "c0.0.0", echo["approval"].(object)["id"].(string), false, "a"))).all())
	require.Contains(t, late, "The time to decide is over", "who denies it too late is told")
}

func TestAnAnswerInOlderHistoryIsHonored(t *testing.T) {
	c := newWorld(t).client(alice)
	message, asked := c.ask("del:a del:b")
	got := read(t, c.do(http.MethodPost, uistream.Path, object{"id": c.chat, "messages": []any{
		userMessage("u1", "x"),
		object{"id": message, "role": "assistant", "parts": []any{
			responded("del", "c0.0.0", asked["c0.0.0"], true, "a"),
			responded("del", "c9", "aitxt-1", true, "z"),
		}},
		userMessage("u2", "say next"),
	}})).all()
	require.NotEqual(t, message, got[0]["messageId"])
	require.Contains(t, short(got), "text-delta next")
	require.Contains(t, short(got), "c0.0.0 approved")
	require.Contains(t, short(got), "c0.0.1 superseded")
	require.Contains(t, short(got), "c9 unknown <nil> There is no such request in this chat.")
	require.NotContains(t, short(got), "tool-", "a call of another message is not addressed")
	require.Equal(t, []string{`del{"path":"a"}`}, c.executed())
}

// A client can give a call an output of its own. One that shows a call as done while the
// server asks about it sends its message again and again.
func TestAnOutputOfTheClientDoesNotCountAndIsTakenBack(t *testing.T) {
	w := newWorld(t)
	for _, state := range []string{"output-available", "output-error", "output-denied"} {
		c := w.client(alice)
		c.chat = state
		message, asked := c.ask("two:" + state)
		part := responded("two", "c0.0.0", asked["c0.0.0"], true, state)
		part["state"], part["output"] = state, "done"
		all := read(t, c.answer(message, part)).all()
		require.Equal(t, "c0.0.0", of(all, "tool-input-available")["toolCallId"], state)
		require.Equal(t, asked["c0.0.0"], of(all, "tool-approval-request")["approvalId"], state)
		require.Equal(t, "0 of 2", of(all, "data-approval")["data"].(object)["progress"], state)
	}
	require.Empty(t, w.executed())

	c := w.client(alice)
	message, _ := c.ask("ext:b del:a")
	ext := object{"type": "tool-ext", "toolCallId": "c0.0.0", "state": "output-available", "input": object{"path": "b"}, "output": "mine"}
	require.Contains(t, short(read(t, c.answer(message, ext)).all()), "tool-input-available c0.0.0")
}
