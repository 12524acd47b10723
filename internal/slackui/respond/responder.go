package respond

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/slack-go/slack"
)

const (
	// maxWords and maxCopies bound what is still being done after the answer.
	maxWords      = 64
	maxCopies     = 16
	maxScreens    = 64
	afterworkTime = 20 * time.Second
)

// A Responder answers the person who did something: it tells them, opens forms
// for them, and does what may follow once their request is answered.
type Responder struct {
	api *slackapi.Client
	log *slog.Logger

	afterwork sync.WaitGroup
	Words     Places // for messages to people
	Copies    Places // of copies of cards that are taken into care
	Screens   Places // of modals and Homes that are drawn
}

// New returns a Responder. The caller owes it a Wait.
func New(a *slackapi.Client, log *slog.Logger) *Responder {
	return &Responder{api: a, log: log, Words: make(Places, maxWords), Copies: make(Places, maxCopies), Screens: make(Places, maxScreens)}
}

// Places limits how many follow-ups of one kind run at the same time.
type Places chan struct{}

// ErrNoPlace means that too many follow-ups run already.
var ErrNoPlace = errors.New("too busy to follow up")

// Wait returns when nothing follows any more, or when ctx is over.
func (s *Responder) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		s.afterwork.Wait()
		s.api.Asks.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the last words to Slack: %w", context.Cause(ctx))
	}
}

// After runs work that may be lost, once the request is answered. It never
// waits: when too much of its kind is going on already, it is ErrNoPlace.
func (s *Responder) After(ctx context.Context, p Places, what string, work func(ctx context.Context) error) error {
	select {
	case p <- struct{}{}:
	default:
		return fmt.Errorf("%s: %w", what, ErrNoPlace)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterworkTime)
	s.afterwork.Go(func() {
		defer cancel()
		defer func() { <-p }()
		if err := work(ctx); err != nil {
			s.log.WarnContext(ctx, "follow-up to Slack", slog.String("what", what), slog.Any("err", err))
		}
	})
	return nil
}

// Tell sends an ephemeral message to one person, after the answer. It drops words
// for a place or a person that does not exist. If it returns an error, the message
// cannot be sent now: then the request must not be answered 200, so that Slack shows
// its warning or delivers again.
func (s *Responder) Tell(ctx context.Context, to inbound.Place, words blockkit.Mrkdwn) error {
	if !blockkit.IDForm.MatchString(to.Channel) || !blockkit.IDForm.MatchString(to.User) {
		return nil
	}
	if !blockkit.ValidTS(to.Thread) {
		to.Thread = ""
	}
	return s.After(ctx, s.Words, "tell a person", func(ctx context.Context) error {
		first := true
		return persist(ctx, func() error {
			err := s.tell(ctx, to, blockkit.Message{Text: words.Fallback()}, first)
			first = false
			return err
		})
	})
}

// tell sends the message once. Where Slack does not take it, tell uses the response URL,
// which works also while the token is refused; the first time not if Slack takes it in a
// moment.
func (s *Responder) tell(ctx context.Context, to inbound.Place, m blockkit.Message, first bool) error {
	err := s.api.Ephemeral(ctx, to.Channel, to.Thread, to.User, m)
	later, ok := errors.AsType[*slackapi.LaterError](err)
	inAMoment := ok && !later.Outage && later.After < afterworkTime/2
	if err == nil || inAMoment && first || to.ResponseURL == "" {
		return err
	}
	if other := s.api.Respond(ctx, to.ResponseURL, m); other != nil {
		return errors.Join(err, other)
	}
	return nil
}

// Dm sends a person a direct message, after the answer.
func (s *Responder) Dm(ctx context.Context, to approvals.UserID, words blockkit.Mrkdwn) error {
	return s.After(ctx, s.Words, "tell a delegate", func(ctx context.Context) error {
		return persist(ctx, func() error { return s.api.Direct(ctx, string(to), blockkit.MessageOf(words)) })
	})
}

// persist sends words again while Slack limits them or does not answer: nobody else
// would tell the person. It ends with ctx. Words whose answer was lost may be shown twice.
func persist(ctx context.Context, send func() error) error {
	for failed := 0; ; failed++ {
		err := send()
		later, ok := errors.AsType[*slackapi.LaterError](err)
		if !ok {
			return err
		}
		wait := later.After
		if later.Outage {
			wait = slackapi.WaitAfter(failed)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// Open shows a form: over the modal that the person is in, if they are in one. Where Slack
// does not answer, Open asks once more: a trigger opens one view, so if the form is open,
// Slack says so.
func (s *Responder) Open(ctx context.Context, trigger inbound.Trigger, view slack.ModalViewRequest) error {
	_, err := s.api.ShowView(ctx, trigger.ID, trigger.Over, view)
	if later, ok := errors.AsType[*slackapi.LaterError](err); ok && later.Outage && ctx.Err() == nil {
		_, err = s.api.ShowView(ctx, trigger.ID, trigger.Over, view)
	}
	if err == nil {
		return nil
	}
	if !slackapi.HasCode(err, "expired_trigger_id", "invalid_trigger_id") {
		s.log.WarnContext(ctx, "form not opened", slog.Any("err", err))
	}
	return fmt.Errorf("%w: %w", ErrForm, err)
}
