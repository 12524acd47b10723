package slackui_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
)

// A closedTab stands between Countersign and its workspace. Once it is off, Slack
// refuses these methods in direct messages, as it does when the app's Messages
// tab is turned off.
type closedTab struct {
	off     atomic.Bool
	methods []string
}

func (c *closedTab) between(t *testing.T, api string) string {
	t.Helper()
	target, err := url.Parse(strings.TrimSuffix(api, "/api/"))
	require.NoError(t, err)
	slack := httputil.NewSingleHostReverseProxy(target)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		sent, _ := url.ParseQuery(string(body))
		if c.off.Load() && strings.HasPrefix(sent.Get("channel"), "D") && slices.Contains(c.methods, path.Base(r.URL.Path)) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"ok":false,"error":"messages_tab_disabled"}`)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		slack.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL + "/api/"
}

// staged is a batch with more calls than one card takes. All of them ask Bob
// and Carol directly, the last one only when its first stage is signed.
func staged() []approvals.Deferral {
	var all []approvals.Deferral
	for i := range 9 {
		d := call(fmt.Sprintf("c%d", i), "delete_file", fmt.Sprintf(`{"n":%d}`, i), sre)
		d.Ask.Requirement.Direct = approvals.DirectEveryone
		all = append(all, d)
	}
	first, second := approvals.Quorum{Name: "boss", Need: 1, Stage: 1, From: approvals.From{Users: []approvals.UserID{"U0DAVE"}}}, sre
	second.Stage = 2
	all[8].Ask.Requirement.Quorums = []approvals.Quorum{first, second}
	return all
}

// Somebody has a direct card, the app's Messages tab is turned off, a later
// stage brings a call that belongs on another card, and then somebody decides.
// The batch is still drawn to its end, although the copies of those who cannot
// be written to any more may be impossible to change.
func TestACardIsDrawnAfterTheMessagesTabIsTurnedOff(t *testing.T) {
	for name, methods := range map[string][]string{
		"what is there can still be changed": {"chat.postMessage"},
		"nothing there can be changed":       {"chat.postMessage", "chat.update"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			tab := &closedTab{methods: methods}
			o := newWorkspace(t, slacksim.Config{}, func(c *slackui.Config) { c.APIURL = tab.between(t, c.APIURL) })
			var asked atomic.Int64
			o.onMemo = func(string, bool) error {
				if asked.Add(1) == 500 {
					cancel() // it would go on for ever
				}
				return ctx.Err()
			}
			draws := func(b approvals.Batch) int64 {
				asked.Store(0)
				require.NoError(t, o.ui.Cards.Reconcile(ctx, string(b.ID)))
				return asked.Load()
			}
			root := o.say("U0ALICE", "clean up")
			b := o.opens(root, staged()...)
			draws(b)
			require.Len(t, o.directs("U0BOB"), 1)
			require.Len(t, o.directs("U0CAROL"), 1)

			tab.off.Store(true)
			o.signs(b, 8, "U0DAVE")
			draws(b)
			require.Len(t, o.directs("U0BOB"), 1, "the next call cannot be put before them")

			o.signs(b, 0, "U0CAROL")
			require.Less(t, draws(b), int64(60), "commands to the store")
			require.EqualValues(t, 3, o.drawnVersion(string(b.ID), "cards"))
			require.Contains(t, plainWords(o.card("U0ALICE", root)), "Approved by U0CAROL")
			if !slices.Contains(methods, "chat.update") {
				require.Contains(t, plainWords(o.directs("U0BOB")[0]), "Approved by U0CAROL", "a copy is kept right while Slack takes the change")
			}
			require.Equal(t, 200, o.press("U0BOB", o.directs("U0BOB")[0], "approve", 0).Status, "the click makes their old message one of the batch's again")
			require.NoError(t, o.ui.Server.Shutdown(t.Context()))
			o.signs(b, 2, "U0CAROL")
			draws(b)
			calls := o.messages()
			draws(b)
			require.Equal(t, calls, o.messages(), "there is nothing left to draw")
		})
	}
}

// messages is how often a message was sent or changed. What is asked about people
// in the background does not count.
func (o *workspace) messages() int {
	n := 0
	for _, e := range o.Log() {
		if strings.HasPrefix(e.Kind, "chat.") {
			n++
		}
	}
	return n
}

// signs stores that a person approves a call.
func (o *workspace) signs(b approvals.Batch, i int, user string) {
	o.t.Helper()
	o.moves(b, func(now *approvals.Batch) {
		a := now.Approvals[i]
		next, _, err := now.Apply(approvals.Decide{Decision: approvals.Decision{
			Call: a.Call.ID, Digest: a.Call.Digest, Verdict: approvals.Approve, At: o.now.Now(),
			By: approvals.Principal{User: approvals.UserID(user), Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: o.now.Now()},
		}})
		require.NoError(o.t, err)
		next.Version = now.Version
		*now = next
	})
}
