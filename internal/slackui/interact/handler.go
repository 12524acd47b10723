package interact

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/bulk"
	"github.com/countersign/countersign/internal/slackui/command"
	"github.com/countersign/countersign/internal/slackui/delivery"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/home"
	"github.com/countersign/countersign/internal/slackui/respond"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/countersign/countersign/internal/slackui/toolcards"
)

// A Handler does what people ask for with buttons, forms, shortcuts, mentions
// and by opening their Home.
type Handler struct {
	cfg       Config
	api       *slackapi.Client
	respond   *respond.Responder
	Sheets    *bulk.Service
	Results   *bulk.Results
	Slash     *command.Handler
	verdicts  *verdicts
	reviews   *reviews
	decisions *decisions
	edits     *edits
	listener  *listener
	shortcuts *shortcuts
	homeTabs  *homeTabs
}

// New returns the handler of interactions, with what answers commands and makes sheets.
func New(c Config, commands command.Config, sheetConfig bulk.Config, a *slackapi.Client, cards *delivery.Cards, people *directory.Directory, homes *home.Homes) *Handler {
	r := respond.New(a, c.Log)
	sheets := &bulk.Service{Cfg: sheetConfig, API: a, Placements: cards.Placements, People: people, Respond: r}
	v := &verdicts{cfg: c, api: a, placements: cards.Placements, people: people, deciders: directory.NewDeciders(people), respond: r}
	reviews := &reviews{cfg: c, api: a, cards: cards, placements: cards.Placements, digests: cards.Digests, people: people, respond: r, verdicts: v}
	d := &decisions{cfg: c, api: a, cards: cards, placements: cards.Placements, people: people, respond: r, verdicts: v, reviews: reviews}
	commander := &command.Handler{Cfg: commands, Placements: cards.Placements, People: people, Respond: r, Sheets: sheets}
	return &Handler{
		cfg: c, api: a, respond: r, Sheets: sheets, Slash: commander, verdicts: v, reviews: reviews, decisions: d,
		Results:   &bulk.Results{Cfg: sheetConfig, API: a, Placements: cards.Placements, Sheets: sheets},
		edits:     &edits{cfg: c, people: people, respond: r, verdicts: v, reviews: reviews, decisions: d},
		listener:  &listener{cfg: c, api: a, placements: cards.Placements, people: people, respond: r},
		shortcuts: &shortcuts{cfg: c, people: people, respond: r, reviews: reviews},
		homeTabs:  &homeTabs{cfg: c, people: people, homes: homes, respond: r, slash: commander},
	}
}

// verdicts commit what people decide with a button or a form.
type verdicts struct {
	cfg        Config
	api        *slackapi.Client
	placements *delivery.Placements
	people     *directory.Directory
	deciders   *directory.Deciders
	respond    *respond.Responder
}

// reviews show requests in modals: their cards and their whole arguments.
type reviews struct {
	cfg        Config
	api        *slackapi.Client
	cards      *delivery.Cards
	placements *delivery.Placements
	digests    *delivery.Digests
	people     *directory.Directory
	respond    *respond.Responder
	verdicts   *verdicts
}

// decisions are the forms in which people decide.
type decisions struct {
	cfg        Config
	api        *slackapi.Client
	cards      *delivery.Cards
	placements *delivery.Placements
	people     *directory.Directory
	respond    *respond.Responder
	verdicts   *verdicts
	reviews    *reviews
}

// edits take changed arguments.
type edits struct {
	cfg       Config
	people    *directory.Directory
	respond   *respond.Responder
	verdicts  *verdicts
	reviews   *reviews
	decisions *decisions
}

// A listener takes what people write to the agents.
type listener struct {
	cfg        Config
	api        *slackapi.Client
	placements *delivery.Placements
	people     *directory.Directory
	respond    *respond.Responder
}

// shortcuts open what waits in the thread of a message.
type shortcuts struct {
	cfg     Config
	people  *directory.Directory
	respond *respond.Responder
	reviews *reviews
}

// homeTabs handle what people do on their Home.
type homeTabs struct {
	cfg     Config
	people  *directory.Directory
	homes   *home.Homes
	respond *respond.Responder
	slash   *command.Handler
}

// A Config is what interactions are handled with. Config of package slackui says what each
// field means.
type Config struct {
	Team     string
	Agent    string
	Agents   map[string]string
	MayAsk   map[string]approvals.From
	Overhear map[string]bool
	Pending  map[string]agentrun.PendingRule
	Desk     Desk
	Runs     Runs
	Runner   Runner
	Lists    directory.Lists
	Tools    directory.Tools
	// ToolCards take what owners decide about MCP servers; nil if there are none.
	ToolCards *toolcards.Cards

	Now func() time.Time
	Log *slog.Logger
}

// Desk is what interactions need of [approvals.Desk].
type Desk interface {
	Batch(ctx context.Context, id approvals.BatchID) (approvals.Batch, error)
	Case(ctx context.Context, b approvals.Batch, call approvals.ToolCallID, shown approvals.Digest, who approvals.Resolver) (approvals.Case, error)
	DecideCase(ctx context.Context, c approvals.Case, r approvals.RequestID, v approvals.Verdict, reason string) (approvals.Case, error)
	DecideAll(ctx context.Context, id approvals.BatchID, r approvals.RequestID, cmds []approvals.Decide) (approvals.Batch, []approvals.Skipped, error)
	DecidedAll(ctx context.Context, id approvals.BatchID, r approvals.RequestID, cmds []approvals.Decide) (bool, error)
	RetractCase(ctx context.Context, c approvals.Case, r approvals.RequestID) (approvals.Case, error)
	AmendCase(ctx context.Context, c approvals.Case, r approvals.RequestID, args json.RawMessage) (approvals.Case, error)
	Confirm(ctx context.Context, b approvals.Batch) error
}

// Runs is where the requests of a thread are found.
type Runs interface {
	Run(ctx context.Context, id approvals.RunID) (agentrun.Run, error)
	Thread(ctx context.Context, id agentrun.ThreadID) (agentrun.Thread, error)
}

// Runner takes what people ask for.
type Runner interface {
	Mention(ctx context.Context, m agentrun.Mention) (agentrun.Run, error)
}
