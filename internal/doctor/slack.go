package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/config"
)

// signatureWindow is how far our clock may be from Slack's: a request that is
// older, by our clock, is refused.
const signatureWindow = 5 * time.Minute

// slackCheck checks the workspace with the token of the bot.
type slackCheck struct {
	*checker
	api    *slack.Client
	lookup *SlackLookup
}

// checkSlack asks Slack who the token is and what it may, then whether the
// channels, groups and people of the configuration are there.
func (c *checker) checkSlack(ctx context.Context) {
	if c.env.SlackToken.Open() == "" || c.env.SlackAPIURL == "" {
		return // said before
	}
	api := slack.New(c.env.SlackToken.Open(), slack.OptionAPIURL(c.env.SlackAPIURL),
		slack.OptionHTTPClient(&http.Client{Transport: c.HTTP, Timeout: Timeout}))
	who, err := api.AuthTestContext(ctx)
	if err != nil {
		c.problem(slackAdvice(err), "Slack: cannot find out who the bot is (auth.test): %s", err)
		return
	}
	if who.BotID == "" {
		whose := "is not the token of a bot"
		if who.User != "" {
			whose = "belongs to the person " + who.User + ", not to the bot"
		}
		c.problem(`copy the "Bot User OAuth Token" of the app, from "OAuth & Permissions"`, "Slack: SLACK_BOT_TOKEN %s", whose)
		return
	}
	c.fine("Slack: the bot is @%s in %s (%s)", who.User, who.Team, who.TeamID)
	s := slackCheck{c, api, NewSlackLookup(api, who)}
	s.checkClock(who.Header)
	s.checkScopes(who.Header)
	s.checkChannels(ctx)
	s.checkGroups(ctx)
	s.checkPeople(ctx)
	s.checkRequesters(ctx)
	s.checkRoster(ctx)
	s.checkReach(ctx)
}

func (s slackCheck) checkClock(h http.Header) {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	if off := s.Now().Sub(at).Round(time.Second); off.Abs() > signatureWindow {
		s.problem("set the clock, for example with NTP", "the clock of this machine is %s off, so the bot would refuse every request from Slack", off.Abs())
	}
}

func (s slackCheck) checkScopes(h http.Header) {
	list := strings.Join(h.Values("X-OAuth-Scopes"), ",")
	if list == "" {
		s.unknown("compare them with manifests/slack/manifest.yaml", "Slack: which scopes the bot has; it did not say")
		return
	}
	granted := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	if lacks := missing(s.config.Scopes(), granted); len(lacks) > 0 {
		s.problem(`add them in "OAuth & Permissions" and install the app again`, "Slack: the bot lacks the scopes %s", strings.Join(lacks, ", "))
		return
	}
	s.fine("Slack: the bot has all scopes that it needs")
}

// checkChannels looks at every channel in which the bot is to show something.
func (s slackCheck) checkChannels(ctx context.Context) {
	const invite = "write /invite @countersign there"
	for _, c := range s.channels() {
		at := c.at + ": " + c.id
		ch, err := s.api.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: c.id})
		switch {
		case isCode(err, "missing_scope"):
			s.unknown("look in Slack, or grant channels:read (groups:read for private channels); "+invite, "%s: whether the bot is in it", at)
		case isCode(err, "channel_not_found"):
			s.problem("correct the id; if it is a private channel, "+invite, "%s: there is no such channel, or the bot is not in it", at)
		case err != nil:
			s.unknown(slackAdvice(err), "%s: %s", at, err)
		case ch.IsArchived:
			s.problem("name another, or unarchive it", "%s: #%s is archived", at, ch.Name)
		case !ch.IsMember:
			s.problem(invite, "%s: the bot is not in #%s", at, ch.Name)
		default:
			s.fine("%s: the bot is in #%s", at, ch.Name)
		}
	}
}

// A place is where the configuration names an id of Slack.
type place struct{ at, id string }

// channels are those in which the bot is to show something, each at the first place
// that names it.
func (s slackCheck) channels() []place {
	var all []place
	add := func(at, id string) {
		if config.IsChannel(id) && !slices.ContainsFunc(all, func(p place) bool { return p.id == id }) {
			all = append(all, place{at, id})
		}
	}
	owners := func(at string, o *config.Owners) {
		if o != nil {
			add(at+".owners.channel", o.Channel)
		}
	}
	for i, a := range s.config.Agents {
		for _, id := range a.Channels {
			add(fmt.Sprintf("agents[%d].channels", i), id)
		}
		owners(fmt.Sprintf("agents[%d]", i), a.Owners)
	}
	for i, a := range s.config.RemoteAgents {
		add(fmt.Sprintf("remote_agents[%d].channel", i), a.Channel)
	}
	for i, g := range s.config.Gateways {
		add(fmt.Sprintf("gateways[%d].channel", i), g.Channel)
		owners(fmt.Sprintf("gateways[%d]", i), g.Owners)
	}
	add("web.channel", s.config.Web.Channel)
	return all
}

// slackAdvice says what to do about an error of Slack.
func slackAdvice(err error) string {
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		return fmt.Sprintf("check again in %s", limited.RetryAfter)
	}
	var refused slack.SlackErrorResponse
	if !errors.As(err, &refused) {
		return "check SLACK_API_URL, and that this machine can reach it"
	}
	switch refused.Err {
	case "invalid_auth", "not_authed", "token_expired", "not_allowed_token_type":
		return `copy the "Bot User OAuth Token" of the app into SLACK_BOT_TOKEN, from "OAuth & Permissions"`
	case "token_revoked", "account_inactive":
		return "the app was uninstalled: install it again, and copy its token"
	case "missing_scope":
		return "grant the scope " + refused.Needed + " and install the app again"
	case "plan_upgrade_required", "paid_teams_only":
		return "the plan of this workspace has no user groups: name people under users"
	}
	return ""
}

// isRefusal reports whether Slack answered that it does not do what was asked. Other
// errors, and those about Slack itself, say nothing about the workspace.
func isRefusal(err error) bool {
	var refused slack.SlackErrorResponse
	return errors.As(err, &refused) && !isCode(err, "ratelimited", "internal_error", "fatal_error", "service_unavailable", "request_timeout")
}

func isCode(err error, codes ...string) bool {
	var refused slack.SlackErrorResponse
	return errors.As(err, &refused) && slices.Contains(codes, refused.Err)
}
