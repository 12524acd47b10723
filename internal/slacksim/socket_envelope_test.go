package slacksim_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

func TestEachEnvelopeGoesToOneConnection(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{AckTimeout: time.Minute})
	links := []*link{w.connect(t), w.connect(t), w.connect(t)}
	for range 3 {
		w.says(t)
	}
	seen := map[any]bool{}
	for _, l := range links {
		e := l.next(t)
		seen[e["envelope_id"]] = true
		l.ack(t, e, "")
	}
	require.Len(t, seen, 3)
	w.idle(t)
	for _, l := range links {
		require.Empty(t, l.inbox)
	}
	for _, s := range w.Sockets() {
		require.Equal(t, 1, s.Delivered)
	}
}

func TestEnvelopesAreShapedAsSlacks(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{AckTimeout: time.Minute})
	l := w.connect(t)
	without := func(e map[string]any) map[string]any {
		require.Regexp(t, `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, e["envelope_id"])
		delete(e, "envelope_id")
		delete(e, "payload")
		return e
	}

	w.says(t)
	e := l.next(t)
	l.ack(t, e, "")
	require.Equal(t, "event_callback", dig(t, e, "payload", "type"))
	require.Equal(t, "app_mention", dig(t, e, "payload", "event", "type"))
	require.Regexp(t, "^Ev", dig(t, e, "payload", "event_id"))
	require.Equal(t, map[string]any{
		"type": "events_api", "accepts_response_payload": false, "retry_attempt": 0.0, "retry_reason": "",
	}, without(e))

	ts := w.post(t, approveButtons)
	out := while(t, func() (slacksim.ClickOutcome, error) { return w.Click(click(ts, "deny")) }, func() {
		e = l.next(t)
		require.Equal(t, "block_actions", dig(t, e, "payload", "type"))
		require.Equal(t, false, dig(t, e, "payload", "is_enterprise_install"))
		trigger := dig(t, e, "payload", "trigger_id")
		opened := w.call(t, "views.open", map[string]any{"trigger_id": trigger, "view": rawJSON(reasonModal)})
		require.Equal(t, true, opened["ok"], "%v", opened)
		l.ack(t, e, "")
	})
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, out)
	require.Equal(t, map[string]any{"type": "interactive", "accepts_response_payload": false}, without(e))

	view := w.Views("bob")[0].ID
	while(t, func() (slacksim.SubmitOutcome, error) { return w.submits(view, "in use") }, func() {
		e = l.next(t)
		require.Equal(t, "view_submission", dig(t, e, "payload", "type"))
		l.ack(t, e, "")
	})
	require.Equal(t, map[string]any{"type": "interactive", "accepts_response_payload": true}, without(e))

	while(t, func() (slacksim.CommandOutcome, error) { return w.types("") }, func() {
		e = l.next(t)
		require.Equal(t, "/release", dig(t, e, "payload", "command"))
		require.Equal(t, "false", dig(t, e, "payload", "is_enterprise_install"))
		require.NotEmpty(t, dig(t, e, "payload", "response_url"))
		l.ack(t, e, "")
	})
	require.Equal(t, map[string]any{"type": "slash_commands", "accepts_response_payload": true}, without(e))
	for _, entry := range w.Log() {
		if entry.Kind == "app_mention" {
			require.Contains(t, string(entry.Payload()), `"event_callback"`)
		}
	}
}

func (w *workspace) submits(view, reason string) (slacksim.SubmitOutcome, error) {
	return w.SubmitView(slacksim.Submit{User: "bob", ViewID: view, Values: map[string]map[string]any{"reason": {"text": reason}}})
}

func (w *workspace) types(text string) (slacksim.CommandOutcome, error) {
	return w.Command(slacksim.Command{User: "bob", Channel: "ops", Command: "/release", Text: text})
}

// What an acknowledgment carries is done exactly as the body of an answer
// over HTTP.
func TestPayloadsOfAcknowledgmentsAreAnswers(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{AckTimeout: time.Minute})
	l := w.connect(t)
	answers := func(payload string) func() { return func() { l.ack(t, l.next(t), payload) } }
	modal := func() string {
		ts := w.post(t, approveButtons)
		while(t, func() (slacksim.ClickOutcome, error) { return w.Click(click(ts, "deny")) }, func() {
			e := l.next(t)
			w.call(t, "views.open", map[string]any{"trigger_id": dig(t, e, "payload", "trigger_id"), "view": rawJSON(reasonModal)})
			l.ack(t, e, `{"text":"a click takes no answer"}`)
		})
		views := w.Views("bob")
		return views[len(views)-1].ID
	}
	view := modal()
	submit := func(payload string) slacksim.SubmitOutcome {
		return while(t, func() (slacksim.SubmitOutcome, error) { return w.submits(view, "in use") }, answers(payload))
	}
	require.Equal(t, map[string]string{"reason": "Say more."}, submit(`{"response_action":"errors","errors":{"reason":"Say more."}}`).Errors)
	require.NotEmpty(t, submit(`{"response_action":"errors","errors":{"other":"Say more."}}`).VisibleError)
	require.NotEmpty(t, submit(`{"response_action":"dance"}`).VisibleError)
	require.Equal(t, view, w.Views("bob")[0].ID, "the modal is still open")
	updated := submit(`{"response_action":"update","view":` + strings.Replace(reasonModal, "Say why.", "Say more.", 1) + `}`)
	require.Empty(t, updated.VisibleError)
	require.False(t, updated.Closed)
	require.True(t, submit(`{}`).Closed, "as an empty body does")

	command := func(payload string) slacksim.CommandOutcome {
		return while(t, func() (slacksim.CommandOutcome, error) { return w.types("payments") }, answers(payload))
	}
	told := command(`{"text":"Looking."}`)
	require.Equal(t, "Looking.", told.Message.Text)
	require.True(t, told.Message.Ephemeral)
	require.False(t, command(`{"response_type":"in_channel","text":"Looking."}`).Message.Ephemeral)
	require.Nil(t, command(`{}`).Message)
	require.Nil(t, command(`"plain text"`).Message, "a text that is no object is not shown")
	require.Empty(t, command("").VisibleError)
	require.Contains(t, command(`{"blocks":7}`).VisibleError, "invalid_command_response")
}

func TestOptionsAreLoadedOverSockets(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{AckTimeout: time.Minute})
	l := w.connect(t)
	ts := w.post(t, `[{"type":"actions","elements":[{"type":"external_select","action_id":"service","min_query_length":1}]}]`)
	ask := func() (slacksim.Suggestions, error) {
		return w.Suggest(slacksim.Query{User: "bob", Channel: "ops", TS: ts, ActionID: "service", Value: "w"})
	}
	out := while(t, ask, func() {
		e := l.next(t)
		require.Equal(t, true, e["accepts_response_payload"])
		l.ack(t, e, `{"options":[{"text":{"type":"plain_text","text":"web"},"value":"web"}]}`)
	})
	require.Len(t, out.Options, 1)
	require.NotEmpty(t, while(t, ask, func() { l.ack(t, l.next(t), "") }).VisibleError)
}

func TestAnAcknowledgmentIsForItsConnectionOnly(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{AckTimeout: time.Minute})
	a, b := w.connect(t), w.connect(t)
	w.says(t)
	var e map[string]any
	var other *link
	select {
	case e = <-a.inbox:
		other = b
	case e = <-b.inbox:
		a, other = b, a
	}
	other.ack(t, e, "")
	require.NoError(t, other.conn.WriteMessage(websocket.TextMessage, []byte("hello?")))
	w.await(t, func() bool { return len(w.problems("ack")) == 2 })
	require.Equal(t, []string{"unknown_envelope", "not_json"}, w.problems("ack"))
	a.ack(t, e, "")
	w.idle(t)
	a.ack(t, e, "")
	w.await(t, func() bool { return len(w.problems("ack")) == 3 })
	require.Equal(t, []string{""}, w.problems("app_mention"), "it was acknowledged once, where it came from")
}

func TestLargeAcknowledgmentsAreDropped(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{AckTimeout: 300 * time.Millisecond})
	l := w.connect(t)
	out := while(t, func() (slacksim.CommandOutcome, error) { return w.types("x") }, func() {
		l.ack(t, l.next(t), `{"text":"`+strings.Repeat("x", 20<<10)+`"}`)
	})
	require.Contains(t, out.VisibleError, "operation_timeout")
	require.Equal(t, []string{"too_large"}, w.problems("ack"))
}

func TestUnacknowledgedEventsComeAgainInAnotherEnvelope(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{AckTimeout: 100 * time.Millisecond})
	l := w.connect(t)
	w.says(t)
	first, second := l.next(t), l.next(t)
	require.EqualValues(t, 1, second["retry_attempt"])
	require.Equal(t, "timeout", second["retry_reason"])
	require.NotEqual(t, first["envelope_id"], second["envelope_id"])
	require.Equal(t, first["payload"], second["payload"], "the event_id is what it is known by")
	w.idle(t)
	w.Advance(59 * time.Second)
	w.idle(t)
	require.Empty(t, l.inbox)
	w.Advance(2 * time.Second)
	third := l.next(t)
	require.EqualValues(t, 2, third["retry_attempt"])
	l.ack(t, third, "")
	w.idle(t)
	w.Advance(time.Hour)
	w.idle(t)
	require.Empty(t, l.inbox)

	w.SetFaults(slacksim.Faults{DuplicateDeliveries: 1})
	w.says(t)
	once := l.next(t)
	l.ack(t, once, "")
	again := l.next(t)
	l.ack(t, again, "")
	require.Equal(t, once["payload"], again["payload"], "as after a lost acknowledgment")
	require.Equal(t, "timeout", again["retry_reason"])
}

func TestUnacknowledgedClicksAndCommandsDoNotComeAgain(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{AckTimeout: 100 * time.Millisecond})
	ts := w.post(t, approveButtons)
	out, err := w.Click(click(ts, "approve"))
	require.NoError(t, err)
	require.NotEmpty(t, out.VisibleError, "no connection is open")
	command, err := w.types("")
	require.NoError(t, err)
	require.Contains(t, command.VisibleError, "dispatch_failed")

	l := w.connect(t)
	out, err = w.Click(click(ts, "approve"))
	require.NoError(t, err)
	require.Zero(t, out.Status)
	require.Contains(t, out.VisibleError, "in time")
	late := l.next(t)
	l.ack(t, late, "")
	w.await(t, func() bool { return len(w.problems("ack")) == 1 })
	require.Equal(t, []string{"unknown_envelope"}, w.problems("ack"), "too late")
	command, err = w.types("")
	require.NoError(t, err)
	require.Contains(t, command.VisibleError, "operation_timeout")
	l.next(t)
	w.Advance(time.Hour)
	w.idle(t)
	require.Empty(t, l.inbox)
}

// What was not acknowledged when its connection went comes again over
// another: events do, clicks do not.
func TestWhatIsUnderWayOnALostConnectionComesAgain(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{AckTimeout: time.Minute})
	l := w.connect(t)
	w.says(t)
	first := l.next(t)
	next := w.connect(t)
	require.NoError(t, l.conn.Close())
	again := next.next(t)
	require.EqualValues(t, 1, again["retry_attempt"])
	require.Equal(t, "connection_failed", again["retry_reason"])
	require.Equal(t, dig(t, first, "payload", "event_id"), dig(t, again, "payload", "event_id"))
	next.ack(t, again, "")
	w.idle(t)

	ts := w.post(t, approveButtons)
	out := while(t, func() (slacksim.ClickOutcome, error) { return w.Click(click(ts, "approve")) }, func() {
		next.next(t)
		_, err := w.Disconnect("", slacksim.Cut)
		require.NoError(t, err)
	})
	require.NotEmpty(t, out.VisibleError)
	last := w.connect(t)
	w.says(t)
	e := last.next(t)
	require.Equal(t, "events_api", e["type"], "the click is lost")
	last.ack(t, e, "")
	w.idle(t)
}

func TestEnvelopesAreDelayed(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{AckTimeout: time.Minute})
	l := w.connect(t)
	status, _ := w.sim(t, "faults", map[string]any{"envelope_delay_ms": 60000})
	require.Equal(t, 200, status)
	w.says(t)
	w.await(t, func() bool {
		_, list := w.sim(t, "sockets", nil)
		return list["held"] == 1.0
	})
	require.Empty(t, l.inbox)
	require.Zero(t, w.Sockets()[0].Delivered)
	w.Advance(time.Minute)
	l.ack(t, l.next(t), "")
	w.idle(t)
}

// A page in a browser cannot open a connection: it has no ticket, whatever
// its origin.
func TestSocketsNeedATicket(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{})
	at, err := url.Parse(w.ticket(t))
	require.NoError(t, err)
	at.RawQuery = ""
	_, resp, err := websocket.DefaultDialer.DialContext(soon(t), at.String(), nil)
	require.Error(t, err)
	require.Equal(t, 403, resp.StatusCode)
	require.NoError(t, resp.Body.Close())
}
