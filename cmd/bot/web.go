package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/draft"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/uistream"
)

// newWeb returns the server of chats, and nil without the settings of web.
func (b *bot) newWeb(ctx context.Context, c config.Config, refuses func(*http.Request) string) (*uistream.Server, error) {
	if c.Web.Agent == "" {
		return nil, nil
	}
	people, err := newWebPeople(ctx, b.ui, c, b.agents.tokens.People, b.log)
	if err != nil {
		return nil, err
	}
	return uistream.New(uistream.Config{
		Runs: b.store, Runner: b.runner, Desk: b.desk, Tools: b.catalog, Changes: state.NewFeed(b.store), Drafts: draft.NewReader(b.relay), People: people, Refuses: refuses,
		Agent: c.Web.Agent, Channel: c.Web.Channel, Dialect: uistream.Dialect(c.Web.Dialect), Reasoning: c.Web.Reasoning,
		System:  c.Web.System == config.ClientSystemPrompt,
		Origins: c.Web.Origins, Cookies: c.Web.Cookies, Hold: c.Web.Hold, Streams: c.Web.Streams, Now: time.Now, Log: b.log,
	})
}

// watchers returns what shows people what a model writes in chats, and nil without chats.
func (b *bot) watchers(c config.Config) agentrun.Watchers {
	if c.Web.Agent == "" {
		return nil
	}
	return draft.NewWriter(b.relay, uistream.Watched)
}

// webPeople are the people of the web as Slack knows them.
type webPeople struct {
	ui     *slackui.UI
	proof  *bearer.People
	mayAsk map[string]approvals.From
}

func newWebPeople(ctx context.Context, ui *slackui.UI, c config.Config, tokens []*config.Tokens, log *slog.Logger) (*webPeople, error) {
	proxies, err := c.HTTP.TrustedProxies()
	if err != nil {
		return nil, err
	}
	of := bearer.PeopleConfig{Now: time.Now, Log: log, Proxies: proxies, Tokens: func() []bearer.Token {
		var now []bearer.Token
		for i, p := range c.Web.People {
			for _, h := range tokens[i].Now(ctx) {
				now = append(now, bearer.Token{Sum: bearer.Sum(h), User: p.User})
			}
		}
		return now
	}}
	for _, i := range c.Web.Issuers {
		of.Issuers = append(of.Issuers, bearer.Issuer{Issuer: i.Issuer, Audience: i.Audience, Keys: i.Keys, Subjects: i.Subjects, Emails: i.Emails})
	}
	return &webPeople{ui: ui, proof: bearer.NewPeople(of), mayAsk: c.MayAsk()}, nil
}

// Prove implements [uistream.People].
func (w *webPeople) Prove(r *http.Request) (approvals.UserID, error) {
	p, err := w.proof.Prove(r)
	if limited, ok := errors.AsType[*bearer.LimitedError](err); ok {
		return "", &uistream.RefusedError{Status: http.StatusTooManyRequests, Words: "Too many requests from this address proved nobody. Try again in " + limited.After.Round(time.Second).String() + "."}
	}
	if errors.Is(err, bearer.ErrMissing) || errors.Is(err, bearer.ErrRefused) {
		return "", &uistream.RefusedError{Status: http.StatusUnauthorized, Words: "Sign in: the request has no credential that proves who you are."}
	}
	if errors.Is(err, bearer.ErrUnavailable) {
		return "", &uistream.RefusedError{Status: http.StatusServiceUnavailable, Words: "Your credential can't be checked now, because the keys of its issuer cannot be read. Nothing changed. Try again in a moment."}
	}
	if err != nil {
		return "", err
	}
	if p.User == "" {
		p.User, err = w.ui.ByEmail(r.Context(), p.Email)
	} else {
		err = w.ui.Admit(r.Context(), p.User)
	}
	return p.User, turnedAway(err)
}

// MayAsk implements [uistream.People].
func (w *webPeople) MayAsk(ctx context.Context, user approvals.UserID, agent string) error {
	from, some := w.mayAsk[agent]
	if !some || slices.Contains(from.Users, user) {
		return nil
	}
	p, err := w.ui.Principal(ctx, user, approvals.Asked{Groups: from.Groups})
	if err != nil {
		return turnedAway(err)
	}
	if len(p.Groups) == 0 {
		return &uistream.RefusedError{Status: http.StatusForbidden, Words: "You can't ask this agent. Nothing was started."}
	}
	return nil
}

// MayOpen implements [uistream.People].
func (w *webPeople) MayOpen(ctx context.Context, user approvals.UserID, o agentrun.Origin) (string, error) {
	agent, err := w.ui.MayOpen(ctx, user, o)
	return agent, mayNotRead(err, "You are not in this conversation.")
}

// Principal implements [uistream.People].
func (w *webPeople) Principal(ctx context.Context, user approvals.UserID, asked approvals.Asked) (approvals.Principal, error) {
	p, err := w.ui.Principal(ctx, user, asked)
	return p, turnedAway(err)
}

// MayRead implements [uistream.People].
func (w *webPeople) MayRead(ctx context.Context, user approvals.UserID, b approvals.Batch) error {
	return mayNotRead(w.ui.MayRead(ctx, user, b), "You can't read this request.")
}

func mayNotRead(err error, words string) error {
	if errors.Is(err, directory.ErrMayNotRead) {
		return &uistream.RefusedError{Status: http.StatusForbidden, Words: words}
	}
	return turnedAway(err)
}

// turnedAway says why a person cannot take part. A lookup that failed says nothing
// about the person, and stays an error.
func turnedAway(err error) error {
	for _, refused := range []struct {
		err   error
		words string
	}{
		{directory.ErrNoAccount, "Nobody in Slack has your address, so nothing can be decided as you."},
		{directory.ErrGone, "This account is deactivated and can't do this."},
		{directory.ErrUnknown, "Slack doesn't know this account."},
		{directory.ErrBot, "Only people can do this."},
		{directory.ErrGuest, "Guests of the workspace can't do this."},
		{directory.ErrStranger, "People from other organizations can't do this."},
	} {
		if errors.Is(err, refused.err) && !errors.Is(err, directory.ErrLookup) {
			return &uistream.RefusedError{Status: http.StatusForbidden, Words: refused.words}
		}
	}
	return err
}
