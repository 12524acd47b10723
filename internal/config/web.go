package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// Web is the server of chats for frontends of your own. Without an agent there is
// none.
type Web struct {
	Agent     string        `yaml:"agent"`                // answers all chats
	Channel   string        `yaml:"channel"`              // where their requests are shown
	Dialect   string        `yaml:"dialect"`              // of clients that name none; common if left out
	Reasoning bool          `yaml:"reasoning"`            // whether users see the reasoning of the model
	System    string        `yaml:"manage_system_prompt"` // server, or client if left to it; server if left out
	Hold      time.Duration `yaml:"hold"`                 // how long a stream waits for people at most; 10m if left out
	Streams   int           `yaml:"streams"`              // that one person may have open; 100 if left out
	Origins   []string      `yaml:"origins"`              // of the pages that may call it; none if left out
	Cookies   bool          `yaml:"cookies"`              // whether a browser may have a cookie for its credential
	Page      string        `yaml:"page"`                 // the address of a chat, with {id}; Slack shows no link if left out
	People    []WebPerson   `yaml:"people"`               // with static tokens
	Issuers   []WebIssuer   `yaml:"issuers"`              // of the JSON Web Tokens of people
}

// A WebPerson is a person with tokens of their own.
type WebPerson struct {
	User       approvals.UserID `yaml:"user"`
	Tokens     []string         `yaml:"tokens"` // the SHA-256 of each, as sha256:HEX
	TokensFile string           `yaml:"tokens_file"`
}

// A WebIssuer says who the people are whose JSON Web Tokens it signs.
type WebIssuer struct {
	Issuer   string                      `yaml:"issuer"`
	Audience string                      `yaml:"audience"`
	Keys     string                      `yaml:"keys"`     // the JWKS of the issuer: a file, or a URL
	Subjects map[string]approvals.UserID `yaml:"subjects"` // who the people are, by sub
	Emails   bool                        `yaml:"emails"`   // others are who has their verified address
}

// dialects are those that a client may speak.
var dialects = []string{"common", "v7", "v7.0.82", "v5"}

// systemPrompts are the values of web.manage_system_prompt: the server alone writes the
// instructions of the agent, or clients add to them.
var systemPrompts = []string{"server", ClientSystemPrompt}

// ClientSystemPrompt makes the system messages of clients instructions.
const ClientSystemPrompt = "client"

// Emails reports whether people are found by their address.
func (w Web) Emails() bool {
	return slices.ContainsFunc(w.Issuers, func(i WebIssuer) bool { return i.Emails })
}

// A Warning is about settings that the bot can run with, and that people hardly want in
// production.
type Warning struct{ Text, Advice string }

// Warnings returns those about the people of the web.
func (c Config) Warnings() []Warning {
	var all []Warning
	i := slices.IndexFunc(c.Agents, func(a Agent) bool { return a.Name == c.Web.Agent })
	if i < 0 {
		return nil
	}
	if len(c.Web.People) > 0 {
		all = append(all, Warning{
			"web.people: static tokens are for development. They do not expire, and whoever has one decides as its person",
			"in production, use web.issuers",
		})
	}
	for n, s := range c.Web.Issuers {
		if s.Emails && c.Agents[i].Who == nil {
			all = append(all, Warning{
				fmt.Sprintf("web.issuers[%d].emails: every full member of the workspace can ask %s on the web, because agents[%d].who is not set", n, c.Web.Agent, i),
				fmt.Sprintf("set agents[%d].who, or list people in web.issuers[%d].subjects instead of emails", i, n),
			})
		}
	}
	return all
}

