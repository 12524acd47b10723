package slackapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Nobody waits for the answer to who we are but those who need it.
func TestWhoWeAreIsAskedWithoutALock(t *testing.T) {
	arrived, open := make(chan struct{}, 1), make(chan struct{})
	slack := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-open
		_, _ = fmt.Fprint(w, `{"ok":true,"user_id":"U0BOT","url":"https://acme.slack.com/"}`)
	}))
	t.Cleanup(slack.Close)
	a := New(func() string { return "xoxb" }, slack.URL, nil)
	a.dms = map[string]string{"U1": "D1"}
	var all sync.WaitGroup
	all.Go(func() {
		self, err := a.Whoami(t.Context())
		require.NoError(t, err)
		require.Equal(t, "U0BOT", self.UserID)
	})
	<-arrived
	im, err := a.OpenDirect(t.Context(), "U1")
	require.NoError(t, err)
	require.Equal(t, "D1", im)
	close(open)
	all.Wait()
	require.Equal(t, "https://acme.slack.com/archives/C1/p11", a.Permalink(t.Context(), "C1", "1.1", ""))
}
