package doctor_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/doctor"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/manifests"
)

func TestCheckOfTheManifestBesideTheFile(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	i.o.Online = false
	manifest := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(i.dir, doctor.ManifestName), []byte(text), 0o600))
	}
	good := manifests.Slack("https://bot.acme.com")
	manifest(good)
	i.o.Address = "https://bot.acme.com/"
	require.Contains(t, i.check(), "its addresses and scopes are what the bot needs")
	i.o.Address = "https://other.acme.com"
	require.Contains(t, i.check(), "settings.interactivity.request_url: points to https://bot.acme.com, but --url is https://other.acme.com")
	i.o.Address = ""
	for text, want := range map[string]string{
		manifests.Slack(manifests.Example):                                   "is the example; write your own",
		strings.Replace(good, "url: https", "url: http", 1):                  "features.slash_commands: /countersign: url: must begin with https://",
		strings.Replace(good, "/slack/events", "/events", 1):                 "settings.event_subscriptions.request_url: must be the address of the bot followed by /slack/events, but is \"https://bot.acme.com/events\"",
		strings.Replace(good, "- usergroups:read", "- team:read", 1):         "oauth_config.scopes.bot: usergroups:read is missing",
		strings.Replace(good, "- app_mention\n", "- app_home_opened\n", 1):   "app_mention is missing",
		strings.Replace(good, "is_enabled: true", "is_enabled: false", 1):    "Slack sends no clicks",
		strings.Replace(good, "command: /countersign", "command: /other", 1): "features.slash_commands: /countersign: url: must be the address of the bot followed by /slack/commands, but is \"\"",
		"features: [": "read the Slack manifest",
	} {
		manifest(text)
		require.Contains(t, i.check(), want)
	}
}

// Opening a named pipe to which nobody writes never returns.
func TestAManifestThatIsANamedPipeIsNotWaitedFor(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	i.o.Online = false
	require.NoError(t, syscall.Mkfifo(filepath.Join(i.dir, doctor.ManifestName), 0o600))
	require.Contains(t, i.check(), doctor.ManifestName+" is not a regular file")
}
