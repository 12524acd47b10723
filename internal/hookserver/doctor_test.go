package hookserver_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/hook"
)

func TestTheDoctorProvesARefusalWithoutAskingAnybody(t *testing.T) {
	w := newWorld(t)
	for secret, found := range map[string]string{token: "refuses a call that names no session", "wrong": "proves no agent", "api-token": "does not list the door"} {
		checks := hook.Doctor(t.Context(), hook.Config{URL: w.server.URL, Token: secret, Now: time.Now}, hook.Place{Home: t.TempDir(), Project: t.TempDir(), Managed: t.TempDir() + "/none"})
		text := ""
		for _, c := range checks {
			text += string(c.Level) + " " + c.Found + "\n"
		}
		require.Contains(t, text, found)
	}
	require.Empty(t, w.watch.asked)
}
