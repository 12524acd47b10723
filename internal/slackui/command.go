package slackui

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
)

const (
	listLooks = 100 // open batches that a list looks at
	listShows = 10  // calls that it shows
)

// commands answers a slash command, to the person alone.
func (s *Server) commands(ctx context.Context, body []byte) (reply, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("command") == "" || !idForm.MatchString(form.Get("user_id")) {
		return reply{}, fmt.Errorf("%w: not a slash command", errBody)
	}
	if !s.cfg.serves(form.Get("team_id"), form.Get("enterprise_id")) {
		words, _ := explain(errOtherTeam, about{})
		return ephemeral(words), nil
	}
	words := strings.Fields(unescape(form.Get("text")))
	if len(words) == 0 {
		return ephemeral(help(form.Get("command"))), nil
	}
	switch strings.ToLower(words[0]) {
	case "help":
		return ephemeral(help(form.Get("command"))), nil
	case "list":
		if len(words) > 1 {
			return ephemeral("`list` takes nothing after it.\n" + help(form.Get("command"))), nil
		}
		return s.list(ctx, form.Get("user_id"), form.Get("channel_id"))
	case "away":
		_, rest, _ := cutWord(form.Get("text"))
		return s.away(ctx, form, rest)
	case "back":
		if len(words) > 1 {
			return ephemeral("`back` takes nothing after it.\n" + help(form.Get("command"))), nil
		}
		return s.back(ctx, approvals.UserID(form.Get("user_id")))
	}
	odd := slack.NewRichTextBlock("", line(say("There is no command "), styled(brief(words[0], 40), code), say(".")))
	return answered("There is no such command. "+help(form.Get("command")),
		odd, slack.NewSectionBlock(ours(help(form.Get("command"))), nil, nil)), nil
}

// cutWord returns the first word and what is behind it.
func cutWord(s string) (word, rest string, more bool) {
	s = strings.TrimSpace(s)
	i := strings.IndexFunc(s, unicode.IsSpace)
	if i < 0 {
		return s, "", false
	}
	return s[:i], strings.TrimSpace(s[i:]), true
}

func ephemeral(mrkdwn string) reply {
	return answered(mrkdwn, slack.NewSectionBlock(ours(mrkdwn), nil, nil))
}

func answered(text string, blocks ...slack.Block) reply {
	return reply{map[string]any{"response_type": "ephemeral", "text": text, "blocks": blocks}}
}

// ourName is how the command is called, if that is a name of a command.
func ourName(command string) string {
	if strings.Trim(command, "/abcdefghijklmnopqrstuvwxyz0123456789_-") != "" || command == "" {
		return "/countersign"
	}
	return command
}

func help(command string) string {
	command = ourName(command)
	return "`" + command + " list` shows what waits for signatures in this channel, and what waits for you anywhere.\n" +
		"`" + command + " away until friday, ask @ann` says that you are away, and who is asked in your place; `" + command + " away` shows it, and `" + command + " back` ends it.\n" +
		"`" + command + " help` shows this.\n" +
		"To ask for something, mention me in a message. To sign or to deny, use the buttons on the card."
}

// waiting is one open call, as the list shows it.
type waiting struct {
	batch approvals.Batch
	index int
	mine  bool
}

// list answers with what is open in the channel and what waits for the person
// anywhere, the oldest first.
func (s *Server) list(ctx context.Context, user, channel string) (reply, error) {
	batches, err := s.cfg.Open.OpenBatches(ctx, listLooks+1)
	if err != nil {
		return reply{}, fmt.Errorf("list open batches: %w", err)
	}
	more := len(batches) > listLooks
	batches = batches[:min(len(batches), listLooks)]
	who, lookup := s.people.principal(ctx, user, "", soughtFor(batches...))
	if lookup != nil && !errors.Is(lookup, errLookup) {
		words, _ := explain(lookup, about{})
		return ephemeral(words), nil
	}
	who.User = approvals.UserID(user)
	now := s.cfg.Now()
	var rows []waiting
	for _, b := range batches {
		for i, a := range b.Approvals {
			if shown(a, now) != approvals.Pending {
				continue
			}
			if mine := b.Helps(a, who); mine || b.Channel == channel {
				rows = append(rows, waiting{batch: b, index: i, mine: mine})
			}
		}
	}
	return s.answerList(ctx, rows, lookup, more), nil
}

func (s *Server) answerList(ctx context.Context, rows []waiting, lookup error, more bool) reply {
	if len(rows) == 0 && lookup == nil && !more {
		return ephemeral("Nothing waits for signatures in this channel, and nothing waits for you anywhere.")
	}
	now := s.cfg.Now()
	paras := []para{line(styled(count(len(rows), "call")+" waiting, the oldest first", bold))}
	for i, r := range rows {
		if i == listShows {
			paras = append(paras, line(say("and "+number(len(rows)-i)+" more. Decide these first, then list again.")))
			break
		}
		paras = append(paras, line(s.row(ctx, r, now)...))
	}
	if more {
		paras = append(paras, line(say(fmt.Sprintf("Only the %d oldest requests were looked at; there are more.", listLooks))))
	}
	if lookup != nil {
		paras = append(paras, line(say("Slack did not say which groups you are in, so what waits for your groups elsewhere may be missing. Try again in a moment.")))
	}
	return answered(count(len(rows), "call")+" waiting for signatures.", richText(paras...))
}

func (s *Server) row(ctx context.Context, r waiting, now time.Time) []span {
	a := r.batch.Approvals[r.index]
	spans := []span{say("• "), styled(brief(a.Call.Name, 60), code), say(", asked by "), named(r.batch.Requester), say(" " + ago(now.Sub(r.batch.OpenedAt)))}
	if r.mine {
		spans = append(spans, styled(", waits for you", bold))
	}
	at, _ := s.cards.anchor(ctx, r.batch, r.index)
	if link := s.api.permalink(ctx, at.Channel, at.TS, at.Thread); link != "" {
		return append(spans, say(" — "), slack.NewRichTextSectionLinkElement(link, "open the card", nil))
	}
	return append(spans, say(" — its card is not drawn yet"))
}

// ago says roughly how long something waits.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return count(int(d.Minutes()), "minute") + " ago"
	case d < 48*time.Hour:
		return count(int(d.Hours()), "hour") + " ago"
	}
	return count(int(d.Hours()/24), "day") + " ago"
}
