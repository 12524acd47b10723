package door_test

import (
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/door"
	"github.com/countersign/countersign/internal/intake"
)

type noIntake struct{ door.Intake }

// A client may send another message with the id of one that is still held, for example
// after its connection broke.
func TestTheEndOfACallLeavesAnotherWithItsIDCancelable(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	d, err := door.New(door.Config{
		Intake: noIntake{}, Log: log, Handling: time.Second, Holds: 1, Refuses: func(*http.Request) string { return "" },
		Guard: bearer.New(bearer.Config{Now: time.Now, Log: log, Agents: func() []bearer.Agent { return nil }}),
	})
	require.NoError(t, err)
	_, first := d.Cancelable(t.Context(), "mcp/7")
	second, end := d.Cancelable(t.Context(), "mcp/7")
	first()
	require.NoError(t, second.Err())
	require.True(t, d.Cancel("mcp/7"))
	require.Error(t, second.Err())
	end()
	require.False(t, d.Cancel("mcp/7"))
}

func TestACallerLearnsWhyItsCredentialDoesNotCountAnyMore(t *testing.T) {
	part := base64.RawURLEncoding.EncodeToString
	token := part([]byte(`{"alg":"ES256"}`)) + "." + part([]byte(`{"iss":"i","aud":"a","sub":"s"}`)) + "." + part(make([]byte, 64))
	good := bearer.Agent{Client: intake.Client{Name: "a"}, Doors: []intake.Door{intake.DoorGateway}, Tokens: []bearer.Sum{bearer.SumOf(token)}}
	agents := []bearer.Agent{good}
	log := slog.New(slog.DiscardHandler)
	d, err := door.New(door.Config{
		Intake: noIntake{}, Log: log, Handling: time.Second, Holds: 1, Refuses: func(*http.Request) string { return "" },
		Guard: bearer.New(bearer.Config{Now: time.Now, Log: log, Agents: func() []bearer.Agent { return agents }}),
	})
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+token)
	c, _, why := d.Agent(r, intake.DoorGateway)
	require.Empty(t, why)
	require.Empty(t, c.Still())
	agents = nil
	require.Equal(t, "the token does not prove the agent any more", c.Still())
	agents = []bearer.Agent{{Client: good.Client, Doors: good.Doors, JWT: &bearer.JWT{Issuer: "i", Audience: "a", Subject: "s", Keys: filepath.Join(t.TempDir(), "none")}}}
	require.Equal(t, "the keys of the issuer cannot be read now", c.Still())
}

// Clients of MCP that read 401 ask their user for another credential, and do not come
// again by themselves.
func TestOnlyACredentialThatIsNoneIsUnauthorized(t *testing.T) {
	part := base64.RawURLEncoding.EncodeToString
	unknown := part([]byte(`{"alg":"ES256"}`)) + "." + part([]byte(`{"iss":"i","aud":"a","sub":"s"}`)) + "." + part(make([]byte, 64))
	agents := []bearer.Agent{
		{Client: intake.Client{Name: "a"}, Doors: []intake.Door{intake.DoorGateway}, Tokens: []bearer.Sum{bearer.SumOf("good")}},
		{Client: intake.Client{Name: "b"}, Doors: []intake.Door{intake.DoorAPI}, Tokens: []bearer.Sum{bearer.SumOf("elsewhere")}},
		{Client: intake.Client{Name: "c"}, JWT: &bearer.JWT{Issuer: "i", Audience: "a", Subject: "s", Keys: filepath.Join(t.TempDir(), "none")}},
	}
	refuses := ""
	log := slog.New(slog.DiscardHandler)
	d, err := door.New(door.Config{
		Intake: noIntake{}, Log: log, Handling: time.Second, Holds: 1, Refuses: func(*http.Request) string { return refuses },
		Guard: bearer.New(bearer.Config{Now: time.Now, Log: log, Agents: func() []bearer.Agent { return agents }}),
	})
	require.NoError(t, err)
	ask := func(token string) (int, http.Header) {
		r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+token)
		_, status, why := d.Agent(r, intake.DoorGateway)
		if why == "" {
			return status, nil
		}
		w := httptest.NewRecorder()
		door.Refuse(w, status, why)
		return w.Code, w.Header()
	}
	status, _ := ask("good")
	require.Zero(t, status)
	for _, token := range []string{"bad", "elsewhere"} {
		status, head := ask(token)
		require.Equal(t, http.StatusUnauthorized, status)
		require.NotEmpty(t, head.Get("WWW-Authenticate"))
	}
	status, head := ask(unknown)
	require.Equal(t, http.StatusServiceUnavailable, status, "the keys may be there again soon")
	require.Empty(t, head.Get("WWW-Authenticate"))
	for range 20 {
		status, _ = ask("bad")
	}
	require.Equal(t, http.StatusTooManyRequests, status)
	refuses = "pages may not ask"
	status, _ = ask("good")
	require.Equal(t, http.StatusForbidden, status)
}

// The policy may refuse a call at its claim, which another caller of the same call makes.
func TestARefusalAfterAnApprovalIsNotSaidToHaveAskedNobody(t *testing.T) {
	call := intake.CallStatus{Outcome: intake.OutcomeRefused, Reason: "frozen"}
	require.Equal(t, "Refused by the policy; nobody was asked. frozen", door.Outcome(call))
	call.Approvers = []approvals.Seat{{User: "U0BOB"}}
	require.Equal(t, "Refused by the policy, which changed after the approval. frozen", door.Outcome(call))
}
