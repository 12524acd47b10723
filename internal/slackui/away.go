package slackui

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
)

// whenHint is how a time may be written.
func whenHint(command string) string {
	return "Write for example `" + command + " away until friday`, or `until tomorrow 15:00`, `until 2026-12-24`, `for 3 days`, `for 2h`. " +
		"`, ask @ann` behind it names somebody who is asked in your place."
}

// howToEnd is how an absence is changed or ended.
func howToEnd(command string) string {
	return "To change it, say it again. To end it, write `" + command + " back`."
}

var (
	awayForm  = regexp.MustCompile(`(?is)^(?:(?:until|till|for)\b)?\s*(.*?)\s*$`)
	askForm   = regexp.MustCompile(`(?is)^(.*?)[\s,;]*\bask\s+(.*?)\s*$`)
	mentioned = regexp.MustCompile(`^<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>$`)
)

// A wish is what a person wants said of themselves.
type wish struct {
	until    string // as they wrote it
	delegate string // whose id Slack made of the mention; empty: nobody
	problem  string // why it is not clear, in our words
}

// wished reads what stands behind "away". It is still as Slack escaped it: a
// mention is one only where Slack made it.
func wished(text string) wish {
	var w wish
	if m := askForm.FindStringSubmatch(text); m != nil {
		text = m[1]
		id := mentioned.FindStringSubmatch(m[2])
		if id == nil {
			return wish{problem: "Name exactly one person behind `ask`, with an @ and their name, so that Slack knows whom you mean."}
		}
		w.delegate = id[1]
	}
	if strings.Contains(text, "<@") {
		return wish{problem: "You can say this of yourself only: nobody is set away by somebody else. To name who is asked in your place, write `, ask @ann` at the end."}
	}
	text = strings.TrimRight(strings.TrimSpace(text), ",;.")
	w.until = unescape(awayForm.FindStringSubmatch(text)[1])
	if w.until == "" {
		return wish{problem: "Say until when you are away."}
	}
	return w
}

// away sets the person's own absence, or says what is set.
func (s *commander) away(ctx context.Context, c Command) (reply, error) {
	user, command, text := approvals.UserID(c.User), c.Name, c.Rest
	who, refused, err := s.self(ctx, user)
	if err != nil || refused.body != nil {
		return refused, err
	}
	if strings.TrimSpace(text) == "" {
		return s.whoIsAway(ctx, user, command)
	}
	w := wished(text)
	if w.problem != "" {
		return ephemeral(w.problem + "\n" + whenHint(command)), nil
	}
	now := s.cfg.Now().In(who.zone())
	end, sure := until(w.until, now)
	if !sure {
		return answered("It is not clear when that is. "+whenHint(command),
			richText(line(say("It is not clear when "), styled(brief(w.until, 40), code), say(" is. Nothing was set."))),
			slack.NewSectionBlock(ours(whenHint(command)), nil, nil)), nil
	}
	a := approvals.Absence{User: user, Delegate: approvals.UserID(w.delegate), From: now, Until: end}
	if words := s.cannotBeAway(ctx, a, now); words != "" {
		return ephemeral(words + " Nothing was set."), nil
	}
	before, after, err := s.people.changeAbsences(ctx, func(as approvals.Absences) (approvals.Absences, error) { return as.Set(a, now) })
	switch {
	case errors.Is(err, approvals.ErrAbsence):
		return ephemeral("That would go in a circle: who is asked in the place of " + person(a.Delegate) + ", who will be away too, leads back to you. " +
			"Name somebody who is there. Nothing was set."), nil
	case err != nil && isTryAgain(err):
		return ephemeral("It could not be stored just now. Nothing was set. Try again in a moment."), nil
	case err != nil:
		return reply{}, fmt.Errorf("set an absence: %w", err)
	}
	s.cfg.Log.InfoContext(ctx, "absence set", slog.String("user", string(user)), slog.Time("until", end))
	told := s.tellDelegates(ctx, user, before, after)
	words := []string{"You are away until " + when(end) + ". " + inYourPlace(a, after, now)}
	if !told {
		words = append(words, "They could not be told just now: tell them yourself.")
	}
	words = append(words, howToEnd(command))
	return ephemeral(strings.Join(words, "\n")), nil
}

// self is the account of the person, who may say things of themselves. A bot
// or a deactivated account may not; a guest may, for where they are named.
func (s *commander) self(ctx context.Context, user approvals.UserID) (account, reply, error) {
	a, err := s.people.account(ctx, string(user))
	if err == nil {
		err = s.people.barred(a)
	}
	if err == nil || errors.Is(err, errGuest) || errors.Is(err, errStranger) {
		return a, reply{}, nil
	}
	words, known := explain(err, about{})
	if !known {
		return a, reply{}, err
	}
	return a, ephemeral(words), nil
}

