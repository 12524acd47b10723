package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slackui/slacksim"
	"github.com/countersign/countersign/manifests"
)

func initialise(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, stderr bytes.Buffer
	err := run(t.Context(), append([]string{"init"}, args...), nil, &out, &stderr)
	return out.String(), err
}

// What init wrote passes check as soon as the ids are filled in, the folder is
// there and the environment is set; until then check says so.
func TestInitWritesWhatCheckAccepts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	said, err := initialise(t, "--url", "https://bot.acme.com", "--dir", dir)
	require.NoError(t, err)
	require.Contains(t, said, "Written: "+filepath.Join(dir, configName)+" and "+filepath.Join(dir, manifestName))
	require.Contains(t, said, "bot check --config "+filepath.Join(dir, configName)+" --online")
	require.NotContains(t, said, "  0.")
	require.NotContains(t, said, "%!")
	manifest, err := os.ReadFile(filepath.Join(dir, manifestName))
	require.NoError(t, err)
	require.Equal(t, manifests.Slack("https://bot.acme.com"), string(manifest))

	i := newInstallation(t, slacksim.Config{})
	i.dir, i.o.Online, i.o.Address = dir, false, "https://bot.acme.com"
	written, err := os.ReadFile(filepath.Join(dir, configName))
	require.NoError(t, err)
	i.text = string(written)
	found := i.check()
	require.Contains(t, found, `"YOUR-ID" is not a user id such as U0123456789`)
	require.Contains(t, found, `"A-COLLEAGUES-ID" is not a user id`)
	require.Contains(t, found, "agents[0].files: there is no folder "+filepath.Join(dir, "reports"))
	require.Contains(t, found, "3 wrong")

	i.replace("YOUR-ID", "U0ALICE")
	i.replace("A-COLLEAGUES-ID", "U0BOB")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "reports"), 0o700))
	require.Contains(t, i.check(), "0 could not be checked, 0 wrong")
	i.o.Online, i.o.Address = true, ""
	require.Contains(t, i.check(), "0 wrong", "and Slack has the people")
}

// What stands in the comments is right too: with the keys of all of them the
// file is accepted.
func TestTheCommentsOfTheStartingConfigurationAreRight(t *testing.T) {
	text := startingConfig
	for _, commented := range []string{`(?m)^( +)# (channels: .*|who:|  groups: .*)$`, `(?m)^( +)# (tools:|  \w.*|    .*)$`} {
		text = regexp.MustCompile(commented).ReplaceAllString(text, "$1$2")
	}
	text = strings.NewReplacer("YOUR-ID", "U0ALICE", "A-COLLEAGUES-ID", "U0BOB").Replace(text)
	c, err := readConfig(write(t, text))
	require.NoError(t, err)
	require.NoError(t, c.check())
	require.NotEmpty(t, c.Agents[0].Channels)
	require.NotEmpty(t, c.Agents[0].Who.Groups)
	require.Len(t, c.Policy.Tools["delete_file"].Quorums, 2)
}

func TestInitOverwritesNothing(t *testing.T) {
	for _, name := range []string{configName, manifestName} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o600))
		_, err := initialise(t, "--dir", dir)
		require.ErrorContains(t, err, filepath.Join(dir, name)+" is there already, and is not overwritten")
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 1, "nothing else is written")
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, "mine", string(text))
	}
}

func TestInitWithoutAnAddressSaysWhereToWriteIt(t *testing.T) {
	dir := t.TempDir()
	said, err := initialise(t, "--dir", dir)
	require.NoError(t, err)
	require.Contains(t, said, "  0. Replace https://countersign.example.com in the manifest")
	i := newInstallation(t, slacksim.Config{})
	i.dir, i.o.Online = dir, false
	require.Contains(t, i.check(), "is the example; write your own", "and check says it as well")
}

func TestInitRefusesWhatSlackWouldRefuse(t *testing.T) {
	dir := t.TempDir()
	for _, bad := range []string{"http://bot.acme.com", "https://bot.acme.com/slack", "https://localhost:8080", "bot.acme.com"} {
		_, err := initialise(t, "--url", bad, "--dir", dir)
		require.ErrorContains(t, err, "--url: must", bad)
	}
	_, err := initialise(t, "more")
	require.ErrorContains(t, err, "init takes no argument")
	_, err = initialise(t, "--what")
	require.ErrorContains(t, err, "init:")
	_, err = initialise(t, "--dir", filepath.Join(write(t, "x"), "below"))
	require.ErrorContains(t, err, "make the directory")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}
