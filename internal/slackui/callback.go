package slackui

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// payload is what we read of an interaction. It is our own type, see
// [envelope]; of the message only where it is, and of which card it says that
// it is one.
type payload struct {
	Type string `json:"type"`
	Team *struct {
		ID         string `json:"id"`
		Enterprise string `json:"enterprise_id"`
	} `json:"team"` // null where a whole organisation installed the app
	Enterprise struct {
		ID string `json:"id"`
	} `json:"enterprise"`
	User struct {
		ID   string `json:"id"`
		Team string `json:"team_id"`
	} `json:"user"`
	Trigger   string `json:"trigger_id"`
	Callback  string `json:"callback_id"` // of a shortcut
	Container struct {
		Message string `json:"message_ts"`
		Channel string `json:"channel_id"`
		Thread  string `json:"thread_ts"`
	} `json:"container"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Response string `json:"response_url"`
	Actions  []struct {
		ID    string `json:"action_id"`
		Value string `json:"value"`
		TS    string `json:"action_ts"`
	} `json:"actions"`
	Message within `json:"message"`
	View    struct {
		ID        string `json:"id"`
		Type      string `json:"type"`
		Hash      string `json:"hash"`
		Callback  string `json:"callback_id"`
		Metadata  string `json:"private_metadata"`
		Installed string `json:"app_installed_team_id"` // the team of a form is the person's own
		State     struct {
			Values states `json:"values"`
		} `json:"state"`
	} `json:"view"`
}

// place is where words for one person go.
type place struct{ channel, thread, user string }

func (p payload) place() place {
	channel := p.Container.Channel
	if channel == "" {
		channel = p.Channel.ID
	}
	return place{channel, p.Container.Thread, p.User.ID}
}

func (s *Server) interactivity(ctx context.Context, body []byte) (reply, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("payload") == "" {
		return reply{}, fmt.Errorf("%w: no payload", errBody)
	}
	var p payload
	if err := json.Unmarshal([]byte(form.Get("payload")), &p); err != nil {
		return reply{}, fmt.Errorf("%w: payload: %w", errBody, err)
	}
	switch p.Type {
	case "":
		return reply{}, fmt.Errorf("%w: a payload without a type", errBody)
	case "block_actions":
		return s.pressed(ctx, p)
	case "message_action":
		return s.chosen(ctx, p)
	case "view_submission":
		return s.submitted(ctx, p)
	case "view_closed":
		return reply{}, nil
	}
	s.cfg.Log.WarnContext(ctx, "interaction of an unknown type", slog.String("type", brief(p.Type, 64)))
	return reply{}, s.tell(ctx, p.place(), "This version of Countersign does not know what to do with that.")
}

// pressed handles a button. What the person may read about it is answered 200
// and told to them; an error is answered 500, and Slack warns them.
func (s *Server) pressed(ctx context.Context, p payload) (reply, error) {
	if len(p.Actions) == 0 {
		return reply{}, fmt.Errorf("%w: an action without an action", errBody)
	}
	press := p.Actions[0]
	action := actionOf(press.ID)
	var about about
	var err error
	switch action {
	case actionApprove:
		var read bool
		if about, read, err = s.approve(ctx, p, press.Value); !read {
			action = actionSign // nothing is decided yet
		}
	case actionSign:
		about, err = s.openSigning(ctx, p, press.Value)
	case actionDeny:
		about, err = s.askReason(ctx, p, press.Value)
	case actionEdit:
		about, err = s.openEdit(ctx, p, press.Value)
	case actionRetract:
		about, err = s.takeBack(ctx, p, press.Value)
	case actionView:
		about, err = s.viewFull(ctx, p, press.Value)
	case actionPage:
		err = s.turnPage(ctx, p, press.Value)
	case actionReview, actionEach:
		if p.screen().View != "" {
			about, err = s.show(ctx, p, press.Value)
			break
		}
		about, err = s.openReview(ctx, p, press.Value)
	case actionDigest:
		about, err = s.openDigest(ctx, p, press.Value)
	case actionNext:
		err = s.next(ctx, p)
	case actionTurn:
		err = s.turnHome(ctx, p, press.Value)
	case actionBack:
		err = s.comesBack(ctx, p)
	case actionSeveral:
		err = s.approveSeveral(ctx, p)
	case actionList:
		err = s.turnList(ctx, p, press.Value)
	case actionSheet:
		err = s.pressedSheet(ctx, p, press.Value)
	case actionSheetPage:
		err = s.redrawSheet(ctx, p, press.Value)
	case actionTick:
		err = s.redrawSheet(ctx, p, "")
	case actionResult:
		err = s.openResult(ctx, p, press.Value)
	case actionResultPage:
		err = s.turnResult(ctx, p, press.Value)
	default:
		s.cfg.Log.WarnContext(ctx, "unknown action", slog.String("action", brief(press.ID, 64)))
		return reply{}, s.answer(ctx, p, "This button is from another version of Countersign and does nothing any more.")
	}
	s.adopt(ctx, p, about)
	if err == nil {
		s.followed(ctx, p, action)
		return reply{}, nil
	}
	words, known := explain(err, about)
	if !known {
		return reply{}, err
	}
	s.lost(ctx, p, err)
	s.cfg.Log.InfoContext(ctx, "click refused", slog.String("user", p.User.ID),
		slog.String("action", brief(press.ID, 64)), slog.Any("reason", err))
	return reply{}, s.answer(ctx, p, words)
}

// errCounted is a person who says again what they have said.
var errCounted = errors.New("already counted")

// decide commits one person's verdict. Whatever it returns besides an error is
// for the explanation of that.
func (s *Server) decide(ctx context.Context, p payload, value string, v approvals.Verdict, reason string) (about, error) {
	at, ptr, decision, err := s.judge(ctx, p, value, v)
	if err != nil {
		return at, err
	}
	decision.Reason = reason
	again := slices.ContainsFunc(at.approval.Decisions, func(d approvals.Decision) bool {
		return d.By.User == decision.By.User && d.Verdict == v && d.Digest == decision.Digest
	})
	after, err := s.cfg.Desk.Decide(ctx, at.batch.ID, s.request(p, ptr, v, reason), approvals.Decide{Decision: decision})
	if err != nil {
		b := at.batch.ID
		s.refresh(ctx, &at, ptr)
		return at, fmt.Errorf("decide call %s of batch %s: %w", decision.Call, b, err)
	}
	at.batch = after
	if again {
		return at, errCounted
	}
	s.logDecision(ctx, ptr, after, decision)
	return at, nil
}

// takeBack commits that a person's own decision counts no more.
func (s *Server) takeBack(ctx context.Context, p payload, value string) (about, error) {
	at, ptr, decision, err := s.judge(ctx, p, value, "")
	at.deed = takingBack
	if err != nil {
		return at, err
	}
	b := at.batch.ID
	after, err := s.cfg.Desk.Retract(ctx, b, s.request(p, ptr, "retract", ""), approvals.Retract{
		Call: decision.Call, By: decision.By, At: decision.At,
	})
	if err != nil {
		s.refresh(ctx, &at, ptr)
		return at, fmt.Errorf("take back the decision on call %s of batch %s: %w", decision.Call, b, err)
	}
	s.logRetraction(ctx, ptr, at, after)
	return at, nil
}

// refresh reads again what a refusal is about: others may have moved it.
func (s *Server) refresh(ctx context.Context, at *about, ptr pointer) {
	if b, err := s.cfg.Desk.Batch(ctx, ptr.Batch); err == nil {
		at.batch = b
		at.approval, _ = ptr.in(b)
	}
}

// judge finds out which call the button means and who pressed it: the decision
// that this would be, without its reason.
func (s *Server) judge(ctx context.Context, p payload, value string, v approvals.Verdict) (about, pointer, approvals.Decision, error) {
	at := about{user: p.User.ID, now: s.cfg.Now()}
	none := approvals.Decision{}
	if err := s.sameTeam(p); err != nil {
		return at, pointer{}, none, err
	}
	ptr, b, a, err := s.resolve(ctx, value)
	at.batch, at.approval, at.stop = b, a, s.cfg.stopping(b)
	if err != nil {
		return at, ptr, none, err
	}
	who, err := s.people.principal(ctx, p.User.ID, p.User.Team, soughtFor(b))
	if err != nil {
		return at, ptr, none, err
	}
	return at, ptr, approvals.Decision{Call: a.Call.ID, By: who, Verdict: v, Digest: ptr.Digest, At: s.cfg.Now()}, nil
}

// resolve reads what a button points at.
func (s *Server) resolve(ctx context.Context, value string) (pointer, approvals.Batch, approvals.Approval, error) {
	ptr, err := parsePointer(value)
	if err != nil {
		return ptr, approvals.Batch{}, approvals.Approval{}, err
	}
	b, err := s.cfg.Desk.Batch(ctx, ptr.Batch)
	if err != nil {
		return ptr, b, approvals.Approval{}, fmt.Errorf("load batch %s: %w", ptr.Batch, err)
	}
	a, err := ptr.in(b)
	return ptr, b, a, err
}

// sameTeam refuses payloads that are not of our installation: not of our
// workspace, and not of the organisation that it belongs to. Which request is
// meant is never read from the team.
func (s *Server) sameTeam(p payload) error {
	team, enterprise := "", p.Enterprise.ID
	if p.Team != nil {
		team = p.Team.ID
		enterprise = cmp.Or(enterprise, p.Team.Enterprise)
	}
	switch {
	case s.cfg.serves(team, enterprise), p.View.Installed == s.cfg.Team:
		return nil
	case team == "":
		return errNoTeam
	}
	return errOtherTeam
}

// request names this press of a button, or of what sends a form, so that it counts
// once: the same press delivered again has the same name, and nothing else
// has. Everything that the press means is in it, whatever Slack left out of
// its own ids.
func (s *Server) request(p payload, ptr pointer, v approvals.Verdict, reason string) approvals.RequestID {
	action, ts := "", ""
	if len(p.Actions) > 0 {
		action, ts = p.Actions[0].ID, p.Actions[0].TS
	}
	at := p.place()
	sum := sha256.New()
	for _, part := range []string{
		s.cfg.Team, p.Trigger, p.User.ID, at.channel, p.Container.Message, p.View.ID, p.View.Hash, action, ts,
		string(ptr.Batch), string(ptr.Call), ptr.Digest.String(), string(v), reason,
	} {
		// With its length before it, no part can pass for the end of another.
		sum.Write(fmt.Appendf(nil, "%d:%s", len(part), part))
	}
	return approvals.RequestID("slack-" + hex.EncodeToString(sum.Sum(nil)))
}

// tell whispers words to one person, after the answer. What can be told to
// nobody is dropped. The error is that they cannot be told now: then the
// request must not be answered 200, so that Slack shows its warning or
// delivers again, and nobody is left without a word.
func (s *Server) tell(ctx context.Context, to place, words string) error {
	if !idForm.MatchString(to.channel) || !idForm.MatchString(to.user) {
		return nil
	}
	if !validTS(to.thread) {
		to.thread = ""
	}
	return s.after(ctx, s.words, "tell a person", func(ctx context.Context) error {
		return s.api.whisper(ctx, to.channel, to.thread, to.user, message{text: words})
	})
}

const maxReason = 1000

// trimReason is a reason as it is stored: without blanks around it, at most
// maxReason runes.
func trimReason(s string) string {
	s, _ = cut(strings.ToValidUTF8(strings.TrimSpace(s), "\uFFFD"), maxReason)
	return s
}
