package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
)

// reviewing is what a modal shows: one card of a batch.
type reviewing struct {
	batch approvals.BatchID
	part  int
}

const reviewVersion = "r1"

// String is the value of a button that leads there. Like a pointer it carries
// no authority.
func (r reviewing) String() string {
	return strings.Join([]string{reviewVersion, string(r.batch), strconv.Itoa(r.part)}, "|")
}

func parseReviewing(s string) (reviewing, error) {
	fields := strings.Split(s, "|")
	if len(s) > maxPointer || len(fields) != 3 || fields[0] != reviewVersion {
		return reviewing{}, errPointer
	}
	if _, err := approvals.Partition(fields[1]); err != nil || strings.Trim(fields[1], idChars) != "" {
		return reviewing{}, errPointer
	}
	part, err := strconv.Atoi(fields[2])
	if err != nil || part < 0 || strconv.Itoa(part) != fields[2] {
		return reviewing{}, errPointer
	}
	return reviewing{batch: approvals.BatchID(fields[1]), part: part}, nil
}

// reviewed is what a review keeps in its view: what it shows, and where the
// person is in what waits for them.
type reviewed struct {
	At      string `json:"r"`
	Urgency string `json:"u,omitempty"`
}

// screen is a review on somebody's screen, and who is looking.
type screen struct {
	View string `json:"v,omitempty"`
	Hash string `json:"h,omitempty"`
	Memo string `json:"m,omitempty"` // the private metadata of the view
}

func screenOf(p Interaction) screen {
	if p.View.Callback != callbackReview || p.View.Type != string(slack.VTModal) {
		return screen{}
	}
	return screen{View: p.View.ID, Hash: p.View.Hash, Memo: p.View.Metadata}
}

// openReview opens the card of a batch in a modal, for those who may read it.
func (s *reviews) openReview(ctx context.Context, p Interaction, value string) (about, error) {
	at := about{user: p.User, now: s.cfg.Now(), deed: reading}
	r, err := parseReviewing(value)
	if err != nil {
		return at, err
	}
	view, b, err := s.review(ctx, p, r, "", "")
	at.batch = b
	if err != nil {
		return at, err
	}
	return at, s.respond.open(ctx, p, view)
}

// review draws the modal. words go on top of it.
func (s *reviews) review(ctx context.Context, p Interaction, r reviewing, urgency, words string) (slack.ModalViewRequest, approvals.Batch, error) {
	none := slack.ModalViewRequest{}
	b, err := s.cfg.Desk.Batch(ctx, r.batch)
	if err != nil {
		return none, b, fmt.Errorf("load batch %s: %w", r.batch, err)
	}
	if err := s.people.mayLook(ctx, p.User, p.UserTeam, b); err != nil {
		return none, b, err
	}
	r.part = min(r.part, max(0, parts(b)-1))
	card, err := s.cards.load(ctx, b, r.part)
	if err != nil {
		return none, b, err
	}
	card.Place = PlaceReview
	if a, drawn := s.cards.anchor(ctx, b, r.part*callsPerCard); drawn {
		card.Link = s.api.permalink(ctx, a.Channel, a.TS, a.Thread)
	}
	if urgency == "" {
		urgency = pile{batch: b, calls: pendingOf(b, r.part)}.urgency()
	}
	memo, err := json.Marshal(reviewed{At: r.String(), Urgency: urgency})
	if err != nil {
		return none, b, fmt.Errorf("write the review: %w", err)
	}
	return ReviewView(card, s.cfg.Now(), words, string(memo)), b, nil
}

// pendingOf are the open calls of one card.
func pendingOf(b approvals.Batch, part int) []int {
	var all []int
	for i, a := range b.Approvals {
		if i/callsPerCard == part && a.Status == approvals.Pending {
			all = append(all, i)
		}
	}
	return all
}

// next shows the next card that waits for the person, in the same modal.
func (s *reviews) next(ctx context.Context, p Interaction) error {
	memo := readReviewed(p.View.Metadata)
	now, err := parseReviewing(memo.At)
	if err != nil {
		return err
	}
	return s.respond.after(ctx, s.respond.screens, "show the next card", func(ctx context.Context) error {
		who, err := s.people.seeker(ctx, p.User, p.UserTeam)
		if err != nil {
			return s.redraw(ctx, p, screenOf(p), now, memo.Urgency, "It could not be looked up what waits for you. Press the button again in a moment.", err)
		}
		to, found, looked, err := nextAfter(ctx, s.cfg.Lists, who, memo.Urgency, now, s.cfg.Now())
		switch {
		case err != nil:
			return s.redraw(ctx, p, screenOf(p), now, memo.Urgency, "It could not be looked up what waits for you. Press the button again in a moment.", err)
		case !found:
			return s.redraw(ctx, p, screenOf(p), now, memo.Urgency, noneElse(who.unsure, looked), nil)
		}
		return s.redraw(ctx, p, screenOf(p), to.reviewing(), to.urgency(), "", nil)
	})
}