// checkWeb returns what is wrong with the web. The tokens and subjects are those of agents:
// an agent that proved to be a person would approve its own calls.
func (c Config) checkWeb(tokens map[TokenHash]string, subjects map[JWT]string, wrong func(format string, args ...any)) {
	w := c.Web
	if w.Agent == "" {
		if w.Channel != "" || w.Dialect != "" || w.Page != "" || w.Cookies || w.Reasoning || w.System != "" || w.Hold != 0 || w.Streams != 0 || len(w.Origins)+len(w.People)+len(w.Issuers) > 0 {
			wrong("web.agent: not set, so the other settings of web have no effect")
		}
		return
	}
	if !slices.ContainsFunc(c.Agents, func(a Agent) bool { return a.Name == w.Agent }) {
		wrong("web.agent: there is no agent %q", w.Agent)
	}
	if !channelID.MatchString(w.Channel) {
		wrong("web.channel: %q is not a channel id such as C0123456789; it is where the requests of chats are shown", w.Channel)
	}
	if w.Dialect != "" && !slices.Contains(dialects, w.Dialect) {
		wrong("web.dialect: must be one of %s, but is %q", strings.Join(dialects, ", "), w.Dialect)
	}
	if w.System != "" && !slices.Contains(systemPrompts, w.System) {
		wrong("web.manage_system_prompt: must be one of %s, but is %q", strings.Join(systemPrompts, ", "), w.System)
	}
	if w.Hold != 0 && w.Hold < time.Second {
		wrong("web.hold: must be at least 1s, but is %s", w.Hold)
	}
	if w.Streams < 0 {
		wrong("web.streams: must not be negative, but is %d", w.Streams)
	}
	if c.HTTP.Listen == "" {
		wrong("http.listen: not set, so no frontend can reach web; set an address such as 127.0.0.1:8090")
	}
	checkOrigins("web.origins", w.Origins, wrong)
	for _, o := range w.Origins {
		if u, err := url.Parse(o); err == nil && w.Cookies && u.Scheme == "http" && !slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname()) {
			wrong("web.origins: %q is not https, so a browser could send its cookie where others read it; use https with web.cookies", o)
		}
	}
	if w.Cookies && len(w.Origins) == 0 {
		wrong("web.origins: not set, so web.cookies has no effect; list the origin of your page, also if it is that of the server")
	}
	w.checkPage(wrong)
	if len(w.People)+len(w.Issuers) == 0 {
		wrong("web: nobody can sign in; set people or issuers")
	}
	for i, p := range w.People {
		p.check(fmt.Sprintf("web.people[%d]", i), tokens, wrong)
	}
	for i, s := range w.Issuers {
		s.check(fmt.Sprintf("web.issuers[%d]", i), subjects, wrong)
		if slices.ContainsFunc(w.Issuers[:i], func(o WebIssuer) bool { return o.Issuer == s.Issuer }) {
			wrong("web.issuers[%d].issuer: %q is listed twice", i, s.Issuer)
		}
	}
}

// inPage is the placeholder for the id of a chat in web.page.
const inPage = "{id}"

// PageOf returns the address of the page that shows the chat, and nothing if none is
// configured.
func (w Web) PageOf(chat string) string {
	if w.Page == "" || chat == "" || strings.Trim(chat, ".") == "" { // the last means another folder
		return ""
	}
	return strings.Replace(w.Page, inPage, url.QueryEscape(chat), 1)
}

func (w Web) checkPage(wrong func(format string, args ...any)) {
	if w.Page == "" {
		return
	}
	before, after, _ := strings.Cut(w.Page, inPage)
	u, err := url.Parse(before)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Path+u.RawQuery+u.Fragment == "" || !strings.Contains(w.Page, inPage) || strings.Contains(after, inPage) {
		wrong("web.page: %q is no address such as https://ops.example.com/chats/%s, with %s once after the host", w.Page, inPage, inPage)
	}
}

func (p WebPerson) check(at string, seen map[TokenHash]string, wrong func(format string, args ...any)) {
	checkUser(at+".user", p.User, wrong)
	hashes, err := hashesOf(p.Tokens, p.TokensFile)
	for _, e := range Problems(err) {
		wrong("%s.%w", at, e)
	}
	if len(hashes) == 0 && err == nil {
		wrong("%s: has no token; set tokens or tokens_file", at)
	}
	for _, h := range hashes {
		if other := seen[h]; other != "" {
			wrong("%s: one of the tokens is also one of %s", at, other)
		}
		seen[h] = at
	}
}

func (i WebIssuer) check(at string, seen map[JWT]string, wrong func(format string, args ...any)) {
	for _, f := range []struct{ key, value string }{{"issuer", i.Issuer}, {"audience", i.Audience}, {"keys", i.Keys}} {
		if f.value == "" {
			wrong("%s.%s: not set; without it, any token would be accepted", at, f.key)
		}
	}
	if err := checkKeys(i.Keys); err != nil {
		wrong("%s.keys: %w", at, err)
	}
	if len(i.Subjects) == 0 && !i.Emails {
		wrong("%s: maps no token to a person; set subjects or emails", at)
	}
	for sub, user := range i.Subjects {
		if sub == "" {
			wrong("%s.subjects: a token without a sub proves nobody; remove the empty one", at)
			continue
		}
		at := at + ".subjects." + sub
		checkUser(at, user, wrong)
		if other := seen[JWT{Issuer: i.Issuer, Audience: i.Audience, Subject: sub}]; other != "" {
			wrong("%s: %s has the same issuer, audience and subject; one token proves an agent or a person", at, other)
		}
	}
}

// checkOrigins says which of these are no origins.
func checkOrigins(at string, origins []string, wrong func(format string, args ...any)) {
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || o != u.Scheme+"://"+u.Host || strings.ContainsAny(o, "*") {
			wrong("%s: %q is no origin such as https://ops.example.com; it has a scheme and a host, and nothing stands for any", at, o)
		}
	}
}
