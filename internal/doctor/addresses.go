package doctor

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/regular"
	"github.com/countersign/countersign/manifests"
)

// addresses checks how Slack reaches the bot: --url, the manifest of the app,
// and what answers there.
type addresses struct{ *checker }

// maxManifest is how many bytes of a manifest are read.
const maxManifest = 1 << 20

// check looks at --url, and at the Slack manifest beside the
// configuration, which bot init wrote there.
func (a addresses) check() {
	if a.Address != "" {
		for _, p := range config.Problems(a.wrong()) {
			a.problem("", "--url: %s", p)
		}
	}
	path := filepath.Join(filepath.Dir(a.Path), ManifestName)
	text, err := regular.Read(path, maxManifest)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil {
		a.unknown("", "%s", err)
		return
	}
	app, err := manifests.ReadSlack(text)
	if err != nil {
		a.problem("", "%s: %s", path, err)
		return
	}
	if problems := a.manifestProblems(app); len(problems) > 0 {
		for _, p := range problems {
			a.problem("fix it there and in the app's settings in Slack, or write a new one with bot init", "%s: %s", path, p)
		}
		return
	}
	a.fine("%s: its addresses and scopes are what the bot needs", path)
}

func (a addresses) manifestProblems(app manifests.App) []string {
	var problems []string
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if p := a.modeProblem(app); p != "" {
		wrong("%s", p)
	}
	command := ""
	for _, s := range app.Features.SlashCommands {
		if s.Command == "/countersign" {
			command = s.URL
		}
	}
	address := strings.TrimSuffix(a.Address, "/")
	for _, place := range []struct{ key, url, path string }{
		{"settings.event_subscriptions.request_url", app.Settings.Events.RequestURL, manifests.EventsPath},
		{"settings.interactivity.request_url", app.Settings.Interactivity.RequestURL, manifests.InteractivityPath},
		{"features.slash_commands: /countersign: url", command, manifests.CommandsPath},
	} {
		if a.env.AppToken.Open() != "" {
			break // nothing is sent there
		}
		base, ok := strings.CutSuffix(place.url, place.path)
		if !ok {
			wrong("%s: must be the address of the bot followed by %s, but is %q", place.key, place.path, place.url)
			continue
		}
		for _, p := range config.Problems(manifests.CheckAddress(base)) {
			wrong("%s: %s", place.key, p)
		}
		if address != "" && base != address {
			wrong("%s: points to %s, but --url is %s", place.key, base, address)
		}
	}
	if !app.Settings.Interactivity.Enabled {
		wrong("settings.interactivity.is_enabled: must be true; without it, Slack sends no clicks")
	}
	for _, s := range missing(a.config.Scopes(), app.OAuth.Scopes.Bot) {
		wrong("oauth_config.scopes.bot: %s is missing", s)
	}
	for _, e := range missing(a.config.Events(), app.Settings.Events.Bot) {
		wrong("settings.event_subscriptions.bot_events: %s is missing; without it, Slack sends %s", e, arrivals(e))
	}
	return problems
}

// modeProblem says that the manifest and the environment do not mean the same
// way to Slack.
func (a addresses) modeProblem(app manifests.App) string {
	switch over := a.env.AppToken.Open() != ""; {
	case over && !app.Settings.SocketMode:
		return "settings.socket_mode_enabled: must be true, because SLACK_APP_TOKEN is set"
	case !over && app.Settings.SocketMode:
		return "settings.socket_mode_enabled: is true, so Slack sends nothing to the addresses, but SLACK_APP_TOKEN is not set"
	}
	return ""
}

// missing is what needed has and given has not.
func missing(needed, given []string) []string {
	return slices.DeleteFunc(slices.Clone(needed), func(s string) bool { return slices.Contains(given, s) })
}

// arrivals is what Slack would not send without an event.
func arrivals(event string) string {
	if event == "app_mention" {
		return "no mentions"
	}
	return "no replies without a mention"
}

// wrong returns why Slack could not reach the bot at --url. A Slack on
// this machine, a simulator, reaches any address on this machine.
func (a addresses) wrong() error {
	if onThisMachine(a.env.SlackAPIURL) && onThisMachine(a.Address) {
		return nil
	}
	return manifests.CheckAddress(a.Address)
}

func onThisMachine(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}
