package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/webhook"
)

// Webhooks is where messages of webhooks may go, for all agents.
type Webhooks struct {
	Allow      []string      `yaml:"allow"`       // networks that are not public and may get messages
	Deny       []string      `yaml:"deny"`        // public networks that may not
	PlainHosts []string      `yaml:"plain_hosts"` // hosts to which http is allowed
	Ports      []int         `yaml:"ports"`       // besides 443
	Proxy      string        `yaml:"proxy"`       // one that refuses internal addresses by itself
	Timeout    time.Duration `yaml:"timeout"`     // of one attempt; 20s if left out
}

// Webhook is where a service of a remote agent gets messages.
type Webhook struct {
	Name      string   `yaml:"name"` // by which a request names it
	URL       string   `yaml:"url"`
	Secrets   []string `yaml:"secrets"`   // the environment variables with its secrets, the newest first
	Events    []string `yaml:"events"`    // what it is told; approval.settled if left out
	Arguments bool     `yaml:"arguments"` // whether messages have the arguments of calls
}

// WebhookEvents are the events that a webhook can be told.
var WebhookEvents = []string{
	"approval.created", "approval.decided", "approval.retracted", "approval.amended", "approval.fulfilled", "approval.call_settled",
	"approval.settled", "approval.claimed", "approval.reported", "call.waiting",
}

// Tells reports whether the webhook is told this event.
func (w Webhook) Tells(event string) bool {
	if len(w.Events) == 0 {
		return event == "approval.settled"
	}
	return slices.Contains(w.Events, event)
}

const (
	maxWebhooks = 16 // of an agent
	maxSecrets  = 4  // of an endpoint: a message has a signature by each
)

var (
	webhookName  = regexp.MustCompile(`^[a-z0-9]([a-z0-9_.-]{0,62}[a-z0-9])?$`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Sender returns what sends the messages.
func (w Webhooks) Sender(now func() time.Time) (*webhook.Sender, error) {
	c := webhook.Config{PlainHosts: w.PlainHosts, Ports: w.Ports, Timeout: w.Timeout, Now: now}
	var problems []error
	for _, list := range []struct {
		key  string
		from []string
		to   *[]netip.Prefix
	}{{"allow", w.Allow, &c.Allow}, {"deny", w.Deny, &c.Deny}} {
		for i, text := range list.from {
			p, err := prefix(text)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s[%d]: %w", list.key, i, err))
			}
			*list.to = append(*list.to, p)
		}
	}
	if w.Proxy != "" {
		u, err := url.Parse(w.Proxy)
		switch {
		case err != nil:
			problems = append(problems, errors.New("proxy: is not a URL"))
		case u.User != nil:
			problems = append(problems, errors.New("proxy: must not have a name or a password"))
		default:
			c.Proxy = u
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return webhook.New(c)
}

// prefix reads a network, or one address. Addresses that are compared with it are IPv4
// where they can be, so a network of the IPv6 form of IPv4 would have none of them.
func prefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if a, one := netip.ParseAddr(text); one == nil && a.Zone() == "" {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	switch {
	case err != nil:
		return p, fmt.Errorf("%q is not a network such as 10.1.0.0/16", text)
	case p.Addr().Is4In6():
		return p, fmt.Errorf("%q is an IPv4 address in the form of IPv6; write it as 10.1.0.0/16 is written", text)
	case p != p.Masked():
		return p, fmt.Errorf("%q has an address in it; the network is %s", text, p.Masked())
	}
	return p, nil
}

// checkWebhooks returns what is wrong with the webhooks, as far as that can be said
// without the environment.
func (c Config) checkWebhooks(wrong func(format string, args ...any)) {
	sender, err := c.Webhooks.Sender(func() time.Time { return time.Time{} }) // it sends nothing
	for _, p := range Problems(err) {
		wrong("webhooks.%w", p)
	}
	for i, a := range c.RemoteAgents {
		if n := len(a.Webhooks); n > maxWebhooks {
			wrong("remote_agents[%d].webhooks: at most %d, but there are %d", i, maxWebhooks, n)
		}
		for j, w := range a.Webhooks {
			at := fmt.Sprintf("remote_agents[%d].webhooks[%d]", i, j)
			if slices.ContainsFunc(a.Webhooks[:j], func(o Webhook) bool { return o.Name == w.Name }) {
				wrong("%s.name: another webhook of the agent is already called %q", at, w.Name)
			}
			w.check(at, sender, wrong)
		}
	}
}

func (w Webhook) check(at string, sender *webhook.Sender, wrong func(format string, args ...any)) {
	checkNames(at, "events", w.Events, WebhookEvents, wrong)
	checkEndpoint(at, w.Name, w.URL, w.Secrets, sender, wrong)
}

// checkEndpoint returns what is wrong with an endpoint that gets signed messages.
func checkEndpoint(at, name, url string, secrets []string, sender *webhook.Sender, wrong func(format string, args ...any)) {
	if !webhookName.MatchString(name) {
		wrong("%s.name: must be small letters, digits, and - _ . between them", at)
	}
	if n := len(secrets); n == 0 || n > maxSecrets {
		wrong("%s.secrets: name one environment variable that holds its secret, and up to %d while it is replaced", at, maxSecrets)
	}
	for i, name := range secrets {
		switch {
		case !variableName.MatchString(name): // without quoting it: it may be the secret itself
			wrong("%s.secrets[%d]: is not the name of an environment variable; secrets are never written down here", at, i)
		case strings.HasPrefix(name, "COUNTERSIGN_"):
			wrong("%s.secrets[%d]: names that begin with COUNTERSIGN_ are those of settings", at, i)
		case slices.Contains(secrets[:i], name):
			wrong("%s.secrets: has %s twice", at, name)
		}
	}
	if sender == nil {
		return
	}
	if err := sender.Check(webhook.Endpoint{URL: url, Secrets: []webhook.Secret{sampleSecret}}); err != nil {
		wrong("%s.url: %w", at, err)
	}
}

// sampleSecret stands for those of the environment while a URL is checked.
var sampleSecret = func() webhook.Secret {
	s, err := webhook.ParseSecret("whsec_" + strings.Repeat("A", 32))
	if err != nil {
		panic(err) // it is a constant
	}
	return s
}()

// EndpointKey names an endpoint: the agent, and the name of the webhook.
type EndpointKey struct{ Agent, Name string }

// Endpoints returns the endpoints of the configuration with their secrets, or
// everything that is wrong with those.
func (c Config) Endpoints(e Environment) (map[EndpointKey]webhook.Endpoint, error) {
	all := map[EndpointKey]webhook.Endpoint{}
	var problems []error
	for i, a := range c.RemoteAgents {
		for j, w := range a.Webhooks {
			secrets, err := signingSecrets(fmt.Sprintf("remote_agents[%d].webhooks[%d]", i, j), w.Secrets, e)
			problems = append(problems, err)
			all[EndpointKey{a.Name, w.Name}] = webhook.Endpoint{URL: w.URL, Secrets: secrets}
		}
	}
	return all, errors.Join(problems...)
}

// signingSecrets reads the secrets of an endpoint from the environment.
func signingSecrets(at string, names []string, e Environment) ([]webhook.Secret, error) {
	var all []webhook.Secret
	var problems []error
	for i, name := range names {
		at := fmt.Sprintf("%s.secrets[%d]", at, i)
		value, err := e.secret(at, name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		secret, err := webhook.ParseSecret(value)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", at, name, err))
			continue
		}
		all = append(all, secret)
	}
	return all, errors.Join(problems...)
}
