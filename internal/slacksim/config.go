package slacksim

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// Config is one app installed in one simulated workspace. The zero value is
// a complete workspace with no app listening. Credentials that are not given
// are random: another page or program on this machine cannot know them.
type Config struct {
	BotToken      string // what the app sends; see [Server.BotToken]
	ClientID      string // of OAuth; default "slacksim-client"
	ClientSecret  string // of OAuth; see [Server.ClientSecret]
	SigningSecret string // what requests to the app are signed with; see [Server.SigningSecret]

	// SocketMode is the app's setting of this name: everything goes over
	// WebSocket connections and nothing to the URLs below.
	SocketMode bool
	AppToken   string        // with which connections are opened; see [Server.AppToken]
	AppScopes  []string      // of AppToken; nil: connections:write
	SocketLife time.Duration // how long a connection lives, on the workspace's clock; default 5 h
	SocketPing time.Duration // how often each is pinged; default 10 s, after three without an answer it is closed

	// Where the app listens. A URL that is empty is a feature the app did
	// not configure. [Server.SetURLs] sets them later.
	EventsURL, InteractivityURL, CommandsURL string
	OptionsURL                               string // for external select menus; default InteractivityURL

	// PublicURL is how the app reaches this server, without a trailing
	// slash; response_urls start with it. When it is empty, it is the host
	// that the latest call with one of the app's tokens named.
	PublicURL string

	// AnyHost serves under any host name. Without it only loopback names and
	// the host of PublicURL are, so that a page whose name was pointed at this
	// machine reaches nothing.
	AnyHost bool

	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: silent
	Client *http.Client     // nil: a client without cookies that follows two redirects

	// Nil means the default workspace, which [DefaultPeople],
	// [DefaultChannels] and [DefaultGroups] describe.
	People   []Person
	Channels []Channel
	Groups   []Group

	// More workspaces, and the organization that the first one and those
	// with Org are in. Nil: one workspace of its own.
	Workspaces []Workspace
	Enterprise *Enterprise

	Scopes   []string // granted bot scopes; nil: every scope that is known here but chat:write.public
	Events   []string // subscribed bot events; nil: the ones [DefaultEvents] lists
	Commands []string // registered slash commands; nil: any

	// Shortcuts are the app's own entries in the menu of a message, for the
	// page to offer. [Server.Shortcut] takes any.
	Shortcuts []MenuEntry

	// Suggestions are first messages that the page offers to a newcomer.
	Suggestions []string

	// Inspect returns what happens inside the app, for the page to show beside the
	// requests. If it is nil, /sim/inspection answers 404; otherwise every request
	// to it calls Inspect.
	Inspect func(ctx context.Context) (Inspection, error)

	AckTimeout     time.Duration // how long the app may take to answer; default 3 s
	RetryScale     float64       // factor on the 0/60/300 s between event attempts; default 1
	PostLimit      bool          // one message per second and channel, with a burst of three, else 429
	TierLimits     bool          // each method's calls per minute, else 429
	NoHome         bool          // the app has no Home tab
	NoMessages     bool          // the app has no Messages tab: there are no direct messages
	ReadMessages   bool          // the Messages tab is read-only: the app writes there, people do not
	EscapeCommands bool          // should_escape of the app's slash commands
}

// Person is a member of the workspace. Guest is a multi-channel guest
// (is_restricted) and Deleted a deactivated account.
type Person struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	RealName string `json:"real_name"`
	TZ       string `json:"tz,omitempty"`
	TZOffset int    `json:"tz_offset,omitempty"`
	Guest    bool   `json:"is_restricted,omitempty"`
	Deleted  bool   `json:"deleted,omitempty"`
	Bot      bool   `json:"is_bot,omitempty"`
	Stranger bool   `json:"is_stranger,omitempty"`
	Email    string `json:"email,omitempty"`
	Team     string `json:"team_id,omitempty"` // default: the first workspace
}

// Channel is a public or private channel, or a direct message with the bot,
// of one person (IM) or several (MPIM).
type Channel struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Members  []string `json:"members"`
	Private  bool     `json:"is_private,omitempty"`
	Archived bool     `json:"is_archived,omitempty"`
	IM       bool     `json:"is_im,omitempty"`
	MPIM     bool     `json:"is_mpim,omitempty"`
	Team     string   `json:"team_id,omitempty"`         // default: the first workspace
	Shared   []string `json:"shared_team_ids,omitempty"` // other workspaces that have the channel as well
}

// Group is a user group, which messages mention as @handle.
type Group struct {
	ID       string   `json:"id"`
	Handle   string   `json:"handle"`
	Name     string   `json:"name"`
	Users    []string `json:"users"`
	Disabled bool     `json:"disabled,omitempty"`
	Team     string   `json:"team_id,omitempty"` // default: the first workspace
}

