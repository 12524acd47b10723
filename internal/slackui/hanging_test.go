package slackui_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/state/statetest"
)

// A line is the way to Slack's Web API, on which some methods hang: the call
// arrives, and no answer comes.
type line struct {
	mu    sync.Mutex
	hung  []string
	once  sync.Once
	ended chan struct{}
}

func (l *line) hangs(methods ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hung = methods
}

// through puts the line between the app and Slack.
func (l *line) through(t *testing.T) func(*slackui.Config) {
	t.Helper()
	return func(c *slackui.Config) {
		slack, err := url.Parse(strings.TrimSuffix(c.APIURL, "/api/"))
		require.NoError(t, err)
		proxy := httputil.NewSingleHostReverseProxy(slack)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			l.mu.Lock()
			hangs := slices.Contains(l.hung, path.Base(r.URL.Path))
			l.mu.Unlock()
			if hangs {
				select {
				case <-l.ended:
				case <-r.Context().Done():
				}
				return
			}
			proxy.ServeHTTP(w, r)
		}))
		c.APIURL = srv.URL + "/api/"
		t.Cleanup(srv.Close)
		t.Cleanup(l.releases)
	}
}

// releases breaks off what hangs, and lets nothing hang any more.
func (l *line) releases() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hung = nil
	l.once.Do(func() { close(l.ended) })
}

// patient is a Slack that waits longer than the real one, so that a slow
// machine fails no test: how long we take at most is tested in a bubble.
func patient() slacksim.Config {
	sim := escaping()
	sim.AckTimeout = 20 * time.Second
	return sim
}

// While Slack does not answer our questions, whatever people do is answered in
// time, with what the store holds, and they read what could not be looked up.
func TestPeopleAreAnsweredWhileLookupsHang(t *testing.T) {
	l := &line{ended: make(chan struct{})}
	h := newSheetWorkspaceIn(t, patient(), statetest.Miniredis(t), l.through(t))
	root := h.say("U0ALICE", "clean up")
	b := h.asksIn("C0OPS", root, "one", "U0ALICE", time.Hour, tags(2, sre)...)
	require.NoError(t, h.ui.Cards.Reconcile(t.Context(), string(b.ID)))
	card := h.card("U0BOB", root)
	h.asks("three", "U0ALICE", 2*time.Hour, call("b", "move_file", `{}`, by("named", fromUser("U0BOB", "U0DAVE"))))
	home := h.atHome("U0DAVE")
	h.now.Advance(2 * time.Minute)
	l.hangs("users.info", "usergroups.users.list", "conversations.members", "auth.test")

	const whose = "Slack couldn't confirm your account."
	const groups = "Slack didn't say which groups you are in"
	commands := map[string][]string{
		"list":         {"3 calls waiting", "Tag file", "Move file", groups},
		"list channel": {"3 calls waiting in this channel", groups},
		"list mine":    {whose},
		"status":       {"Countersign is working.", "Countersign couldn't check what waits for you. " + whose},
		"away for 2h":  {whose},
		"back":         {whose},
	}
	var acting sync.WaitGroup
	var mu sync.Mutex
	said := map[string]string{}
	for text := range commands {
		acting.Go(func() {
			out, err := h.Command(slacksim.Command{User: "U0BOB", Channel: "C0OPS", Command: "/countersign", Text: text})
			mu.Lock()
			defer mu.Unlock()
			said[text] = fmt.Sprint(out.VisibleError, err)
			if out.Message != nil {
				said[text] = strings.Join(strings.Fields(out.Message.Shown()), " ")
			}
		})
	}
	presses := map[string]func() (slacksim.ClickOutcome, error){
		"a card": func() (slacksim.ClickOutcome, error) {
			return h.Click(slacksim.Click{User: "U0CAROL", Channel: card.Channel, TS: card.TS, ActionID: "countersign.approve.0", Confirmed: true})
		},
		"a shortcut": func() (slacksim.ClickOutcome, error) {
			return h.Shortcut(slacksim.Shortcut{User: "U0BOB", CallbackID: "countersign.here", Channel: card.Channel, TS: card.TS})
		},
		"a button at home": func() (slacksim.ClickOutcome, error) {
			for _, a := range home.Actions() {
				if a.Text == "Review" {
					return h.Click(slacksim.Click{User: "U0DAVE", ViewID: home.ID, ActionID: a.ActionID, BlockID: a.BlockID})
				}
			}
			return slacksim.ClickOutcome{}, errors.New("no button")
		},
	}
	outcomes := map[string]slacksim.ClickOutcome{}
	for name, press := range presses {
		acting.Go(func() {
			out, err := press()
			mu.Lock()
			defer mu.Unlock()
			if outcomes[name] = out; err != nil {
				outcomes[name] = slacksim.ClickOutcome{VisibleError: err.Error()}
			}
		})
	}
	require.NoError(t, h.OpenHome("U0BOB"))
	acting.Wait()

	for text, words := range commands {
		for _, w := range words {
			require.Contains(t, said[text], w, text)
		}
	}
	for name := range presses {
		require.Equal(t, slacksim.ClickOutcome{Status: 200}, outcomes[name], name)
	}
	l.releases() // what is done after answers need not hang on
	require.Contains(t, strings.Join(h.whispers("U0CAROL", root), ""), whose)
	require.Contains(t, plainWords(h.top("U0BOB")), whose)
	require.Contains(t, plainWords(h.top("U0DAVE")), whose)
	opened, drawn := h.Home("U0BOB")
	require.True(t, drawn)
	require.Contains(t, words(opened.Blocks), "Move file", "it names him")
	require.Contains(t, words(opened.Blocks), "something may be missing here")
}

// Who somebody is may be known while it is not known in which groups they are.
func TestAListSaysThatGroupsAreNotKnown(t *testing.T) {
	l := &line{ended: make(chan struct{})}
	h := newSheetWorkspaceIn(t, patient(), statetest.Miniredis(t), l.through(t))
	h.asks("one", "U0ALICE", time.Hour, tags(2, sre)...)
	h.asks("three", "U0ALICE", 2*time.Hour, call("b", "move_file", `{}`, by("named", fromUser("U0BOB"))))
	l.hangs("usergroups.users.list")
	out, err := h.Command(slacksim.Command{User: "U0BOB", Channel: "C0OPS", Command: "/countersign", Text: "list mine"})
	require.NoError(t, err)
	require.NotNil(t, out.Message, out.VisibleError)
	require.Contains(t, out.Message.Shown(), "1 call waiting for you")
	require.Contains(t, out.Message.Shown(), "Slack didn't say which groups you are in")
	l.releases()
}
