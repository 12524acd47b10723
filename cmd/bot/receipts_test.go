package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/receipt"
)

// body returns what a GET or a POST without a body answers.
func (r *remote) body(method, path string) []byte {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, http.NoBody)
	require.NoError(r.t, err)
	req.Header.Set("Authorization", "Bearer "+r.token)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(r.t, err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	require.Equal(r.t, http.StatusOK, resp.StatusCode, "%s", b)
	return b
}

// An executor that has the keys checks by itself what it was given to run.
func TestAReceiptComesWithEveryDecision(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.listen()
	key, err := receipt.GenerateKey()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "receipt-key.pem")
	require.NoError(t, os.WriteFile(path, key, 0o600))
	old, err := os.ReadFile(w.config)
	require.NoError(t, err)
	w.config = write(t, string(old)+"receipts: {key_file: "+path+"}\n")
	w.start()
	keys, err := receipt.ParseKeys(agent.body(http.MethodGet, "/.well-known/countersign-keys"))
	require.NoError(t, err)

	type call struct {
		Receipt string
		Text    string `json:"args_text"`
	}
	decided := func(file, button string) (id string, c call) {
		asked := agent.ask(file)
		card := w.sim.await(bob, "", "the card", says(file))
		require.Empty(t, w.sim.click(bob, card, file, button).VisibleError)
		if button == "Deny" {
			w.sim.submit(bob, w.sim.views(bob)[0], "no")
		}
		var got struct{ Calls []call }
		require.NoError(t, json.Unmarshal(agent.body(http.MethodGet, "/v1/approvals/"+asked.ID+"?wait=50s"), &got))
		return asked.ID, got.Calls[0]
	}
	id, approved := decided("/srv/a.csv", "Approve")
	s, err := receipt.Verify(keys, approved.Receipt)
	require.NoError(t, err)
	require.NoError(t, s.Usable(time.Now()))
	require.Equal(t, "delete_file", s.Tool)
	require.NoError(t, s.CoversArguments([]byte(approved.Text)))
	require.Equal(t, []string{id, "refunds", bob}, []string{s.Request, s.Agent, s.Approvers[0].ID})
	require.Regexp(t, `^[0-9a-f]{8}$`, s.Policy)
	require.NotContains(t, s.Rule, "@")
	var claim call
	require.NoError(t, json.Unmarshal(agent.body(http.MethodPost, "/v1/approvals/"+id+"/calls/c1/claim"), &claim))
	require.Equal(t, approved.Receipt, claim.Receipt, "equal statements have equal receipts")

	_, denied := decided("/srv/b.csv", "Deny")
	s, err = receipt.Verify(keys, denied.Receipt)
	require.NoError(t, err)
	require.ErrorIs(t, s.Usable(time.Now()), receipt.ErrNotUsable)
	require.Equal(t, bob, s.Deniers[0].ID)
}
