package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/respond"
)

// whenHint is how a time may be written.
func whenHint(command string) blockkit.Mrkdwn {
	return blockkit.Ours(awayExamples, blockkit.CodeWord(command))
}

// howToEnd is how an absence is changed or ended.
func howToEnd(command string) blockkit.Mrkdwn {
	return blockkit.Ours(awayHow, blockkit.CodeWord(command))
}

var (
	awayForm  = regexp.MustCompile(`(?is)^(?:(?:until|till|for)\b)?\s*(.*?)\s*$`)
	askForm   = regexp.MustCompile(`(?is)^(.*?)[\s,;]*\bask\s+(.*?)\s*$`)
	mentioned = regexp.MustCompile(`^<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>$`)
)

// A wish is the absence that a person asks for.
type wish struct {
	until    string          // as they wrote it
	delegate string          // the id in the mention that Slack made; empty: none
	problem  blockkit.Mrkdwn // why it is not clear, in our words
}

// wished reads the text after "away", which is still as Slack escaped it: only Slack
// makes a mention.
func wished(text string) wish {
	var w wish
	if m := askForm.FindStringSubmatch(text); m != nil {
		text = m[1]
		id := mentioned.FindStringSubmatch(m[2])
		if id == nil {
			return wish{problem: blockkit.Ours(oneDelegate)}
		}
		w.delegate = id[1]
	}
	if strings.Contains(text, "<@") {
		return wish{problem: blockkit.Ours(awayOnlySelf)}
	}
	text = strings.TrimRight(strings.TrimSpace(text), ",;.")
	w.until = blockkit.Unescape(awayForm.FindStringSubmatch(text)[1])
	if w.until == "" {
		return wish{problem: blockkit.Ours(awaySayWhen)}
	}
	return w
}

// away sets the person's own absence, or says what is set.
func (s *Handler) away(ctx context.Context, c inbound.Command) (inbound.Reply, error) {
	user, command, text := approvals.UserID(c.User), c.Name, c.Rest
	who, refused, err := s.self(ctx, user)
	if err != nil || !refused.IsZero() {
		return refused, err
	}
	if strings.TrimSpace(text) == "" {
		return s.whoIsAway(ctx, user, command)
	}
	w := wished(text)
	if !w.problem.IsZero() {
		return inbound.Ephemeral(blockkit.Ours("%s Nothing changed.\n%s", w.problem, whenHint(command))), nil
	}
	now := s.Cfg.Now().In(who.Location())
	end, sure := until(w.until, now)
	if !sure {
		return inbound.Answered(blockkit.Ours(awayUnclear, whenHint(command)).Fallback(),
			blockkit.RichText(blockkit.Line(blockkit.Say(awayUnclearTime), blockkit.Styled(blockkit.Brief(w.until, 40), blockkit.Code), blockkit.Say(" is. Nothing changed."))),
			blockkit.Section(whenHint(command))), nil
	}
	a := approvals.Absence{User: user, Delegate: approvals.UserID(w.delegate), From: now, Until: end}
	if words := s.cannotBeAway(ctx, a, now); !words.IsZero() {
		return inbound.Ephemeral(blockkit.Ours("%s Nothing changed.", words)), nil
	}
	before, after, err := s.People.Absences().Change(ctx, func(as approvals.Absences) (approvals.Absences, error) { return as.Set(a, now) })
	switch {
	case errors.Is(err, approvals.ErrAbsence):
		return inbound.Ephemeral(blockkit.Ours(delegateCircle, blockkit.Person(a.Delegate))), nil
	case err != nil && respond.IsTryAgain(err):
		return inbound.Ephemeral(blockkit.Ours(notSaved)), nil
	case err != nil:
		return inbound.Reply{}, fmt.Errorf("set an absence: %w", err)
	}
	s.Cfg.Log.InfoContext(ctx, "absence set", slog.String("user", string(user)), slog.Time("until", end.UTC()), slog.String("delegate", string(a.Delegate)))
	told := s.TellDelegates(ctx, user, before, after)
	words := []blockkit.Mrkdwn{blockkit.Ours(awaySet, blockkit.When(end), inYourPlace(a, after, now))}
	if !told {
		words = append(words, blockkit.Ours(notNotified))
	}
	words = append(words, howToEnd(command))
	return inbound.Ephemeral(blockkit.Join(words, "\n")), nil
}

