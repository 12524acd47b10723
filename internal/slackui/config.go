package slackui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/bulk"
	"github.com/countersign/countersign/internal/slackui/chats"
	"github.com/countersign/countersign/internal/slackui/command"
	"github.com/countersign/countersign/internal/slackui/delivery"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/home"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/interact"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/reply"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/countersign/countersign/internal/slackui/toolcards"
)

// Config is what [New] works with. The fields without a default are required.
type Config struct {
	// The secrets are functions, so that a printed Config does not tell them.
	BotToken      func() string
	SigningSecret func() string
	// AppToken, if it is set, opens connections in Socket Mode; then the
	// signing secret is not needed.
	AppToken   func() string
	APIURL     string            // of the Web API; default Slack's own
	Transport  http.RoundTripper // of the calls of the Web API; nil is that of net/http
	Team       string            // the one workspace, or organization, that installed the app
	Enterprise string            // the organization, if there is one: its people count as colleagues

	// Answered is told of what arrives in Socket Mode, as [inbound.SocketConfig] says.
	Answered func(path string, code int, took time.Duration)

	Agent  string            // who answers a mention where Agents names nobody; may be empty
	Agents map[string]string // who answers it instead, by channel id

	// MayAsk is whose mention starts an agent, by the agent's name: an agent
	// that is not in it answers every full member.
	MayAsk map[string]approvals.From

	// Overhear are the agents that take a reply without a mention as one, in
	// threads that they are in already.
	Overhear map[string]bool

	// Pending is what a new message does while calls of its thread wait, by the
	// agent's name: their requesters read how to stop their own request.
	Pending map[string]agentrun.PendingRule

	Desk   Desk
	Runs   interact.Runs
	Runner interact.Runner
	Memos  memo.Store
	Lists  directory.Lists // may be nil: then nothing is listed for anybody
	Tools  directory.Tools // may be nil: then every approval is confirmed, and nothing can be edited
	// Fulfillers are the agents that may give the results of external calls; may be nil.
	Fulfillers blockkit.Fulfillers
	Bulk       bulk.Bulk // may be nil: then nobody approves many calls at once
	Health     command.Health

	// ChatPage returns the address at which the person of a run opens its conversation
	// on the web, empty if there is none; may be nil.
	ChatPage func(run agentrun.Run) string

	// ToolReviews are what the owners of agents are asked about MCP servers, may be
	// nil. Owners are who decides, by agent, and ToolChannels where they are asked.
	ToolReviews  toolcards.Reviews
	Owners       map[string]approvals.From
	ToolChannels map[string]string

	// Membership is how old a looked-up membership or account may be when a
	// person decides; default 60 s.
	Membership time.Duration

	// CardsPerMinute is how many new cards a channel gets in any minute,
	// MessagesPerMinute how many new messages one person gets; default 10 each.
	// What is more goes into one digest.
	CardsPerMinute    int
	MessagesPerMinute int

	// Attend is called for each authentic request of Slack, and over once its answer is
	// made; may be nil.
	Attend func() (over func())

	// Awaits reports whether people wait for what is done in the context. Where Slack
	// limits how often the app posts, such messages go first. It may be nil.
	Awaits func(ctx context.Context) bool

	// Background reports whether nobody waits for an answer in the context: it is that of
	// due work. While Slack does not answer a lookup, it is repeated less often then. It
	// may be nil.
	Background func(ctx context.Context) bool

	// Lease is after how long another process draws what a process that died was drawing
	// in the threads of Slack; 0 and more than eight seconds are eight seconds.
	Lease time.Duration

	Now func() time.Time
	Log *slog.Logger
}

// Desk is what Slack needs of [approvals.Desk]. Arguments are loaded by the
// readers of the directory only.
type Desk interface {
	interact.Desk
	directory.Calls
}

const (
	defaultAPIURL     = "https://slack.com/api/"
	defaultMembership = time.Minute
)