// The fixed identities of the default workspace and of the installed app.
const (
	TeamID     = "T0COUNTER"
	TeamName   = "Acme"
	TeamDomain = "acme"
	AppID      = "A0COUNTERSIGN"
	BotID      = "B0COUNTERSIGN"
	BotUser    = "U0BOT"
	BotName    = "countersign"
)

// DefaultPeople are three colleagues, an outsider who is in the channels but
// in no group, a guest and someone who left.
func DefaultPeople() []Person {
	return []Person{
		{ID: "U0ALICE", Name: "alice", RealName: "Alice Amari", Email: "alice@acme.example", TZ: "Europe/Berlin", TZOffset: 3600},
		{ID: "U0BOB", Name: "bob", RealName: "Bob Brandt", Email: "bob@acme.example", TZ: "Europe/Berlin", TZOffset: 3600},
		{ID: "U0CAROL", Name: "carol", RealName: "Carol Chen", Email: "carol@acme.example", TZ: "America/New_York", TZOffset: -18000},
		{ID: "U0DAVE", Name: "dave", RealName: "Dave Duarte", Email: "dave@acme.example", TZ: "Europe/Lisbon"},
		{ID: "U0GUEST", Name: "gita", RealName: "Gita Guest", Guest: true},
		{ID: "U0GONE", Name: "gone", RealName: "Gus Gone", Deleted: true},
		{ID: BotUser, Name: BotName, RealName: "Countersign", Bot: true},
	}
}

// DefaultChannels are #ops and #general, with the bot in both.
func DefaultChannels() []Channel {
	return []Channel{
		{ID: "C0OPS", Name: "ops", Members: []string{"U0ALICE", "U0BOB", "U0CAROL", "U0DAVE", BotUser}},
		{ID: "C0GENERAL", Name: "general", Members: []string{"U0ALICE", "U0BOB", "U0CAROL", "U0DAVE", "U0GUEST", BotUser}},
	}
}

// DefaultGroups are @sre (bob, carol) and @security (carol).
func DefaultGroups() []Group {
	return []Group{
		{ID: "S0SRE", Handle: "sre", Name: "Site reliability", Users: []string{"U0BOB", "U0CAROL"}},
		{ID: "S0SEC", Handle: "security", Name: "Security", Users: []string{"U0CAROL"}},
	}
}

// DefaultEvents are the bot events the app is subscribed to when the config
// does not say.
func DefaultEvents() []string {
	return []string{
		"app_mention", "app_home_opened", "app_uninstalled", "tokens_revoked",
		"subteam_members_changed", "subteam_updated", "member_joined_channel", "member_left_channel", "message.im",
		"user_change",
	}
}

func (c Config) withDefaults(scopes []string) Config {
	set := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	set(&c.BotToken, "xoxb-"+randomHex(16))
	set(&c.ClientID, "slacksim-client")
	set(&c.ClientSecret, randomHex(16))
	set(&c.SigningSecret, randomHex(16))
	set(&c.AppToken, "xapp-1-"+AppID+"-"+randomHex(16))
	if c.AppScopes == nil {
		c.AppScopes = []string{"connections:write"}
	}
	if c.SocketLife == 0 {
		c.SocketLife = 5 * time.Hour
	}
	if c.SocketPing == 0 {
		c.SocketPing = 10 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the one place where the real clock is injected
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Client == nil {
		c.Client = &http.Client{CheckRedirect: atMostTwoRedirects}
	}
	if c.People == nil {
		c.People = DefaultPeople()
	}
	if c.Channels == nil {
		c.Channels = DefaultChannels()
	}
	if c.Groups == nil {
		c.Groups = DefaultGroups()
	}
	if c.Events == nil {
		c.Events = DefaultEvents()
	}
	if c.Scopes == nil {
		c.Scopes = scopes
	}
	if c.AckTimeout == 0 {
		c.AckTimeout = 3 * time.Second
	}
	if c.RetryScale == 0 {
		c.RetryScale = 1
	}
	return c
}

// Workspace is one more workspace beside the first, whose identity is
// [TeamID], [TeamName] and [TeamDomain].
type Workspace struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Domain string `json:"domain"`
	// Token is what the app sends for its installation there. When it is
	// empty the app is not installed there and its people are only met in
	// shared channels.
	Token string `json:"-"`
	// Org puts it into Config.Enterprise. Otherwise its people are strangers
	// to the first workspace.
	Org bool `json:"is_org,omitempty"`
}

// Enterprise is the organization that the first workspace belongs to.
type Enterprise struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Installed means that the app is installed in the whole organization
	// with Config.BotToken: interactions carry no team, methods that list
	// want a team_id, and workspaces of the organization have no own tokens.
	Installed bool `json:"is_enterprise_install,omitempty"`
}

// MenuEntry is a shortcut as the menu of a message names it.
type MenuEntry struct {
	CallbackID string `json:"callback_id"`
	Name       string `json:"name"`
}

func atMostTwoRedirects(_ *http.Request, via []*http.Request) error {
	if len(via) > 2 {
		return errRedirects
	}
	return nil
}

var errRedirects = errors.New("more than two redirects")