// self is the account of the person, who may set their own absence. A bot or a
// deactivated account may not. A guest may, because a rule can name them.
func (s *Handler) self(ctx context.Context, user approvals.UserID) (directory.Account, inbound.Reply, error) {
	a, err := directory.Sender(ctx, s.People, string(user))
	if err == nil {
		err = s.People.Barred(a)
	}
	if err == nil || errors.Is(err, directory.ErrGuest) || errors.Is(err, directory.ErrStranger) {
		return a, inbound.Reply{}, nil
	}
	words, known := respond.Explain(err, respond.Subject{})
	if !known {
		return a, inbound.Reply{}, err
	}
	return a, inbound.Ephemeral(words), nil
}

// cannotBeAway says what is wrong with an absence, or nothing.
func (s *Handler) cannotBeAway(ctx context.Context, a approvals.Absence, now time.Time) blockkit.Mrkdwn {
	switch {
	case !now.Before(a.Until):
		return blockkit.Ours(awayPast, blockkit.When(a.Until))
	case a.Until.Sub(now) > approvals.MaxAbsence:
		return blockkit.Ours(awayTooLong,
			blockkit.When(a.Until), blockkit.Num(int(approvals.MaxAbsence/(24*time.Hour))))
	case a.Delegate == a.User:
		return blockkit.Ours(delegateSelf)
	case a.Delegate == "":
		return blockkit.Mrkdwn{}
	}
	err := s.People.Admit(ctx, string(a.Delegate), "")
	if err == nil {
		return blockkit.Mrkdwn{}
	}
	return cannotBeDelegate(a.Delegate, err)
}

// cannotBeDelegate says why the person was not admitted as a delegate.
func cannotBeDelegate(user approvals.UserID, err error) blockkit.Mrkdwn {
	name := blockkit.Person(user)
	switch {
	case errors.Is(err, directory.ErrLookup):
		return blockkit.Ours(delegateUnknown, name)
	case errors.Is(err, directory.ErrUnknown):
		return blockkit.Ours(delegateNobody, name)
	case errors.Is(err, directory.ErrGuest):
		return blockkit.Ours(delegateGuest, name)
	case errors.Is(err, directory.ErrStranger):
		return blockkit.Ours(delegateStranger, name)
	case errors.Is(err, directory.ErrGone):
		return blockkit.Ours(delegateDeactivated, name)
	}
	return blockkit.Ours(delegateBot, name)
}

// inYourPlace says who is asked instead.
func inYourPlace(a approvals.Absence, as approvals.Absences, now time.Time) blockkit.Mrkdwn {
	if a.Delegate == "" {
		return blockkit.Ours(noDelegate)
	}
	words := blockkit.Ours(yourDelegate, blockkit.Person(a.Delegate))
	if too, away := as.Of(a.Delegate, now); away {
		words = blockkit.Ours(delegateAwayToo, words, blockkit.When(too.Until))
		if too.Delegate == "" {
			return blockkit.Ours(delegateAwayAlone, words)
		}
		words = blockkit.Ours(delegateAwayChain, words, blockkit.Person(too.Delegate))
	}
	return words
}