func (c Config) validate() error {
	var problems []error
	missing := func(absent bool, name string) {
		if absent {
			problems = append(problems, fmt.Errorf("slackui: %s is missing", name))
		}
	}
	missing(c.BotToken == nil || c.BotToken() == "", "the bot token")
	missing(!c.overSocket() && !c.signed(), "the signing secret")
	missing(c.Desk == nil, "the desk")
	missing(c.Runs == nil, "the store of runs")
	missing(c.Runner == nil, "the runner")
	missing(c.Memos == nil, "the store of memos")
	missing(c.Now == nil, "the clock")
	missing(c.Log == nil, "the log")
	ofOrg := strings.HasPrefix(c.Team, "E") && c.Team == c.Enterprise
	if !blockkit.IDForm.MatchString(c.Team) || (!strings.HasPrefix(c.Team, "T") && !ofOrg) {
		problems = append(problems, fmt.Errorf("slackui: the team must be a workspace id such as T0123456789, or the organization's, not %q", c.Team))
	}
	if c.Enterprise != "" && (!blockkit.IDForm.MatchString(c.Enterprise) || !strings.HasPrefix(c.Enterprise, "E")) {
		problems = append(problems, fmt.Errorf("slackui: the organization must be an id such as E0123456789, not %q", c.Enterprise))
	}
	for channel, agent := range c.Agents {
		if !blockkit.IDForm.MatchString(channel) || agent == "" {
			problems = append(problems, fmt.Errorf("slackui: agents must map a channel id to an agent, not %q to %q", channel, agent))
		}
	}
	answers := func(agent string) bool {
		return agent != "" && (agent == c.Agent || slices.Contains(slices.Collect(maps.Values(c.Agents)), agent))
	}
	for agent, from := range c.MayAsk {
		if !answers(agent) {
			problems = append(problems, fmt.Errorf("slackui: MayAsk names the agent %q, which answers no mentions", agent))
		}
		if len(from.Users) == 0 && len(from.Groups) == 0 {
			problems = append(problems, fmt.Errorf("slackui: MayAsk lets nobody ask the agent %q", agent))
		}
	}
	for _, agent := range slices.Sorted(maps.Keys(c.Overhear)) {
		if !answers(agent) {
			problems = append(problems, fmt.Errorf("slackui: Overhear names the agent %q, which answers no mentions", agent))
		}
	}
	if u, err := url.Parse(c.APIURL); c.APIURL != "" && (err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http")) {
		problems = append(problems, errors.New("slackui: the API URL must be an absolute http or https URL"))
	}
	if c.Membership < 0 {
		problems = append(problems, errors.New("slackui: the age of a membership cannot be negative"))
	}
	if c.CardsPerMinute < 0 || c.MessagesPerMinute < 0 {
		problems = append(problems, errors.New("slackui: the numbers of messages per minute cannot be negative"))
	}
	return errors.Join(problems...)
}

// overSocket reports whether Slack is received in Socket Mode.
func (c Config) overSocket() bool { return c.AppToken != nil && c.AppToken() != "" }

// signed reports whether the signature of a request can be checked.
func (c Config) signed() bool { return c.SigningSecret != nil && c.SigningSecret() != "" }

// Health is what the command status asks of the rest of the bot.
type Health = command.Health

// UI is everything that Countersign is in one Slack workspace.
type UI struct {
	Server  *inbound.HTTP
	Socket  *inbound.Socket // nil unless there is an app-level token
	Cards   *delivery.Cards
	Replies *reply.Replies
	Notices *delivery.Notices
	Homes   *home.Homes
	Answers *bulk.Answers

	ToolCards *toolcards.Cards // nil without reviews

	people  *directory.Directory
	agentIn func(channel string) string
}