// show turns to another card of the same batch.
func (s *reviews) show(ctx context.Context, p Interaction, value string) (about, error) {
	at := about{user: p.User, now: s.cfg.Now(), deed: reading}
	r, err := parseReviewing(value)
	if err != nil {
		return at, err
	}
	return at, s.respond.after(ctx, s.respond.screens, "turn to another card", func(ctx context.Context) error {
		return s.redraw(ctx, p, screenOf(p), r, "", "", nil)
	})
}

func readReviewed(metadata string) reviewed {
	var m reviewed
	if json.Unmarshal([]byte(metadata), &m) != nil {
		return reviewed{}
	}
	return m
}

// reviewAgain draws a review anew once the request is answered, with words on
// top if there are any. What it shows is read after everything that was
// committed before.
func (s *reviews) reviewAgain(ctx context.Context, p Interaction, on screen, words string) error {
	memo := readReviewed(on.Memo)
	if on.View == "" {
		return nil
	}
	r, err := parseReviewing(memo.At)
	if err != nil {
		return err
	}
	return s.respond.after(ctx, s.respond.screens, "draw a review anew", func(ctx context.Context) error {
		return s.redraw(ctx, p, on, r, memo.Urgency, words, nil)
	})
}

// redraw replaces what the modal shows. If something else was drawn there since
// the person pressed, both may have been drawn before the other was committed:
// it is loaded once more, and drawn over that. cause is returned if it worked.
func (s *reviews) redraw(ctx context.Context, p Interaction, on screen, r reviewing, urgency, words string, cause error) error {
	for _, hash := range []string{on.Hash, ""} {
		view, b, err := s.review(ctx, p, r, urgency, words)
		if err != nil {
			said, known := explain(err, about{user: p.User, batch: b, now: s.cfg.Now(), deed: reading})
			if !known {
				said, cause = "It could not be read just now. Close this, and open it again in a moment.", err
			}
			view = notice(said)
		}
		err = s.api.updateView(ctx, on.View, hash, view)
		if hasCode(err, "hash_conflict") && hash != "" {
			continue
		}
		if hasCode(err, "not_found", "view_not_found") {
			return cause // the person has closed it
		}
		return errors.Join(cause, err)
	}
	return cause
}

// ReviewView is a card in a modal: the same blocks as the message, with the way
// to the next one under it. memo is for the buttons that come back.
func ReviewView(c Card, now time.Time, words, memo string) slack.ModalViewRequest {
	var blocks []slack.Block
	if words != "" {
		blocks = append(blocks, slack.NewSectionBlock(ours("*Note:* "+words), nil, nil), slack.NewDividerBlock())
	}
	blocks = append(blocks, Render(c, now)...)
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: callbackReview, PrivateMetadata: memo,
		Title: literal("Review"), Close: literal("Close"),
		Blocks: slack.Blocks{BlockSet: append(blocks, c.around())},
	}
}

// around leads to the other cards.
func (c Card) around() slack.Block {
	var elements []slack.BlockElement
	turn := func(to int, label string) {
		if to >= 0 && to < parts(c.Batch) {
			elements = append(elements, slack.NewButtonBlockElement(
				actionReview.id(to), reviewing{batch: c.Batch.ID, part: to}.String(), literal(label)))
		}
	}
	turn(c.Part-1, "Calls before these")
	turn(c.Part+1, "Calls after these")
	elements = append(elements, slack.NewButtonBlockElement(string(actionNext), "next", literal("Next waiting for you")))
	return slack.NewActionBlock("", elements...)
}

// answer tells the person who pressed a button: on top of the review if that is
// where they are, in a modal if they are at their Home or in another form, and
// to them alone if it was in a message.
func (s *handler) answer(ctx context.Context, p Interaction, words string) error {
	if on := screenOf(p); on.View != "" {
		return s.reviews.reviewAgain(ctx, p, on, words)
	}
	if p.View.ID == "" {
		return s.respond.tell(ctx, whereOf(p), words)
	}
	err := s.respond.open(ctx, p, notice(words))
	if errors.Is(err, errForm) {
		s.cfg.Log.WarnContext(ctx, "somebody was not told", slog.String("user", p.User), slog.Any("error", err))
	}
	return err
}

// followed does what follows from a press that worked: in a review, it shows
// what was decided.
func (s *handler) followed(ctx context.Context, p Interaction, what action) {
	if what != actionApprove && what != actionRetract {
		return
	}
	if err := s.reviews.reviewAgain(ctx, p, screenOf(p), ""); err != nil {
		s.cfg.Log.WarnContext(ctx, "review left as it is", slog.Any("error", err)) // what was decided counts
	}
}

// redrawReview shows what a form has changed in the review under it.
func (s *reviews) redrawReview(ctx context.Context, p Interaction) {
	if err := s.reviewAgain(ctx, p, readOrigin(p).Review, ""); err != nil {
		s.cfg.Log.WarnContext(ctx, "review left as it is", slog.Any("error", err)) // what was decided counts
	}
}
