package slackui_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
)

// deliver sends a payload as Slack does and returns the status of the answer.
func (o *workspace) deliver(payload map[string]any) int {
	o.t.Helper()
	return o.delivered(payload).Code
}

// delivered is the answer to what deliver sends.
func (o *workspace) delivered(payload map[string]any) *httptest.ResponseRecorder {
	o.t.Helper()
	raw, err := json.Marshal(payload)
	require.NoError(o.t, err)
	body := url.Values{"payload": {string(raw)}}.Encode()
	stamp := strconv.FormatInt(o.now.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(o.SigningSecret()))
	mac.Write([]byte("v0:" + stamp + ":" + body))
	r := httptest.NewRequest(http.MethodPost, "/slack/interactivity", bytes.NewBufferString(body))
	r.Header.Set("X-Slack-Request-Timestamp", stamp)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	w := httptest.NewRecorder()
	o.ui.Server.ServeHTTP(w, r)
	return w
}

// delivery is the last payload of a kind that Slack delivered.
func (o *workspace) delivery(kind string) (payload map[string]any) {
	o.t.Helper()
	for _, e := range o.Log() {
		if e.Kind == kind {
			form, err := url.ParseQuery(e.Request)
			require.NoError(o.t, err)
			payload = nil
			require.NoError(o.t, json.Unmarshal([]byte(form.Get("payload")), &payload))
		}
	}
	return payload
}

// button is the value of a button of the i-th call.
func button(b approvals.Batch, i int) string {
	ref := b.Approvals[i].Call
	return "1|" + string(b.ID) + "|" + ref.Digest.String() + "|" + string(ref.ID)
}

// pressed is a click as Slack tells it.
func pressed(user, trigger, action, value string) map[string]any {
	return map[string]any{
		"type": "block_actions", "team": map[string]any{"id": slacksim.TeamID}, "user": map[string]any{"id": user},
		"trigger_id": trigger, "actions": []any{map[string]any{"action_id": "countersign." + action, "value": value}},
	}
}

// denied is a form that was sent.
func denied(user, view, reason, value string) map[string]any {
	return map[string]any{
		"type": "view_submission", "team": map[string]any{"id": slacksim.TeamID}, "user": map[string]any{"id": user},
		"view": map[string]any{
			"id": view, "callback_id": "countersign.deny", "private_metadata": `{"p":"` + value + `"}`,
			"state": map[string]any{"values": map[string]any{"reason": map[string]any{"text": map[string]any{"value": reason}}}},
		},
	}
}

// What is acknowledged counts, whatever ids Slack repeats, leaves out or makes
// longer than they ever were.
func TestEveryAcknowledgedPressCounts(t *testing.T) {
	long := strings.Repeat("1", 300)
	for name, trigger := range map[string]string{"one trigger": "1.2.a", "no trigger": "", "a long trigger": long} {
		t.Run(name, func(t *testing.T) {
			o, _, b := one(t, many(4, `{}`)...)
			for i, action := range []string{"approve.0", "approve.0"} {
				require.Equal(t, 200, o.deliver(pressed("U0BOB", trigger, action, button(b, i))))
			}
			for i := 2; i < 4; i++ {
				form := denied("U0BOB", "", "No.", button(b, i))
				form["trigger_id"] = trigger
				require.Equal(t, 200, o.deliver(form))
			}
			for i, want := range []approvals.Status{approvals.Approved, approvals.Approved, approvals.Denied, approvals.Denied} {
				require.Equal(t, want, o.status(b, i), "call %d", i)
			}
		})
	}
	t.Run("triggers with a long beginning in common", func(t *testing.T) {
		o, _, b := one(t, many(2, `{}`)...)
		for i := range 2 {
			require.Equal(t, 200, o.deliver(pressed("U0BOB", long+strconv.Itoa(i), "approve.0", button(b, i))))
			require.Equal(t, approvals.Approved, o.status(b, i))
		}
	})
}

// A press that is delivered again is the same request: it gets its first
// answer, even when the call has been settled by it. So does a form.
func TestAPressThatIsDeliveredAgainIsAnsweredAsTheFirstTime(t *testing.T) {
	two := sre
	two.Need = 2
	for name, q := range map[string]approvals.Quorum{"it settles the call": sre, "another approval is needed": two} {
		t.Run(name, func(t *testing.T) {
			o, root, b := one(t, call("c1", "delete_file", `{"path":"a.txt"}`, q))
			o.press("U0BOB", o.card("U0BOB", root), "approve", 0)
			require.Equal(t, 200, o.deliver(o.delivery("block_actions")))
			require.Empty(t, o.whispers("U0BOB", root))
			require.Equal(t, b.Version+1, o.batch(b.ID).Version)
		})
	}
	t.Run("a form", func(t *testing.T) {
		o, root, b := one(t)
		o.press("U0BOB", o.card("U0BOB", root), "deny", 0)
		require.True(t, o.submitsTop("U0BOB", "No.").Closed)
		answer := o.delivered(o.delivery("view_submission"))
		require.Equal(t, 200, answer.Code)
		require.Empty(t, answer.Body.String(), "it closes the form")
		require.Equal(t, b.Version+1, o.batch(b.ID).Version)
	})
}

// A press that opens a form and is delivered again says nothing: the form of the first
// delivery is open, and what its person typed in it stays.
func TestAPressThatIsDeliveredAgainLeavesItsFormOpen(t *testing.T) {
	for name, c := range map[string]struct {
		call   approvals.Deferral
		action string
	}{
		"a denial":       {call("c1", "delete_file", `{"path":"a.txt"}`, sre), "deny"},
		"all arguments":  {call("c1", "delete_file", `{"path":"a.txt"}`, sre), "view"},
		"a signing form": {long(sre), "sign"},
	} {
		t.Run(name, func(t *testing.T) {
			o, root, _ := one(t, c.call)
			o.press("U0BOB", o.card("U0BOB", root), c.action, 0)
			opened := o.Views("U0BOB")
			require.Len(t, opened, 1)
			require.Equal(t, 200, o.deliver(o.delivery("block_actions")))
			require.Empty(t, o.whispers("U0BOB", root))
			require.Equal(t, opened, o.Views("U0BOB"))
		})
	}
}

// A press that is delivered again is in the log as committed once, also where
// its person has taken the decision back, or has made it anew, in the meantime.
func TestTheLogSaysWhatCounted(t *testing.T) {
	both := sre
	both.Need = 2
	o, _, b := one(t, call("c1", "delete_file", `{}`, both))
	logged := func() []int { return []int{o.log.Count("decision committed"), o.log.Count("decision taken back")} }
	counts := func(trigger, action string, want int) {
		t.Helper()
		require.Equal(t, 200, o.deliver(pressed("U0BOB", trigger, action, button(b, 0))))
		require.Len(t, o.batch(b.ID).Approvals[0].Decisions, want)
		o.now.Advance(time.Second)
	}
	counts("1.a", "approve.0", 1)
	counts("1.b", "retract.0", 0)
	require.Equal(t, []int{1, 1}, logged())
	counts("1.a", "approve.0", 0)
	counts("1.b", "retract.0", 0)
	require.Equal(t, []int{1, 1}, logged())
	counts("1.c", "approve.0", 1)
	counts("1.b", "retract.0", 1)
	require.Equal(t, []int{2, 1}, logged())
}