// New returns the surfaces, or every problem of the configuration at once. It
// makes no call to Slack.
func New(c Config) (*UI, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.APIURL == "" {
		c.APIURL = defaultAPIURL
	}
	if c.Lists == nil {
		c.Lists = directory.NoLists{}
	}
	if c.Membership == 0 {
		c.Membership = defaultMembership
	}
	api := slackapi.New(c.BotToken, c.APIURL, c.Transport)
	api.Now, api.Awaits, api.Background, api.Log = c.Now, c.Awaits, c.Background, c.Log
	people := directory.New(directory.Directory{
		API: api, Memos: c.Memos, Team: c.Team, Enterprise: c.Enterprise, Age: c.Membership, Ahead: c.Membership / 4, Now: c.Now,
	}, c.Desk)
	budget := &delivery.Budget{
		Memos: c.Memos, Team: c.Team, Cards: cmp.Or(c.CardsPerMinute, delivery.DefaultPerMinute), Messages: cmp.Or(c.MessagesPerMinute, delivery.DefaultPerMinute),
		Now: c.Now, Log: c.Log,
	}
	digests := &delivery.Digests{Desk: c.Desk, Memos: c.Memos, API: api, People: people, Team: c.Team, Now: c.Now, Lease: c.Lease, Several: c.Bulk != nil}
	placements := &delivery.Placements{Memos: c.Memos, API: api, Digests: digests, Now: c.Now, Lease: c.Lease}
	status := &slackapi.StatusLine{API: api, Now: c.Now, Log: c.Log}
	replies := &reply.Replies{Desk: c.Desk, Runs: c.Runs, API: api, Memos: c.Memos, Cards: placements, Now: c.Now, Lease: c.Lease, Status: status, Fulfillers: c.Fulfillers, Page: c.ChatPage}
	notices := &delivery.Notices{
		Desk: c.Desk, Runs: c.Runs, API: api, Memos: c.Memos, People: people, Placements: placements, Budget: budget, Now: c.Now, Log: c.Log,
	}
	cards := &delivery.Cards{
		Desk: c.Desk, Runs: c.Runs, API: api, Tools: c.Tools, Fulfillers: c.Fulfillers, People: people, Now: c.Now, Log: c.Log,
		Placements: placements, Budget: budget, Digests: digests, Status: status,
		Chats: &chats.Chats{Memos: c.Memos, API: api, Page: c.ChatPage, Now: c.Now, Lease: c.Lease},
		Asked: notices.Audience, Tell: notices.Unasked, RefreshReply: replies.Refresh,
	}
	homes := &home.Homes{
		Desk: c.Desk, Lists: c.Lists, API: api, Memos: c.Memos, People: people, Now: c.Now, Log: c.Log,
		Several: c.Bulk != nil,
	}
	var tools *toolcards.Cards
	if c.ToolReviews != nil {
		tools = &toolcards.Cards{
			Reviews: c.ToolReviews, API: api, Memos: c.Memos, People: people, Owners: c.Owners, Channels: c.ToolChannels, Now: c.Now, Log: c.Log,
		}
	}
	interactions := interact.Config{
		Team: c.Team, Agent: c.Agent, Agents: c.Agents, MayAsk: c.MayAsk, Overhear: c.Overhear, Pending: c.Pending,
		Desk: c.Desk, Runs: c.Runs, Runner: c.Runner, Lists: c.Lists, Tools: c.Tools, ToolCards: tools, Now: c.Now, Log: c.Log,
	}
	h := interact.New(interactions, command.Config{Team: c.Team, Lists: c.Lists, Health: c.Health, Now: c.Now, Log: c.Log},
		bulk.Config{Team: c.Team, Desk: c.Desk, Lists: c.Lists, Tools: c.Tools, Bulk: c.Bulk, Now: c.Now, Log: c.Log},
		api, cards, people, homes)
	ui := &UI{
		Server: inbound.NewHTTP(inbound.Config{Workspace: inbound.Workspace{Team: c.Team, Enterprise: c.Enterprise}, SigningSecret: c.SigningSecret, Now: c.Now, Log: c.Log, Attend: c.Attend}, h), Cards: cards, Replies: replies, Notices: notices, Homes: homes, people: people, agentIn: interactions.AgentIn,
	}
	ui.ToolCards = tools
	ui.Answers = &bulk.Answers{Sheets: h.Sheets, Results: h.Results, Memos: c.Memos, Now: c.Now, Log: c.Log}
	if c.overSocket() {
		ui.Socket = inbound.NewSocket(inbound.SocketConfig{AppToken: c.AppToken, APIURL: c.APIURL, Answered: c.Answered, Now: c.Now, Log: c.Log}, ui.Server)
		h.Slash.Linked = ui.Socket.Ready
	}
	return ui, nil
}
