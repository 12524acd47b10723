package slackui

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// Interaction does what a person asked for.
func (s *handler) Interaction(ctx context.Context, p Interaction) (reply, error) {
	switch p.Kind {
	case KindPressed:
		return s.pressed(ctx, p)
	case KindShortcut:
		return s.shortcuts.chosen(ctx, p)
	case KindSubmitted:
		return s.submitted(ctx, p)
	case KindClosed:
		return reply{}, nil
	}
	s.cfg.Log.WarnContext(ctx, "interaction of an unknown type", slog.String("type", brief(string(p.Kind), 64)))
	return reply{}, s.respond.tell(ctx, whereOf(p), "This version of Countersign does not know what to do with that.")
}

// Foreign tells a person that what they did came from a workspace that is not
// served. Nothing of it is done.
func (s *handler) Foreign(ctx context.Context, p Interaction, refused error) (reply, error) {
	words, _ := explain(refused, about{})
	s.cfg.Log.InfoContext(ctx, "interaction refused", slog.String("user", p.User), slog.Any("reason", refused))
	switch p.Kind {
	case KindSubmitted:
		return replace(notice(words)), nil
	case KindShortcut:
		return reply{}, s.shortcuts.tellHere(ctx, p, words)
	case KindClosed:
		return reply{}, nil
	case KindPressed:
	}
	return reply{}, s.answer(ctx, p, words)
}

// Command answers a slash command.
func (s *handler) Command(ctx context.Context, c Command) (reply, error) {
	return s.commands_.Command(ctx, c)
}

// ForeignCommand refuses a slash command of a workspace that is not served.
func (s *handler) ForeignCommand(context.Context, Command) (reply, error) {
	words, _ := explain(errOtherTeam, about{})
	return ephemeral(words), nil
}

// Wait returns when nothing follows any more after what was answered.
func (s *handler) Wait(ctx context.Context) error { return s.respond.wait(ctx) }

// pressed handles a button. What the person may read about it is answered 200
// and told to them; an error is answered 500, and Slack warns them.
func (s *handler) pressed(ctx context.Context, p Interaction) (reply, error) {
	press := p.Press
	what := actionOf(press.ID)
	var about about
	var err error
	switch what {
	case actionApprove:
		var read bool
		if about, read, err = s.decisions.approve(ctx, p, press.Value); !read {
			what = actionSign // nothing is decided yet
		}
	case actionSign:
		about, err = s.decisions.openSigning(ctx, p, press.Value)
	case actionDeny:
		about, err = s.decisions.askReason(ctx, p, press.Value)
	case actionEdit:
		about, err = s.edits.openEdit(ctx, p, press.Value)
	case actionRetract:
		about, err = s.verdicts.takeBack(ctx, p, press.Value)
	case actionView:
		about, err = s.reviews.viewFull(ctx, p, press.Value)
	case actionPage:
		err = s.decisions.turnPage(ctx, p, press.Value)
	case actionReview, actionEach:
		if screenOf(p).View != "" {
			about, err = s.reviews.show(ctx, p, press.Value)
			break
		}
		about, err = s.reviews.openReview(ctx, p, press.Value)
	case actionDigest:
		about, err = s.reviews.openDigest(ctx, p, press.Value)
	case actionNext:
		err = s.reviews.next(ctx, p)
	case actionTurn:
		err = s.homeTabs.turnHome(ctx, p, press.Value)
	case actionBack:
		err = s.homeTabs.comesBack(ctx, p)
	case actionSeveral:
		err = s.sheets.approveSeveral(ctx, p)
	case actionList:
		err = s.turnList(ctx, p, press.Value)
	case actionSheet:
		err = s.sheets.pressedSheet(ctx, p, press.Value)
	case actionSheetPage:
		err = s.sheets.redrawSheet(ctx, p, press.Value)
	case actionTick:
		err = s.sheets.redrawSheet(ctx, p, "")
	case actionResult:
		err = s.results.openResult(ctx, p, press.Value)
	case actionResultPage:
		err = s.results.turnResult(ctx, p, press.Value)
	default:
		s.cfg.Log.WarnContext(ctx, "unknown action", slog.String("action", brief(press.ID, 64)))
		return reply{}, s.answer(ctx, p, "This button is from another version of Countersign and does nothing any more.")
	}
	s.verdicts.adopt(ctx, p, about)
	if err == nil {
		s.followed(ctx, p, what)
		return reply{}, nil
	}
	words, known := explain(err, about)
	if !known {
		return reply{}, err
	}
	s.verdicts.lost(ctx, p, err)
	s.cfg.Log.InfoContext(ctx, "click refused", slog.String("user", p.User),
		slog.String("action", brief(press.ID, 64)), slog.Any("reason", err))
	return reply{}, s.answer(ctx, p, words)
}

