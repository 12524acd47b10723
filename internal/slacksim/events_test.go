package slacksim_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// The worked example of Slack's page on verifying requests.
func TestSignatureIsSlacksWorkedExample(t *testing.T) {
	const body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar" +
		"&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2F" +
		"T1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	require.Equal(t, "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
		slacksim.Sign("8f742231b10e8888abcd99yyyzzz85a5", "1531420618", []byte(body)))
}

func (w *workspace) mention(t *testing.T) {
	t.Helper()
	_, err := w.PostAs(slacksim.Post{User: "alice", Channel: "ops", Text: "@countersign go"})
	require.NoError(t, err)
	w.idle(t)
}

func TestEventEnvelopeIsComplete(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	w.mention(t)
	d := w.app.last(t, "/events")
	require.Equal(t, "application/json", d.header.Get("Content-Type"))
	require.Empty(t, d.header.Get("X-Slack-Retry-Num"))
	e := decode(t, d.body)
	for name, want := range map[string]any{
		"type": "event_callback", "team_id": "T0COUNTER", "api_app_id": "A0COUNTERSIGN", "is_ext_shared_channel": false,
		"context_team_id": "T0COUNTER", "context_enterprise_id": nil,
		"authorizations": []any{map[string]any{
			"enterprise_id": nil, "team_id": "T0COUNTER", "user_id": "U0BOT", "is_bot": true, "is_enterprise_install": false,
		}},
	} {
		require.Equal(t, want, e[name], name)
	}
	require.Regexp(t, "^Ev", e["event_id"])
	require.NotEmpty(t, e["event_context"])
	require.NotZero(t, e["event_time"])
	require.Equal(t, "app_mention", dig(t, e, "event", "type"))
	require.Equal(t, dig(t, e, "event", "ts"), dig(t, e, "event", "event_ts"))
	require.Equal(t, "C0OPS", dig(t, e, "event", "channel"))
	require.Regexp(t, `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, dig(t, e, "event", "client_msg_id"))
	require.Equal(t, "user", dig(t, e, "event", "blocks", 0, "elements", 0, "elements", 0, "type"))
}

func TestEventsAreRetriedThreeTimes(t *testing.T) {
	var ticks atomic.Int64
	base := time.Now()
	w := newWorkspace(t, slacksim.Config{Now: func() time.Time { return base.Add(time.Duration(ticks.Add(1)) * time.Millisecond) }})
	w.answers(func(w http.ResponseWriter, _ delivered) { w.WriteHeader(http.StatusInternalServerError) })
	w.mention(t)
	require.Len(t, w.app.requests("/events"), 2, "the first retry follows at once")
	w.Advance(59 * time.Second)
	w.idle(t)
	require.Len(t, w.app.requests("/events"), 2)
	ticks.Add(2000) // the next signature is of a later second
	w.Advance(2 * time.Second)
	w.idle(t)
	require.Len(t, w.app.requests("/events"), 3)
	w.Advance(5 * time.Minute)
	w.idle(t)
	w.Advance(24 * time.Hour)
	w.idle(t)
	all := w.app.requests("/events")
	require.Len(t, all, 4)
	for i, d := range all {
		require.Equal(t, decode(t, all[0].body)["event_id"], decode(t, d.body)["event_id"])
		if i > 0 {
			require.Equal(t, string(rune('0'+i)), d.header.Get("X-Slack-Retry-Num"))
			require.Equal(t, "http_error", d.header.Get("X-Slack-Retry-Reason"))
		}
	}
	require.NotEqual(t, all[0].header.Get("X-Slack-Signature"), all[3].header.Get("X-Slack-Signature"), "every attempt is signed anew")
}

func TestNoRetryHeaderStopsRetries(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	w.answers(func(w http.ResponseWriter, _ delivered) {
		w.Header().Set("X-Slack-No-Retry", "1")
		w.WriteHeader(http.StatusInternalServerError)
	})
	w.mention(t)
	w.Advance(time.Hour)
	w.idle(t)
	require.Len(t, w.app.requests("/events"), 1)
}

func TestSlowAndUnreachableAppsAreNamedInTheRetryReason(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{AckTimeout: 500 * time.Millisecond})
	var n atomic.Int64
	w.answers(func(rw http.ResponseWriter, d delivered) {
		if n.Add(1) == 1 {
			w.app.silent(rw, d)
		}
	})
	w.mention(t)
	require.Equal(t, "http_timeout", w.app.last(t, "/events").header.Get("X-Slack-Retry-Reason"))

	w.SetURLs("http://127.0.0.1:1/", "", "")
	w.mention(t)
	log := w.Log()
	require.Equal(t, "connection_failed", log[len(log)-1].Problem)
	require.Equal(t, "1", log[len(log)-1].Headers["X-Slack-Retry-Num"])
}

func TestMoreThanTwoRedirectsAreAFailure(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	w.answers(func(rw http.ResponseWriter, _ delivered) {
		rw.Header().Set("Location", w.app.URL+"/events")
		rw.WriteHeader(http.StatusTemporaryRedirect)
	})
	w.mention(t)
	log := w.Log()
	require.Equal(t, "too_many_redirects", log[len(log)-1].Problem)
}

func TestRetryDelaysScale(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{RetryScale: 1e-6}) // 60 s become 60 µs, on the real clock
	w.answers(func(w http.ResponseWriter, _ delivered) { w.WriteHeader(http.StatusInternalServerError) })
	w.mention(t)
	require.NoError(t, w.Await(soon(t), func() bool { return len(w.app.requests("/events")) == 4 }))
}

func TestDuplicateDeliveriesCarryTheSameEventID(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	w.SetFaults(slacksim.Faults{DuplicateDeliveries: 1})
	w.mention(t)
	w.mention(t)
	all := w.app.requests("/events")
	require.Len(t, all, 3)
	require.Equal(t, decode(t, all[0].body)["event_id"], decode(t, all[1].body)["event_id"])
	require.Equal(t, "1", all[1].header.Get("X-Slack-Retry-Num"))
	require.NotEqual(t, decode(t, all[0].body)["event_id"], decode(t, all[2].body)["event_id"])
}

func TestBadSignaturesAndSkewCanBeInjected(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	w.SetFaults(slacksim.Faults{BadSignatures: 1})
	w.mention(t)
	require.Len(t, w.app.requests("/events"), 1, "the retry is signed well")
	w.SetFaults(slacksim.Faults{SkewSeconds: -301})
	w.mention(t)
	require.Len(t, w.app.requests("/events"), 1)
}

func TestURLVerification(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	require.EqualError(t, w.VerifyEventsURL(), "the app did not answer url_verification with the challenge")
	challenge := func(d delivered) string {
		var in struct{ Type, Challenge string }
		_ = json.Unmarshal(d.body, &in)
		return in.Challenge
	}
	for name, answer := range map[string]func(http.ResponseWriter, delivered){
		"plain": func(w http.ResponseWriter, d delivered) { _, _ = io.WriteString(w, challenge(d)) },
		"JSON": func(w http.ResponseWriter, d delivered) {
			_ = json.NewEncoder(w).Encode(map[string]string{"challenge": challenge(d)})
		},
		"form": func(w http.ResponseWriter, d delivered) {
			_, _ = io.WriteString(w, url.Values{"challenge": {challenge(d)}}.Encode())
		},
	} {
		w.answers(answer)
		require.NoError(t, w.VerifyEventsURL(), name)
	}
	require.Equal(t, "url_verification", decode(t, w.app.last(t, "/events").body)["type"])

	w.answers(func(w http.ResponseWriter, _ delivered) { w.WriteHeader(http.StatusTeapot) })
	status, answer := w.sim(t, "verify", struct{}{})
	require.Equal(t, http.StatusBadRequest, status)
	require.Equal(t, "the app answered url_verification with status 418", answer["error"], "it is not the caller's input")
	w.SetURLs("http://127.0.0.1:1", "", "")
	require.EqualError(t, w.VerifyEventsURL(), "the app did not answer url_verification (connection_failed)")
	w.SetURLs("", "", "")
	require.ErrorIs(t, w.VerifyEventsURL(), slacksim.ErrBadInput)
}

// https://github.com/wagtail/wagtail-live/issues/139
// https://github.com/soxtoby/SlackNet/pull/145
// https://github.com/slackapi/python-slack-events-api/pull/99
func TestTheChallengeIsReadByItsType(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for _, c := range []struct {
		kind []string
		json bool
		ok   bool
	}{
		{[]string{"text/plain"}, false, true},
		{[]string{"text/plain; charset=utf-8"}, true, true},
		{[]string{"application/json; charset=utf-8"}, true, true},
		{[]string{"application/json"}, false, false},
		{[]string{"text/html; charset=utf-8"}, false, false},
		{[]string{"text/html"}, true, false},
		{nil, false, false},
	} {
		w.answers(func(w http.ResponseWriter, d delivered) {
			var in struct{ Challenge string }
			_ = json.Unmarshal(d.body, &in)
			w.Header()["Content-Type"] = c.kind
			if c.json {
				_ = json.NewEncoder(w).Encode(map[string]string{"challenge": in.Challenge})
				return
			}
			_, _ = io.WriteString(w, in.Challenge)
		})
		if err := w.VerifyEventsURL(); c.ok {
			require.NoError(t, err, c.kind)
		} else {
			require.EqualError(t, err, "the app did not answer url_verification with the challenge", c.kind)
		}
	}
}

func TestOnlySubscribedEventsAreSent(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Events: []string{"message.im"}})
	w.mention(t)
	require.Empty(t, w.app.requests("/events"))
	_, err := w.PostAs(slacksim.Post{User: "alice", Channel: "@countersign", Text: "hi"})
	require.NoError(t, err)
	w.idle(t)
	e := decode(t, w.app.last(t, "/events").body)
	require.Equal(t, "message", dig(t, e, "event", "type"))
	require.Equal(t, "im", dig(t, e, "event", "channel_type"))
}

func TestMentionsNeedTheBotAndTheEntity(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for _, text := range []string{"countersign go", "@countersigned go", "&lt;@U0BOT&gt; go"} {
		_, err := w.PostAs(slacksim.Post{User: "alice", Channel: "ops", Text: text})
		require.NoError(t, err)
	}
	w.idle(t)
	require.Empty(t, w.app.requests("/events"))
	_, err := w.PostAs(slacksim.Post{User: "alice", Channel: "ops", Text: "ask @sre, <@U0BOT> & <b>"})
	require.NoError(t, err)
	w.idle(t)
	require.Equal(t, "ask <!subteam^S0SRE>, <@U0BOT> &amp; &lt;b&gt;", dig(t, decode(t, w.app.last(t, "/events").body), "event", "text"))
}

func TestMembershipEvents(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	require.NoError(t, w.SetGroup("S0SRE", []string{"U0BOB", "U0ALICE"}))
	require.NoError(t, w.Leave("dave", "ops"))
	require.NoError(t, w.OpenHome("alice"))
	w.idle(t)
	got := map[string]map[string]any{}
	for _, d := range w.app.requests("/events") {
		event := dig(t, decode(t, d.body), "event").(map[string]any)
		got[event["type"].(string)] = event
	}
	require.Equal(t, []any{"U0ALICE"}, got["subteam_members_changed"]["added_users"])
	require.Equal(t, []any{"U0CAROL"}, got["subteam_members_changed"]["removed_users"])
	require.Equal(t, []any{"U0BOB", "U0ALICE"}, dig(t, got["subteam_updated"], "subteam", "users"))
	require.Equal(t, "U0DAVE", got["member_left_channel"]["user"])
	require.Equal(t, "home", got["app_home_opened"]["tab"])
}

// A bot that is taken out of a channel is told so by another event than those who stay.
func TestTheBotIsTakenOutOfAChannel(t *testing.T) {
	channels := append(slacksim.DefaultChannels(),
		slacksim.Channel{ID: "C0SECRET", Name: "secret", Members: []string{"U0ALICE", "U0BOT"}, Private: true})
	w := newWorkspace(t, slacksim.Config{Channels: channels, Events: []string{"member_left_channel", "channel_left", "group_left", "app_mention"}})
	ts := w.post(t, `[`+divider+`]`)
	for _, channel := range []string{"ops", "secret"} {
		status, _ := w.sim(t, "leave", map[string]any{"user": "countersign", "channel": channel})
		require.Equal(t, http.StatusOK, status)
		require.ErrorIs(t, w.Leave("countersign", channel), slacksim.ErrForbidden, "it is not there any more")
	}
	require.ErrorIs(t, w.Leave("countersign", "nowhere"), slacksim.ErrNoSuch)
	_, err := w.PostAs(slacksim.Post{User: "alice", Channel: "ops", Text: "<@U0BOT> go"})
	require.NoError(t, err)
	require.NoError(t, w.Leave("dave", "ops"))
	w.idle(t)
	got := map[any]any{}
	for _, d := range w.app.requests("/events") {
		event := dig(t, decode(t, d.body), "event").(map[string]any)
		got[event["type"]] = event["channel"]
	}
	require.Equal(t, map[any]any{"channel_left": "C0OPS", "group_left": "C0SECRET"}, got)

	in := url.Values{"channel": {"C0OPS"}, "text": {"x"}, "ts": {ts}}
	require.Equal(t, "not_in_channel", w.form(t, "chat.postMessage", in)["error"])
	require.Equal(t, "channel_not_found", w.form(t, "chat.update", in)["error"])
	require.NoError(t, w.Join("countersign", "ops"))
	require.Equal(t, true, w.form(t, "chat.update", in)["ok"])
}

// An app that reads along also hears of what it wrote itself, as in Slack,
// and has to ignore it.
func TestAppsHearOfTheirOwnMessages(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Events: []string{"message.channels"}})
	ts := w.post(t, `[`+divider+`]`)
	w.idle(t)
	event := func() any { return dig(t, decode(t, w.app.last(t, "/events").body), "event") }
	require.Equal(t, []any{"message", "B0COUNTERSIGN", "A0COUNTERSIGN", ts, "channel", nil}, []any{
		dig(t, event(), "type"), dig(t, event(), "bot_id"), dig(t, event(), "app_id"), dig(t, event(), "ts"),
		dig(t, event(), "channel_type"), dig(t, event(), "subtype"),
	})
	require.Equal(t, true, w.call(t, "chat.update", map[string]any{"channel": "C0OPS", "ts": ts, "text": "changed"})["ok"])
	w.idle(t)
	require.Equal(t, "message_changed", dig(t, event(), "subtype"))
	require.Equal(t, "changed", dig(t, event(), "message", "text"))
	require.Equal(t, "hello", dig(t, event(), "previous_message", "text"))
	require.Equal(t, true, w.call(t, "chat.delete", map[string]any{"channel": "C0OPS", "ts": ts})["ok"])
	w.idle(t)
	require.Equal(t, []any{"message_deleted", ts}, []any{dig(t, event(), "subtype"), dig(t, event(), "deleted_ts")})
	before := len(w.app.requests("/events"))
	_, err := w.api.PostEphemeral("C0OPS", "U0BOB", slack.MsgOptionText("x", false))
	require.NoError(t, err)
	w.idle(t)
	require.Len(t, w.app.requests("/events"), before, "there is no event of an ephemeral message")
}

// A deleted message that has replies becomes a tombstone, and the app hears of that change.
func TestADeletedRootOfAThreadIsChanged(t *testing.T) {
	for name, deletes := range map[string]func(t *testing.T, w *workspace, ts, url string){
		"chat.delete": func(t *testing.T, w *workspace, ts, _ string) {
			t.Helper()
			require.Equal(t, true, w.call(t, "chat.delete", map[string]any{"channel": "C0OPS", "ts": ts})["ok"])
		},
		"response_url": func(t *testing.T, _ *workspace, _, url string) {
			t.Helper()
			status, _ := respond(t, url, `{"delete_original":true}`)
			require.Equal(t, 200, status)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t, slacksim.Config{Events: []string{"message.channels"}})
			ts, url := w.clicked(t)
			_, err := w.PostAs(slacksim.Post{User: "alice", Channel: "ops", Text: "why?", ThreadTS: ts})
			require.NoError(t, err)
			w.idle(t)
			deletes(t, w, ts, url)
			w.idle(t)
			event := dig(t, decode(t, w.app.last(t, "/events").body), "event").(map[string]any)
			require.Equal(t, "message_changed", event["subtype"])
			require.NotContains(t, event, "deleted_ts")
			require.Equal(t, "hello", dig(t, event, "previous_message", "text"))
			left := dig(t, event, "message").(map[string]any)
			require.Equal(t, []any{"tombstone", "USLACKBOT", "This message was deleted.", true, ts}, []any{
				left["subtype"], left["user"], left["text"], left["hidden"], left["thread_ts"],
			})
		})
	}
}
