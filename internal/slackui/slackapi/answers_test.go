package slackapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// answering is a client of a Slack that answers everything with the body. It has the
// time to read the longest one on a busy machine.
func answering(t *testing.T, length, body string) *Client {
	t.Helper()
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if length != "" {
			w.Header().Set("Content-Length", length)
		}
		_, _ = fmt.Fprint(w, body)
	}))
	t.Cleanup(at.Close)
	return &Client{client: slack.New("xoxb", slack.OptionAPIURL(at.URL+"/"), slack.OptionHTTPClient(HTTPClient(time.Minute, nil)))}
}

// These blocks are none, which the client does not notice.
func TestTheBlocksThatSlackRepeatsAreNotDecoded(t *testing.T) {
	m := blockkit.ParagraphMessage("Hello.", blockkit.Say("Hello."))
	a := answering(t, "", `{"ok":true,"channel":"C1","ts":"1.1","text":"Hello.","message":{"text":"Hello.","blocks":[{"type":7}],"ts":"1.1"}}`)
	require.NoError(t, a.Update(t.Context(), "C1", "1.1", m))
	ts, err := a.Post(t.Context(), "C1", "", m)
	require.NoError(t, err)
	require.Equal(t, "1.1", ts)

	hash, err := answering(t, "", `{"ok":true,"view":{"id":"V1","blocks":[{"type":7}],"hash":"1.x"}}`).PublishView(t.Context(), "U1", "", false, slack.HomeTabViewRequest{})
	require.NoError(t, err)
	require.Equal(t, "1.x", hash)
}

func TestAnAnswerThatBreaksOffIsNone(t *testing.T) {
	m := blockkit.ParagraphMessage("Hello.", blockkit.Say("Hello."))
	for name, a := range map[string]*Client{
		"shorter than Slack says": answering(t, "900", `{"ok":true,"channel":"C1","ts":"1.1"`),
		"in the middle":           answering(t, "", `{"ok":true,"channel":"C1","ts":"1.1","message":{"blocks":[`),
		"empty":                   answering(t, "", ``),
	} {
		t.Run(name, func(t *testing.T) { require.Error(t, a.Update(t.Context(), "C1", "1.1", m)) })
	}
	err := answering(t, "", `{"ok":false,"error":"message_not_found"}`).Update(t.Context(), "C1", "1.1", m)
	require.True(t, HasCode(err, Gone...), "%v", err)
}

// The answer is complete before the bound, so only its length is wrong with it.
func TestAnAnswerThatIsTooLongIsNone(t *testing.T) {
	m := blockkit.ParagraphMessage("Hello.", blockkit.Say("Hello."))
	answer := `{"ok":true,"channel":"C1","ts":"1.1"}`
	long := answer + strings.Repeat(" ", maxAnswer-len(answer))
	require.NoError(t, answering(t, "", long).Update(t.Context(), "C1", "1.1", m))

	err := answering(t, "", long+" ").Update(t.Context(), "C1", "1.1", m)
	require.ErrorContains(t, err, "slack: chat.update: the answer is longer than 16 MiB")
	_, later := errors.AsType[*LaterError](err)
	require.True(t, later, "what Slack did is not known: %v", err)
}

// Something between the bot and Slack may answer with a redirect. The token must not go
// there, and what is there is not Slack.
func TestARedirectIsNotFollowed(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s was requested elsewhere", r.URL.Path)
		_, _ = fmt.Fprint(w, `{"ok":true,"channel":"C1","ts":"1.1"}`)
	}))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
		at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, status)
		}))
		t.Cleanup(at.Close)
		a := New(func() string { return "xoxb" }, at.URL, nil)
		m := blockkit.ParagraphMessage("Hello.", blockkit.Say("Hello."))
		_, err := a.Post(t.Context(), "C1", "", m)
		var later *LaterError
		require.ErrorAs(t, err, &later, "Slack has refused nothing")
		_, err = a.ShowView(t.Context(), "1.1", "", slack.ModalViewRequest{})
		require.Error(t, err)
		require.Error(t, a.Replace(t.Context(), at.URL, m))
	}
}

// What operators read of work that was given up names the method and Slack's error, and what
// to do, and nothing of what was sent.
func TestARefusalHasAClassForOperators(t *testing.T) {
	m := blockkit.ParagraphMessage("Hello.", blockkit.Say("Hello."))
	for body, want := range map[string]string{
		`{"ok":false,"error":"msg_too_long"}`:                                               "slack: chat.update: msg_too_long",
		`{"ok":false,"error":"not_in_channel"}`:                                             "slack: chat.update: not_in_channel: invite the app to the channel",
		`{"ok":false,"error":"invalid_blocks","response_metadata":{"messages":["Hello."]}}`: "slack: chat.update: invalid_blocks: this is a bug in Countersign",
	} {
		err := fmt.Errorf("draw: %w", answering(t, "", body).Update(t.Context(), "C1", "1.1", m))
		var classed interface{ Class() string } // as the due index asks
		require.ErrorAs(t, err, &classed)
		require.Equal(t, want, classed.Class())
	}
}

// A part of the members would lock out the others.
func TestAListWithoutEndIsNotReadInPart(t *testing.T) {
	members, err := answering(t, "", `{"ok":true,"members":["U0BOB"],"response_metadata":{"next_cursor":"more"}}`).ChannelMembers(t.Context(), "C0ALL")
	require.Empty(t, members)
	require.ErrorIs(t, err, ErrTooMany)
	require.True(t, Lasts(err))
}
