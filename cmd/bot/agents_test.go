package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/slacksim"
)

// SIGHUP takes up what can change while the bot runs, all of a file or nothing of
// it, and the log says which.
func TestAFileIsTakenUpWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	b := i.bot()
	var said strings.Builder
	b.log = config.NewLogger(&said, "info")
	edit := func(old, by string) {
		t.Helper()
		said.Reset()
		i.replace(old, by)
		require.NoError(t, os.WriteFile(i.o.Path, []byte(i.text), 0o600))
		b.reload(t.Context())
	}
	instructions := func() string {
		a, ok := b.agents.agent("ops")
		require.True(t, ok)
		return a.Instructions
	}
	edit("files: reports", "files: reports")
	require.Contains(t, said.String(), "the configuration has not changed")
	edit("files: reports", "files: reports\n    instructions: Be brief.\n    limits: {requests: 3}")
	require.Contains(t, said.String(), `keys="[agents[0].instructions agents[0].limits.requests]"`)
	require.Equal(t, "Be brief.", instructions())

	edit("Be brief.", "Be long.\n    replies: all")
	require.Contains(t, said.String(), "nothing of it was loaded")
	require.Contains(t, said.String(), "keys=[agents[0].replies]")
	require.Equal(t, "Be brief.", instructions())
	edit("\n    replies: all", "\n    repleis: all")
	require.Contains(t, said.String(), "the previous one stays active")
	require.Contains(t, said.String(), "repleis")
	require.Equal(t, "Be brief.", instructions())
	edit("\n    repleis: all", "")
	require.Equal(t, "Be long.", instructions())
}

// A token that leaked is taken out of the configuration, and proves nobody from then on:
// of an agent that runs elsewhere, and of a person.
func TestATokenThatIsTakenOutProvesNobodyAfterSIGHUP(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	hash := func(token string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(token))) }
	leaked, fresh := hash("leaked"), hash("fresh")
	i.text += fmt.Sprintf(`
http: {listen: "127.0.0.1:8090"}
remote_agents:
  - {name: refunds, owner: U0ALICE, channel: C0OPS, tokens: [%[1]q, %[2]q], doors: [api]}
web:
  agent: ops
  channel: C0OPS
  people: [{user: U0ALICE, tokens: [%[3]q]}, {user: U0BOB, tokens: [%[4]q]}]
`, leaked, hash("other"), hash("leaked too"), hash("bob"))
	b := i.bot()
	people, err := newWebPeople(t.Context(), b.ui, b.agents.of, b.agents.tokens.People, b.log)
	require.NoError(t, err)
	agents := func() (sums []string) {
		for _, s := range b.credentials(t.Context())[0].Tokens {
			sums = append(sums, fmt.Sprintf("sha256:%x", s))
		}
		return sums
	}
	proves := func(token string) approvals.UserID {
		r := httptest.NewRequest(http.MethodGet, "/api/chat", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		user, _ := people.Prove(r)
		return user
	}
	require.Equal(t, []string{leaked, hash("other")}, agents())
	require.EqualValues(t, "U0ALICE", proves("leaked too"))

	i.replace(fmt.Sprintf("[%q, %q]", leaked, hash("other")), fmt.Sprintf("[%q]", fresh))
	i.replace(hash("leaked too"), hash("fresh too"))
	require.NoError(t, os.WriteFile(i.o.Path, []byte(i.text), 0o600))
	b.reload(t.Context())
	require.Equal(t, []string{fresh}, agents())
	require.Empty(t, proves("leaked too"))
	require.EqualValues(t, "U0ALICE", proves("fresh too"))
	require.EqualValues(t, "U0BOB", proves("bob"))

	i.replace(fresh, "sha256:0")
	require.NoError(t, os.WriteFile(i.o.Path, []byte(i.text), 0o600))
	b.reload(t.Context())
	require.Equal(t, []string{fresh}, agents(), "a file with a mistake changes nothing")
}