// cannotBeAway says what is wrong with an absence, or nothing.
func (s *commander) cannotBeAway(ctx context.Context, a approvals.Absence, now time.Time) string {
	switch {
	case !now.Before(a.Until):
		return "That is over already: it means until " + when(a.Until) + "."
	case a.Until.Sub(now) > approvals.MaxAbsence:
		return fmt.Sprintf("That is too long: it means until %s, and an absence lasts %d days at most. Say it again when it is over.",
			when(a.Until), int(approvals.MaxAbsence/(24*time.Hour)))
	case a.Delegate == a.User:
		return "Nobody stands in for themselves. Name somebody else, or nobody."
	case a.Delegate == "":
		return ""
	}
	err := s.people.admit(ctx, string(a.Delegate), "")
	name := person(a.Delegate)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, errLookup):
		return "Slack did not say who " + name + " is. Try again in a moment."
	case errors.Is(err, errGuest):
		return name + " is a guest of this workspace, and guests cannot sign in the place of others. Name a full member."
	case errors.Is(err, errStranger):
		return name + " is of another organisation, and cannot sign in the place of others. Name a full member of this workspace."
	case errors.Is(err, errGone):
		return "The account of " + name + " is deactivated. Name somebody else."
	}
	return name + " is a bot, and only people sign. Name somebody else."
}

// inYourPlace says who is asked instead.
func inYourPlace(a approvals.Absence, as approvals.Absences, now time.Time) string {
	if a.Delegate == "" {
		return "Nobody is asked in your place."
	}
	words := person(a.Delegate) + " is asked in your place, where the rule of a call lets others sign for those who are away."
	if too, away := as.Of(a.Delegate, now); away {
		words += " They are away too, until " + when(too.Until)
		if too.Delegate == "" {
			return words + ", and named nobody: you may want to name somebody else."
		}
		words += ", and named " + person(too.Delegate) + "."
	}
	return words
}

// whoIsAway says what is set, of the person and for them.
func (s *commander) whoIsAway(ctx context.Context, user approvals.UserID, command string) (reply, error) {
	as, _, err := s.people.absences(ctx)
	if err != nil {
		words, _ := explain(err, about{})
		return ephemeral(words), nil
	}
	now := s.cfg.Now()
	words := "You are not away. " + whenHint(command)
	if a, away := as.Of(user, now); away {
		words = "You are away until " + when(a.Until) + ". " + inYourPlace(a, as, now) + "\n" + howToEnd(command)
	}
	for i, a := range as.StandsFor(user, now) {
		if i == namesShown {
			words += "\nYou stand in for " + number(len(as.StandsFor(user, now))-i) + " more."
			break
		}
		words += "\nYou stand in for " + person(a.User) + " until " + when(a.Until) + "."
	}
	return ephemeral(words), nil
}

// back ends the person's own absence.
func (s *commander) back(ctx context.Context, user approvals.UserID) (reply, error) {
	if _, refused, err := s.self(ctx, user); err != nil || refused.body != nil {
		return refused, err
	}
	before, after, err := s.people.changeAbsences(ctx, func(as approvals.Absences) (approvals.Absences, error) { return as.Back(user), nil })
	if err != nil && isTryAgain(err) {
		return ephemeral("It could not be stored just now. Nothing was changed. Try again in a moment."), nil
	}
	if err != nil {
		return reply{}, fmt.Errorf("end an absence: %w", err)
	}
	if _, away := before.Of(user, s.cfg.Now()); !away {
		return ephemeral("You were not away, so nothing changed."), nil
	}
	s.cfg.Log.InfoContext(ctx, "absence ended", slog.String("user", string(user)))
	s.tellDelegates(ctx, user, before, after)
	return ephemeral("Welcome back. From now on you are asked yourself, and nobody signs in your place any more."), nil
}

// tellDelegates tells whoever stands in for the person now, and whoever did
// before. It reports whether they are being told.
func (s *commander) tellDelegates(ctx context.Context, user approvals.UserID, before, after approvals.Absences) bool {
	now := s.cfg.Now()
	was, _ := before.Of(user, now)
	is, _ := after.Of(user, now)
	told := true
	if was.Delegate != "" && was.Delegate != is.Delegate {
		words := person(user) + " is back, so you do not stand in for them any more."
		if is.User != "" {
			words = person(user) + " changed who is asked in their place: it is not you any more."
		}
		told = s.respond.dm(ctx, was.Delegate, words) == nil
	}
	if is.Delegate != "" && (was.Delegate != is.Delegate || !was.Until.Equal(is.Until)) {
		told = s.respond.dm(ctx, is.Delegate, person(user)+" is away until "+when(is.Until)+" and asks you to stand in for them. "+
			"Where the rule of a call allows it, you are asked in their place, and a card says that you signed for them. "+
			"If you cannot, tell them: only they can change it.") == nil && told
	}
	return told
}

// dm tells somebody something in a direct message, after the answer.
func (s *responder) dm(ctx context.Context, to approvals.UserID, words string) error {
	return s.after(ctx, s.words, "tell a delegate", func(ctx context.Context) error {
		return s.api.direct(ctx, string(to), message{text: words, blocks: []slack.Block{slack.NewSectionBlock(ours(words), nil, nil)}})
	})
}
