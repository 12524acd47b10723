package inbound

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The settings of a Slack app have a URL for each kind of request. Whoever mixes them up
// reads to which path a request belongs.
func TestARequestForAnotherPathSaysWhichItIs(t *testing.T) {
	bodies := map[string]string{
		eventsPath:        `{"type":"event_callback","team_id":"T0ACME","event":{"type":"app_mention"}}`,
		interactivityPath: "payload=" + url.QueryEscape(string(pressed(t))),
		commandsPath:      "token=x&team_id=T0ACME&user_id=U0BOB&command=%2Fcountersign&text=list",
	}
	at := time.Unix(docTimestamp, 0)
	for path := range bodies {
		for belongs, body := range bodies {
			var log bytes.Buffer
			s := NewHTTP(Config{
				Workspace: Workspace{Team: "T0ACME"}, SigningSecret: func() string { return docSecret },
				Now: func() time.Time { return at }, Log: slog.New(slog.NewTextHandler(&log, nil)),
			}, &heard{})
			w := httptest.NewRecorder()
			s.ServeHTTP(w, signedAt(t, at, path, body))
			if path == belongs {
				require.NotContains(t, log.String(), "belongs=", path)
				continue
			}
			require.Equal(t, http.StatusBadRequest, w.Code, path)
			require.Contains(t, log.String(), "path="+path)
			require.Contains(t, log.String(), "belongs="+belongs)
		}
	}
}
