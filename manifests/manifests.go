// Package manifests holds what other systems are told about Countersign: the
// Slack app, and the objects of a Kubernetes cluster. The files are to be read;
// the package is for the program, which writes them out.
package manifests

import (
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/goccy/go-yaml"
)

//go:embed slack/manifest.yaml
var slack string

// Example is the address that stands in the Slack manifest until it is
// replaced.
const Example = "https://countersign.example.com"

// The paths under which Slack reaches the bot.
const (
	EventsPath        = "/slack/events"
	InteractivityPath = "/slack/interactivity"
	CommandsPath      = "/slack/commands"
)

// Slack returns the manifest of the Slack app for the address of the bot.
func Slack(address string) string {
	return strings.ReplaceAll(slack, Example, strings.TrimSuffix(address, "/"))
}

// App is what matters of a Slack app's manifest to whoever checks it.
type App struct {
	Features struct {
		AppHome struct {
			Home     bool `yaml:"home_tab_enabled"`
			Messages bool `yaml:"messages_tab_enabled"`
			ReadOnly bool `yaml:"messages_tab_read_only_enabled"`
		} `yaml:"app_home"`
		SlashCommands []struct {
			Command      string `yaml:"command"`
			URL          string `yaml:"url"`
			ShouldEscape bool   `yaml:"should_escape"`
		} `yaml:"slash_commands"`
		Shortcuts []struct {
			Name     string `yaml:"name"`
			Type     string `yaml:"type"`
			Callback string `yaml:"callback_id"`
		} `yaml:"shortcuts"`
	} `yaml:"features"`
	OAuth struct {
		Scopes struct {
			Bot []string `yaml:"bot"`
		} `yaml:"scopes"`
	} `yaml:"oauth_config"`
	Settings struct {
		Events struct {
			RequestURL string   `yaml:"request_url"`
			Bot        []string `yaml:"bot_events"`
		} `yaml:"event_subscriptions"`
		Interactivity struct {
			Enabled    bool   `yaml:"is_enabled"`
			RequestURL string `yaml:"request_url"`
		} `yaml:"interactivity"`
		SocketMode bool `yaml:"socket_mode_enabled"`
	} `yaml:"settings"`
}

// ReadSlack reads a manifest.
func ReadSlack(text []byte) (App, error) {
	var a App
	if err := yaml.Unmarshal(text, &a); err != nil {
		return App{}, fmt.Errorf("read the Slack manifest: %w", err)
	}
	return a, nil
}

// Scopes are what the app must be granted.
func Scopes() []string {
	a, err := ReadSlack([]byte(slack))
	if err != nil {
		panic(err) // the file is part of the program, and tested
	}
	return a.OAuth.Scopes.Bot
}

// CheckAddress returns why Slack could not reach the bot at the address, if it
// could not: it must be https, public, and without a path.
func CheckAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return errors.New("must be an address such as https://countersign.your-company.com")
	}
	var problems []error
	wrong := func(yes bool, text string) {
		if yes {
			problems = append(problems, errors.New(text))
		}
	}
	host := strings.ToLower(u.Hostname())
	ip, ipErr := netip.ParseAddr(host)
	isIP := ipErr == nil
	wrong(u.Scheme != "https", "must begin with https://; Slack sends to nothing else")
	wrong(u.User != nil, "must hold no user or password")
	wrong(u.Path != "" && u.Path != "/", "must have no path: the bot answers below /slack/")
	wrong(u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(address, "#"), "must have neither ? nor #")
	wrong(isIP, fmt.Sprintf("must name a host that has a certificate, not the address %s", ip))
	wrong(!isIP && !public(host), "must name a host that Slack can reach: one with a public name")
	wrong(strings.TrimSuffix(address, "/") == Example, "is the example; write your own")
	return errors.Join(problems...)
}

func public(host string) bool {
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(labels) < 2 || len(host) > 253 {
		return false
	}
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || l[0] == '-' || l[len(l)-1] == '-' {
			return false
		}
	}
	switch labels[len(labels)-1] {
	case "localhost", "local", "internal", "lan", "home", "corp", "test", "invalid", "example":
		return false
	}
	return true
}
