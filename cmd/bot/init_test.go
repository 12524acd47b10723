package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/doctor"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/manifests"
)

func initialize(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, stderr bytes.Buffer
	err := run(t.Context(), append([]string{"init"}, args...), nil, &out, &stderr)
	return out.String(), err
}

// What init wrote passes check as soon as the ids are filled in, the folder is
// there and the environment is set; until then check says so.
func TestInitWritesWhatCheckAccepts(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	said, err := initialize(t, "--url", "https://bot.acme.com", "--dir", dir)
	require.NoError(t, err)
	require.Contains(t, said, "Wrote "+filepath.Join(dir, configName)+", "+filepath.Join(dir, policyName)+" and "+filepath.Join(dir, doctor.ManifestName))
	require.Contains(t, said, "bot check --config "+filepath.Join(dir, configName)+" --online")
	require.NotContains(t, said, "  0.")
	require.NotContains(t, said, "%!")
	manifest, err := os.ReadFile(filepath.Join(dir, doctor.ManifestName))
	require.NoError(t, err)
	require.Equal(t, manifests.Slack("https://bot.acme.com"), string(manifest))

	i := newInstallation(t, slacksim.Config{})
	i.dir, i.o.Online, i.o.Address = dir, false, "https://bot.acme.com"
	written, err := os.ReadFile(filepath.Join(dir, configName))
	require.NoError(t, err)
	i.text = string(written)
	written, err = os.ReadFile(filepath.Join(dir, policyName))
	require.NoError(t, err)
	i.rules = string(written)
	found := i.check()
	require.Contains(t, found, "agents[0].files: there is no folder "+filepath.Join(dir, "reports"))
	require.Contains(t, found, "policy.yaml: whether its rules fit the agents' tools")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "reports"), 0o700))
	found = i.check()
	require.Contains(t, found, `"YOUR-ID" is not a user id such as U0123456789`)
	require.Contains(t, found, `"A-COLLEAGUES-ID" is not a user id`)

	i.rules = withPeople(i.rules)
	require.Contains(t, i.check(), "0 could not be checked, 0 wrong")
	i.o.Online, i.o.Address = true, ""
	i.text += "redis: {durability: fsync}\n" // the one in memory does not tell what it keeps
	require.Contains(t, i.check(), "0 wrong", "and Slack has the people")
}

// What stands in the comments is right too: with the keys of all of them the
// file is accepted.
func TestTheCommentsOfTheStartingConfigurationAreRight(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "reports"), 0o700))
	text := regexp.MustCompile(`(?m)^( +)# (channels: .*|who:|  groups: .*|approval: .*|tools:|  read_file: .*)$`).ReplaceAllString(startingConfig, "$1$2")
	path := filepath.Join(dir, configName)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	rules := regexp.MustCompile(`(?m)^# (groups: .*)$`).ReplaceAllString(startingPolicy, "$1")
	rules = regexp.MustCompile(`(?m)^  # (- name: deletions|  .*)$`).ReplaceAllString(rules, "  $1")
	writePolicy(t, dir, withPeople(rules))
	c, err := config.Read(path)
	require.NoError(t, err)
	require.NoError(t, c.Check())
	require.NotEmpty(t, c.Agents[0].Channels)
	require.NotEmpty(t, c.Agents[0].Who.Groups)
	require.Equal(t, config.ApprovalWhen, c.Agents[0].Approval.Kind)
	require.Equal(t, config.ApprovalAll, c.Agents[0].Tools["read_file"].Approval.Kind)
	require.NoError(t, c.CheckPolicy(config.Environment{}, nil, time.Now))
	loaded, err := policy.Load(c.Policy, policy.Options{})
	require.NoError(t, err)
	require.Contains(t, loaded.Rules(), "deletions")
}

// withPeople is the starting policy with ids of the simulated workspace.
func withPeople(rules string) string {
	return strings.NewReplacer("YOUR-ID", "U0ALICE", "A-COLLEAGUES-ID", "U0BOB").Replace(rules)
}

func TestInitOverwritesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{configName, policyName, doctor.ManifestName} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o600))
		_, err := initialize(t, "--dir", dir)
		require.ErrorContains(t, err, filepath.Join(dir, name)+" already exists, and is not overwritten")
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 1, "nothing else is written")
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, "mine", string(text))
	}
}

func TestInitWithoutAnAddressSaysWhereToWriteIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	said, err := initialize(t, "--dir", dir)
	require.NoError(t, err)
	require.Contains(t, said, "  0. In the manifest, replace https://countersign.example.com with the")
	i := newInstallation(t, slacksim.Config{})
	i.dir, i.o.Online = dir, false
	require.Contains(t, i.check(), "is the example; write your own", "and check says it as well")
}

func TestInitRefusesWhatSlackWouldRefuse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, bad := range []string{"http://bot.acme.com", "https://bot.acme.com/slack", "https://localhost:8080", "bot.acme.com"} {
		_, err := initialize(t, "--url", bad, "--dir", dir)
		require.ErrorContains(t, err, "--url: must", bad)
	}
	_, err := initialize(t, "--url", "http://localhost", "--dir", dir)
	require.EqualError(t, err, "--url: must begin with https://; Slack sends to nothing else\n--url: must name a host that Slack can reach: one with a public name")
	_, err = initialize(t, "more")
	require.ErrorContains(t, err, "takes no argument")
	_, err = initialize(t, "--what")
	require.ErrorContains(t, err, "init:")
	_, err = initialize(t, "--dir", filepath.Join(write(t, "x"), "below"))
	require.ErrorContains(t, err, "make the directory")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}