// errCounted is a person who says again what they have said.
var errCounted = errors.New("already counted")

// decide commits one person's verdict. Whatever it returns besides an error is
// for the explanation of that.
func (s *verdicts) decide(ctx context.Context, p Interaction, value string, v approvals.Verdict, reason string) (about, error) {
	at, ptr, decision, err := s.judge(ctx, p, value, v)
	if err != nil {
		return at, err
	}
	decision.Reason = reason
	again := slices.ContainsFunc(at.approval.Decisions, func(d approvals.Decision) bool {
		return d.By.User == decision.By.User && d.Verdict == v && d.Digest == decision.Digest
	})
	after, err := s.cfg.Desk.Decide(ctx, at.batch.ID, requestID(s.cfg.Team, p, ptr, v, reason), approvals.Decide{Decision: decision})
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
func (s *verdicts) takeBack(ctx context.Context, p Interaction, value string) (about, error) {
	at, ptr, decision, err := s.judge(ctx, p, value, "")
	at.deed = takingBack
	if err != nil {
		return at, err
	}
	b := at.batch.ID
	after, err := s.cfg.Desk.Retract(ctx, b, requestID(s.cfg.Team, p, ptr, "retract", ""), approvals.Retract{
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
func (s *verdicts) refresh(ctx context.Context, at *about, ptr pointer) {
	if b, err := s.cfg.Desk.Batch(ctx, ptr.Batch); err == nil {
		at.batch = b
		at.approval, _ = ptr.in(b)
	}
}

// judge finds out which call the button means and who pressed it: the decision
// that this would be, without its reason.
func (s *verdicts) judge(ctx context.Context, p Interaction, value string, v approvals.Verdict) (about, pointer, approvals.Decision, error) {
	at := about{user: p.User, now: s.cfg.Now()}
	none := approvals.Decision{}
	ptr, b, a, err := s.resolve(ctx, value)
	at.batch, at.approval, at.stop = b, a, s.cfg.stopping(b)
	if err != nil {
		return at, ptr, none, err
	}
	who, err := s.people.principal(ctx, p.User, p.UserTeam, soughtFor(b))
	if err != nil {
		return at, ptr, none, err
	}
	return at, ptr, approvals.Decision{Call: a.Call.ID, By: who, Verdict: v, Digest: ptr.Digest, At: s.cfg.Now()}, nil
}

// resolve reads what a button points at.
func (s *verdicts) resolve(ctx context.Context, value string) (pointer, approvals.Batch, approvals.Approval, error) {
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

// requestID names this press of a button, or of what sends a form, so that it counts
// once: the same press delivered again has the same name, and nothing else
// has. Everything that the press means is in it, whatever Slack left out of
// its own ids.
func requestID(team string, p Interaction, ptr pointer, v approvals.Verdict, reason string) approvals.RequestID {
	action, ts := p.Press.ID, p.Press.TS
	sum := sha256.New()
	for _, part := range []string{
		team, p.Trigger, p.User, p.Channel, p.MessageTS, p.View.ID, p.View.Hash, action, ts,
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
func (s *responder) tell(ctx context.Context, to place, words string) error {
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

// A handler does what people ask for with buttons, forms, shortcuts, mentions
// and by opening their Home.
type handler struct {
	cfg       interactConfig
	api       *api
	respond   *responder
	sheets    *Sheets
	results   *results
	commands_ *commander
	verdicts  *verdicts
	reviews   *reviews
	decisions *decisions
	edits     *edits
	listener  *listener
	shortcuts *shortcuts
	homeTabs  *homeTabs
}

func newHandler(c interactConfig, commands commandConfig, bulk sheetsConfig, a *api, cards *Cards, people *directory, homes *Homes) *handler {
	r := newResponder(a, c.Log)
	sheets := &Sheets{cfg: bulk, api: a, cards: cards, people: people, respond: r}
	v := &verdicts{cfg: c, api: a, cards: cards, people: people, respond: r}
	reviews := &reviews{cfg: c, api: a, cards: cards, people: people, respond: r, verdicts: v}
	d := &decisions{cfg: c, api: a, cards: cards, respond: r, verdicts: v, reviews: reviews}
	commander := &commander{cfg: commands, api: a, cards: cards, people: people, respond: r, sheets: sheets}
	return &handler{
		cfg: c, api: a, respond: r, sheets: sheets, commands_: commander, verdicts: v, reviews: reviews, decisions: d,
		results:   &results{cfg: bulk, api: a, cards: cards, sheets: sheets},
		edits:     &edits{cfg: c, respond: r, verdicts: v, reviews: reviews, decisions: d},
		listener:  &listener{cfg: c, api: a, cards: cards, people: people, respond: r},
		shortcuts: &shortcuts{cfg: c, people: people, respond: r, reviews: reviews},
		homeTabs:  &homeTabs{cfg: c, people: people, homes: homes, respond: r, commands_: commander},
	}
}

// verdicts commit what people decide with a button or a form.
type verdicts struct {
	cfg     interactConfig
	api     *api
	cards   *Cards
	people  *directory
	respond *responder
}

// reviews show requests in modals: their cards and their whole arguments.
type reviews struct {
	cfg      interactConfig
	api      *api
	cards    *Cards
	people   *directory
	respond  *responder
	verdicts *verdicts
}

// decisions are the forms in which people decide.
type decisions struct {
	cfg      interactConfig
	api      *api
	cards    *Cards
	respond  *responder
	verdicts *verdicts
	reviews  *reviews
}

// edits take changed arguments.
type edits struct {
	cfg       interactConfig
	respond   *responder
	verdicts  *verdicts
	reviews   *reviews
	decisions *decisions
}

// A listener takes what people write to the agents.
type listener struct {
	cfg     interactConfig
	api     *api
	cards   *Cards
	people  *directory
	respond *responder
}

// shortcuts open what waits in the thread of a message.
type shortcuts struct {
	cfg     interactConfig
	people  *directory
	respond *responder
	reviews *reviews
}

// homeTabs handle what people do on their Home.
type homeTabs struct {
	cfg       interactConfig
	people    *directory
	homes     *Homes
	respond   *responder
	commands_ *commander
}

// results say what became of sheets.
type results struct {
	cfg    sheetsConfig
	api    *api
	cards  *Cards
	sheets *Sheets
}

// An interactConfig is what interactions are handled with.
type interactConfig struct {
	Team     string
	Agent    string
	Agents   map[string]string
	MayAsk   map[string]approvals.From
	Overhear map[string]bool
	Pending  map[string]agentrun.PendingRule
	Desk     interactDesk
	Runs     interactRuns
	Runner   runner
	Lists    lists
	Tools    directoryTools
	Now      func() time.Time
	Log      *slog.Logger
}

// interactDesk is what interactions need of [approvals.Desk].
type interactDesk interface {
	Batch(ctx context.Context, id approvals.BatchID) (approvals.Batch, error)
	Call(ctx context.Context, b approvals.Batch, id approvals.ToolCallID) (approvals.ToolCall, error)
	Decide(ctx context.Context, id approvals.BatchID, r approvals.RequestID, cmd approvals.Decide) (approvals.Batch, error)
	Retract(ctx context.Context, id approvals.BatchID, r approvals.RequestID, cmd approvals.Retract) (approvals.Batch, error)
	Amend(ctx context.Context, id approvals.BatchID, r approvals.RequestID, cmd approvals.Amend) (approvals.Batch, error)
}

// interactRuns is where the requests of a thread are found.
type interactRuns interface {
	Run(ctx context.Context, id approvals.RunID) (agentrun.Run, error)
	Thread(ctx context.Context, id agentrun.ThreadID) (agentrun.Thread, error)
}

// runner takes what people ask for.
type runner interface {
	Mention(ctx context.Context, m agentrun.Mention) (agentrun.Run, error)
}
