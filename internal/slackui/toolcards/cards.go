package toolcards

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// Cards draw the reviews, and take what people decide on them.
type Cards struct {
	Reviews Reviews
	API     *slackapi.Client
	Memos   memo.Store
	People  *directory.Directory
	// Owners are who decides, by agent, and Channels where they are asked.
	Owners   map[string]approvals.From
	Channels map[string]string
	Now      func() time.Time
	Log      *slog.Logger
}

// A place is where the card of a server is, and what it shows. An ended review
// leaves its message as a record: the next one is a new message.
type place struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
	Sum     string `json:"sum"`
	Ended   bool   `json:"ended,omitempty"`
}

// Reconcile draws the review with this id. The due index calls it.
func (c *Cards) Reconcile(ctx context.Context, id string) error {
	notes := memo.Notes[place]{Memos: c.Memos, Surface: "toolcard", Now: c.Now, Outdate: func(p *place) { p.Sum, p.Ended = "", false }, Due: "toolchanges"}
	var version int64
	err := notes.Reconcile(ctx, id, func(ctx context.Context, h *memo.Claim[place]) (int64, error) {
		r, err := c.Reviews.Review(ctx, id)
		if err != nil {
			return 0, err
		}
		version = r.Version
		return 0, c.draw(ctx, h, r)
	})
	if err != nil {
		return err
	}
	return c.Reviews.Drawn(ctx, id, version)
}

func (c *Cards) draw(ctx context.Context, h *memo.Claim[place], r Review) error {
	channel := c.Channels[r.Agent]
	if channel == "" {
		c.Log.WarnContext(ctx, "nobody is asked about the tools of an MCP server, because its agent has no channel", slog.String("agent", r.Agent), slog.String("server", r.Server))
		return nil
	}
	m := message(r, c.Owners[r.Agent])
	at, sum := h.Body, m.Sum()
	if at.Channel == channel && at.Sum == sum {
		return nil
	}
	next := place{Channel: channel, TS: at.TS, Sum: sum, Ended: r.Ended != ""}
	if at.TS != "" && at.Channel == channel && !at.Ended {
		err := c.API.Update(ctx, channel, at.TS, m)
		if err == nil || !slackapi.HasCode(err, slackapi.Gone...) {
			return saved(ctx, h, next, err)
		}
	}
	if r.Ended != "" {
		return nil // there is nothing to ask, and no message that asks
	}
	ts, err := c.API.Post(ctx, channel, "", m)
	next.TS = ts
	return saved(ctx, h, next, err)
}

func saved(ctx context.Context, h *memo.Claim[place], next place, err error) error {
	if err != nil {
		return err
	}
	return h.Save(ctx, func(p *place) { *p = next })
}

// Press takes the press of a button by a person. What it returns are words for them;
// none if they have decided, and an error if that is not known.
func (c *Cards) Press(ctx context.Context, who directory.Who, value string, accept bool) (blockkit.Mrkdwn, error) {
	b, err := parse(value)
	if err != nil {
		return blockkit.Mrkdwn{}, err
	}
	r, err := c.Reviews.Review(ctx, b.id)
	if errors.Is(err, approvals.ErrNotFound) {
		return blockkit.Ours(toldGone), nil
	}
	if err != nil {
		return blockkit.Mrkdwn{}, err
	}
	owners := c.Owners[r.Agent]
	by, err := c.People.Principal(ctx, who.User, who.Team, directory.Sought{Groups: owners.Groups, Named: owners.Users})
	if err != nil {
		return blockkit.Mrkdwn{}, err
	}
	r, err = c.Reviews.Decide(ctx, b.id, b.digest, accept, by)
	if err != nil {
		c.Log.InfoContext(ctx, "decision about tools refused", slog.String("user", who.User), slog.Any("reason", err))
	}
	return c.refusal(r, err)
}

// refusal is what someone reads who did not decide.
func (c *Cards) refusal(r Review, err error) (blockkit.Mrkdwn, error) {
	switch {
	case errors.Is(err, approvals.ErrSettled) && r.Ended == Accepted:
		return blockkit.Ours(toldAccepted, decider(r), blockkit.When(r.At)), nil
	case errors.Is(err, approvals.ErrSettled):
		return blockkit.Ours(toldBlocked, decider(r), blockkit.When(r.At)), nil
	case errors.Is(err, approvals.ErrNotEligible):
		return blockkit.Ours(toldNotOwner), nil
	case errors.Is(err, approvals.ErrStale):
		return blockkit.Ours(toldStale), nil
	case errors.Is(err, approvals.ErrRefused):
		return blockkit.Ours(toldLocked), nil
	case errors.Is(err, approvals.ErrInvalid):
		return blockkit.Ours(toldMisfit), nil
	case errors.Is(err, approvals.ErrNotFound):
		return blockkit.Ours(toldGone), nil
	case errors.Is(err, approvals.ErrConflict):
		return blockkit.Ours(toldBusy), nil
	}
	return blockkit.Mrkdwn{}, err
}

func decider(r Review) blockkit.Mrkdwn {
	if r.By == "" {
		return blockkit.Ours(sayAnOperator)
	}
	return blockkit.Person(r.By)
}