// whoIsAway shows the absence of the person, and for whom they are the delegate.
func (s *Handler) whoIsAway(ctx context.Context, user approvals.UserID, command string) (inbound.Reply, error) {
	as, _, err := s.People.Absences().Load(ctx)
	if err != nil {
		words, _ := respond.Explain(err, respond.Subject{})
		return inbound.Ephemeral(words), nil
	}
	now := s.Cfg.Now()
	words := blockkit.Ours(awayNot, whenHint(command))
	if a, away := as.Of(user, now); away {
		place := inYourPlace(a, as, now)
		if a.Delegate != "" {
			if err := s.People.Admit(ctx, string(a.Delegate), ""); err != nil && !errors.Is(err, directory.ErrLookup) {
				place = cannotBeDelegate(a.Delegate, err)
			}
		}
		words = blockkit.Ours(awayNow, blockkit.When(a.Until), place, howToEnd(command))
	}
	for i, a := range as.DelegationsTo(user, now) {
		if i == blockkit.NamesShown {
			words = blockkit.Ours(delegateOfMore, words, blockkit.Num(len(as.DelegationsTo(user, now))-i))
			break
		}
		words = blockkit.Ours(delegateOf, words, blockkit.Person(a.User), blockkit.When(a.Until))
	}
	return inbound.Ephemeral(words), nil
}

// back ends the person's own absence.
func (s *Handler) back(ctx context.Context, user approvals.UserID) (inbound.Reply, error) {
	if _, refused, err := s.self(ctx, user); err != nil || !refused.IsZero() {
		return refused, err
	}
	before, after, err := s.People.Absences().Change(ctx, func(as approvals.Absences) (approvals.Absences, error) { return as.Back(user), nil })
	if err != nil && respond.IsTryAgain(err) {
		return inbound.Ephemeral(blockkit.Ours(notSaved)), nil
	}
	if err != nil {
		return inbound.Reply{}, fmt.Errorf("end an absence: %w", err)
	}
	if _, away := before.Of(user, s.Cfg.Now()); !away {
		return inbound.Ephemeral(blockkit.Ours(wasNotAway)), nil
	}
	s.Cfg.Log.InfoContext(ctx, "absence ended", slog.String("user", string(user)))
	s.TellDelegates(ctx, user, before, after)
	return inbound.Ephemeral(blockkit.Ours(welcomeBack)), nil
}

// TellDelegates sends a message to the delegate of the person, and to the one before.
// It reports whether the messages are on their way. Requests that are waiting already
// ask again, because the people whom they ask directly have changed.
func (s *Handler) TellDelegates(ctx context.Context, user approvals.UserID, before, after approvals.Absences) bool {
	now := s.Cfg.Now()
	was, _ := before.Of(user, now)
	is, _ := after.Of(user, now)
	told := true
	if was.Delegate != "" && was.Delegate != is.Delegate {
		words := blockkit.Ours(tellBack, blockkit.Person(user))
		if is.User != "" {
			words = blockkit.Ours(tellChanged, blockkit.Person(user))
		}
		told = s.Respond.Dm(ctx, was.Delegate, words) == nil
	}
	if is.Delegate != "" && (was.Delegate != is.Delegate || !was.Until.Equal(is.Until)) {
		told = s.Respond.Dm(ctx, is.Delegate, blockkit.Ours(tellDelegate, blockkit.Person(user), blockkit.When(is.Until))) == nil && told
	}
	if was.Delegate != is.Delegate || is.Delegate != "" && !was.Until.Equal(is.Until) {
		if err := s.Respond.After(ctx, s.Respond.Copies, "ask other people", func(ctx context.Context) error { return s.askAgain(ctx, user) }); err != nil {
			s.Cfg.Log.WarnContext(ctx, "nobody else is asked about requests that wait, although somebody is away or back", slog.String("user", string(user)), slog.Any("err", err))
		}
	}
	return told
}

// askAgain has it worked out again whom the open requests ask that ask this person, or
// somebody for whom they stand in, and that allow delegation.
func (s *Handler) askAgain(ctx context.Context, user approvals.UserID) error {
	who, err := s.People.Viewer(ctx, string(user), "")
	if err != nil {
		return err
	}
	return directory.Concerning(ctx, s.Cfg.Lists, who, func(b approvals.Batch) error {
		if !b.Asked().Delegation {
			return nil
		}
		return s.Placements.AskAgain(ctx, b.ID)
	})
}
