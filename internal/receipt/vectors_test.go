package receipt_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/receipt"
)

// A vector is what other implementations can be held to.
type vector struct {
	Name      string          `json:"name"`
	Statement json.RawMessage `json:"statement"`
	Receipt   string          `json:"receipt"`
}

type vectors struct {
	Comment   string          `json:"comment"`
	Seed      string          `json:"private_key_seed"`
	Arguments string          `json:"arguments"`
	Keys      json.RawMessage `json:"keys"`
	Valid     []vector        `json:"valid"`
	Invalid   []refusal       `json:"invalid"`
}

const vectorFile = "testdata/vectors.json"

func TestVectorsStayAsTheyAre(t *testing.T) {
	if *update {
		writeVectors(t)
	}
	data, err := os.ReadFile(vectorFile)
	require.NoError(t, err)
	var v vectors
	require.NoError(t, json.Unmarshal(data, &v))
	known, err := receipt.ParseKeys(v.Keys)
	require.NoError(t, err)
	require.JSONEq(t, string(keys(t).JWKS()), string(v.Keys))
	require.GreaterOrEqual(t, len(v.Valid), 4)
	for _, c := range v.Valid {
		st, err := receipt.Verify(known, c.Receipt)
		require.NoError(t, err, c.Name)
		require.Equal(t, c.Receipt, sign(t, st), "%s: old receipts are written as before", c.Name)
		_, payload := parts(t, c.Receipt)
		require.JSONEq(t, string(c.Statement), payload, c.Name)
		require.NoError(t, st.CoversArguments([]byte(v.Arguments)), c.Name)
	}
	require.GreaterOrEqual(t, len(v.Invalid), 35)
	for _, c := range v.Invalid {
		_, err := receipt.Verify(known, c.Receipt)
		require.ErrorContains(t, err, c.Why, c.Name)
	}
}

func writeVectors(t *testing.T) {
	t.Helper()
	v := vectors{
		Comment: "The key is that of RFC 8037, appendix A: never use it. Every valid receipt must verify, and every invalid one must not.",
		Seed:    seedOfTheRFC, Arguments: string(args), Keys: keys(t).JWKS(),
	}
	for _, c := range []struct {
		name string
		s    receipt.Statement
	}{
		{"approved by two, with everything", approved()},
		{"permitted by the policy", receipt.Statement{
			Request: "batch-02", Call: "1", Tool: "read_file", Arguments: receipt.DigestOf(args), Agent: "deployer",
			Outcome: receipt.Permitted, DecidedAt: decided, NotAfter: decided.Add(time.Hour),
		}},
		{"approved for a place", with(func(s *receipt.Statement) {
			s.Place = receipt.Place{Server: "files", Cwd: "/home/ann/shop", Repository: "github.com/acme/shop", Branch: "main"}
		})},
		{"denied", with(func(s *receipt.Statement) { s.Outcome, s.Approvers, s.NotAfter = receipt.Denied, nil, time.Time{} })},
		{"refused by the policy after people approved it", with(func(s *receipt.Statement) { s.Outcome, s.Deniers, s.NotAfter = receipt.Refused, nil, time.Time{} })},
		{"withdrawn after one person approved it", with(func(s *receipt.Statement) {
			s.Outcome, s.Approvers, s.Deniers, s.NotAfter = receipt.Withdrawn, s.Approvers[:1], nil, time.Time{}
		})},
		{"expired", with(func(s *receipt.Statement) {
			s.Outcome, s.Approvers, s.Deniers, s.Editors, s.NotAfter = receipt.Expired, nil, nil, nil, time.Time{}
		})},
	} {
		r := sign(t, c.s)
		_, payload := parts(t, r)
		v.Valid = append(v.Valid, vector{c.name, json.RawMessage(payload), r})
	}
	for _, r := range refusals(t) {
		if r.Name != "too long" {
			v.Invalid = append(v.Invalid, r)
		}
	}
	out, err := json.MarshalIndent(v, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(vectorFile), 0o755))
	require.NoError(t, os.WriteFile(vectorFile, append(out, '\n'), 0o644))
}
