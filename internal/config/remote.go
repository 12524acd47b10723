package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/countersign/countersign/internal/approvals"
)

// A RemoteAgent is an agent that runs elsewhere and asks here before it acts.
type RemoteAgent struct {
	Name       string           `yaml:"name"`     // on cards; unique among all agents
	Owner      approvals.UserID `yaml:"owner"`    // the person whose credential it is: they asked
	Triggers   *Triggers        `yaml:"triggers"` // instead: everybody who can make it ask
	Channel    string           `yaml:"channel"`  // where its requests are shown
	Tokens     []string         `yaml:"tokens"`   // the SHA-256 of each, as sha256:HEX
	TokensFile string           `yaml:"tokens_file"`
	JWT        *JWT             `yaml:"jwt"`        // its JSON Web Tokens
	Doors      []string         `yaml:"doors"`      // where it may ask
	Fulfills   []Fulfills       `yaml:"fulfills"`   // whose external calls it may give results for
	OpenLimit  int              `yaml:"open_limit"` // so many of its requests may be open; 100 if left out
	PerMinute  int              `yaml:"per_minute"` // so many new requests in a minute; 60 if left out
	Within     time.Duration    `yaml:"within"`     // how long its requests can be decided at most; the policy's time if left out
	Webhooks   []Webhook        `yaml:"webhooks"`   // of which a request may name one
}

// Triggers are the people who share a credential: each of them may be who asked.
type Triggers struct {
	Users []approvals.UserID `yaml:"users"`
}

// Fulfills are external calls of one agent.
type Fulfills struct {
	Agent string   `yaml:"agent"`
	Tools []string `yaml:"tools"`
}

// Doors are the ways in which a remote agent may ask. Each is closed to it unless
// it is listed.
var Doors = []string{"api", "hooks", "mcp"}

// maxRemoteName is how many characters the name of a remote agent may have: it
// stands on every card.
const maxRemoteName = 64

// checkRemote returns what is wrong with the remote agents. It adds their tokens and
// subjects to those that are seen.
func (c Config) checkRemote(tokens map[TokenHash]string, subjects map[JWT]string, wrong func(format string, args ...any)) {
	names := map[string]string{}
	for i, a := range c.Agents {
		names[a.Name] = fmt.Sprintf("agents[%d]", i)
	}
	for i, a := range c.RemoteAgents {
		at := fmt.Sprintf("remote_agents[%d]", i)
		if where, ok := names[a.Name]; ok && a.Name != "" {
			wrong("%s.name: %s is already called %q", at, where, a.Name)
		}
		names[a.Name] = at
		a.check(at, wrong)
		a.checkTokens(at, tokens, wrong)
		a.JWT.check(at+".jwt", subjects, wrong)
	}
	c.checkGateways(names, tokens, subjects, wrong)
	if len(c.RemoteAgents) > 0 && c.HTTP.Listen == "" {
		wrong("http.listen: not set, so no remote agent can reach the bot; set an address such as 127.0.0.1:8090")
	}
	for i, a := range c.RemoteAgents {
		if len(a.Fulfills) > 0 && !slices.Contains(a.Doors, "api") {
			wrong("remote_agents[%d].fulfills: results come in over the HTTP API; add api to doors", i)
		}
		for j, f := range a.Fulfills {
			at := fmt.Sprintf("remote_agents[%d].fulfills[%d]", i, j)
			switch _, known := names[f.Agent]; {
			case f.Agent == "" || len(f.Tools) == 0:
				wrong("%s: must name an agent and its tools", at)
			case f.Agent == a.Name:
				wrong("%s.agent: an agent never gives the results of its own calls", at)
			case !known:
				wrong("%s.agent: there is no agent %q", at, f.Agent)
			}
		}
	}
}

func (a RemoteAgent) check(at string, wrong func(format string, args ...any)) {
	a.checkShown(at, wrong)
	a.checkWho(at, wrong)
	if len(a.Doors) == 0 {
		wrong("%s.doors: there are none, so it could never ask; list some of %s", at, strings.Join(Doors, ", "))
	}
	checkNames(at, "doors", a.Doors, Doors, wrong)
}

// checkNames says which names of a list are unknown, or are on it twice.
func checkNames(at, key string, names, known []string, wrong func(format string, args ...any)) {
	for i, n := range names {
		switch {
		case !slices.Contains(known, n):
			wrong("%s.%s: there is no %q; the %s are %s", at, key, n, key, strings.Join(known, ", "))
		case slices.Contains(names[:i], n):
			wrong("%s.%s: has %q twice", at, key, n)
		}
	}
}

// checkWho says what is wrong with who asked.
func (a RemoteAgent) checkWho(at string, wrong func(format string, args ...any)) {
	var triggers []approvals.UserID
	if a.Triggers != nil {
		triggers = a.Triggers.Users
	}
	switch {
	case a.Owner == "" && len(triggers) == 0:
		wrong("%s: set owner to the person whose credential it is, or list everyone who can make it ask in triggers.users; they never approve what they asked for themselves", at)
	case a.Owner != "" && len(triggers) > 0:
		wrong("%s: has an owner and triggers; keep owner for a credential of one person, triggers for one that several share", at)
	}
	if a.Owner != "" {
		checkUser(at+".owner", a.Owner, wrong)
	}
	for _, u := range triggers {
		checkUser(at+".triggers.users", u, wrong)
	}
}

// checkShown says what is wrong with how its requests are shown and limited.
func (a RemoteAgent) checkShown(at string, wrong func(format string, args ...any)) {
	switch {
	case strings.TrimSpace(a.Name) == "":
		wrong("%s.name: not set; every agent needs a name", at)
	case len([]rune(a.Name)) > maxRemoteName || strings.ContainsFunc(a.Name, func(r rune) bool { return !unicode.IsPrint(r) }):
		wrong("%s.name: must be one line of at most %d characters", at, maxRemoteName)
	}
	if !channelID.MatchString(a.Channel) {
		wrong("%s.channel: %q is not a channel id such as C0123456789; it is where the requests are shown", at, a.Channel)
	}
	for key, n := range map[string]int{"open_limit": a.OpenLimit, "per_minute": a.PerMinute} {
		if n < 0 {
			wrong("%s.%s: must not be negative, but is %d", at, key, n)
		}
	}
	if a.Within != 0 && a.Within < time.Second {
		wrong("%s.within: must be at least 1s, but is %s", at, a.Within)
	}
}

// checkTokens reads the tokens. One token proves one agent.
func (a RemoteAgent) checkTokens(at string, seen map[TokenHash]string, wrong func(format string, args ...any)) {
	if len(a.Tokens) == 0 && a.TokensFile == "" {
		if a.JWT == nil {
			wrong("%s: has no credential; set tokens, tokens_file or jwt", at)
		}
		return
	}
	hashes, err := hashesOf(a.Tokens, a.TokensFile)
	for _, p := range Problems(err) {
		wrong("%s.%w", at, p)
	}
	for _, h := range hashes {
		if other := seen[h]; other != "" {
			wrong("%s: one of its tokens is also one of %s", at, other)
		}
		seen[h] = at
	}
}
