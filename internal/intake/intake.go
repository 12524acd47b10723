// Package intake takes requests of agents that this program does not run. It is
// the one use case behind every door: the HTTP API, the hooks of coding agents,
// the MCP gateway and its permission prompt.
//
// A request becomes a run that is deferred from birth, in a thread of its own,
// with a batch like any other: policy, cards, sheets, ladders and Homes do not
// know the difference. Once the batch is settled it is delivered instead of
// resumed. An agent can ask and withdraw; nothing here decides.
package intake

import (
	"encoding/json"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A Client is an agent as its credential proved it. Nothing in a payload names
// one. It sees its own requests and no others.
type Client struct {
	Name  string // of the agent, as people read it on a card; unique in the configuration
	Owner approvals.UserID
	// Triggers is everybody who can make the agent ask, if the credential is
	// shared: all of them count as having asked. With an owner it is empty.
	Triggers   []approvals.UserID
	Channel    string // where its requests are shown
	Credential string // the id of the credential, never the credential itself: the session of a door that has none

	OpenLimit int           // so many of its requests may be open; 0 for [DefaultOpenLimit]
	PerMinute int           // so many new requests may it make in a minute; 0 for [DefaultPerMinute]
	Within    time.Duration // nobody can decide a request of it after that; 0 leaves it to the policy
	Fulfills  []Fulfills    // the external calls of others that it may fulfill
	Endpoints []string      // the names of its webhooks, of which a request may name one
}

// Fulfills are the calls of one tool of one agent.
type Fulfills struct{ Agent, Tool string }

// The limits of a client whose configuration says nothing.
const (
	DefaultOpenLimit = 100
	DefaultPerMinute = 60
)

// An Ask is one request, as a door hands it in.
type Ask struct {
	Door       Door
	Carries    Carries
	ExternalID string // the caller's name for the request; with other calls under it, the request before is superseded, but not with Here
	// IdempotencyKey makes a repetition the same request; with another payload it
	// is [ErrKeyReused]. Empty for none.
	IdempotencyKey string
	Payload        approvals.Digest // of everything the caller sent, for IdempotencyKey

	Group   string // where cards are drawn and listed together; nothing queues or supersedes across it
	Session string // bounds who may find a decision again by its fingerprint; empty for the credential
	Calls   []Call
	State   json.RawMessage // opaque, given back with the answer; at most MaxState bytes
	Within  time.Duration   // nobody can decide it after that; 0 leaves it to the policy, which may end it before
	Trace   string          // the caller's traceparent, given back
	Notify  string          // the name of a configured webhook of the client; empty for none
	Prompt  string          // what the person wrote, if the door knows it; quoted, never trusted
	// Reuse finds an open request or an unused decision by its fingerprint, for
	// doors whose callers ask again. It is for a request of one call. What such a
	// request is, its fingerprint says: another external id joins it.
	Reuse bool
	// Claim claims the call with the question, if the policy permits it without asking
	// anyone, and the answer says so: then all of it is one step. It goes with Reuse. A
	// caller that asks again makes another call, unless it was told to, see [Service.Owe].
	Claim bool
	// Here says that the door has [agentrun.Runner.Execute] execute the call once it
	// is claimed, or [agentrun.Runner.Continue] if it was claimed with the question. It
	// goes with Reuse: a caller that asks again finds the execution too, until somebody
	// has been told what came of it, see [Service.Answered].
	Here bool
	// Pure says that the call changes nothing: if it is claimed with the question, the
	// door has [agentrun.Runner.Perform] execute it, and nothing of that is stored.
	Pure bool

	ruled agentrun.Ruled // by this very question
}

// MaxState is how many bytes of opaque state a request may carry: 1 MiB of its
// caller, and what its door adds to answer in the form in which it was asked.
const MaxState = 1<<20 + 64<<10

// A Call is one call of a request. What is approved is all of it: tool, server,
// definition, exact argument bytes and the directory.
type Call struct {
	ID         approvals.ToolCallID
	Tool       string
	Server     string // where the tool is from; empty for the agent's own
	Args       json.RawMessage
	Cwd        string // where it runs; empty if the door cannot say, and the card says so
	Repository string
	Branch     string
	Definition string // the pinned digest of the tool's definition; empty if there is none
	Reason     string // the agent's words; quoted, never trusted
	External   bool   // it is to be fulfilled, not approved
	// Metadata is a JSON object for who fulfills the call. People do not see it, so that
	// it is kept of external calls only.
	Metadata json.RawMessage

	// What the configuration of a door knows of the tool. No caller says it.
	Summary   string   // a template, as in package summary
	WriteOnly []string // JSON pointers of arguments that people see as a length only
	Severity  approvals.Severity
	Defined   string // as in [agentrun.RemoteCall].Definition
}

// A Door is how a request came in.
type Door string

// The doors, as a configuration names them.
const (
	DoorAPI   Door = "api"   // the HTTP API
	DoorHooks Door = "hooks" // what coding agents call before a tool
	DoorMCP   Door = "mcp"   // the permission prompt
	// DoorGateway is that of the agents of a gateway, whose calls are executed here.
	DoorGateway Door = "gateway"
)

// Carries says what a door can bring back. The card offers no button for what it
// cannot.
type Carries struct {
	Edits   bool // changed arguments
	Reasons bool // why a call was denied
	Late    bool // an answer after the caller stopped waiting
}

// State of a request.
type State string

// The states. Each but Pending is final.
const (
	StatePending State = "pending"
	StateSettled State = "settled"
)

// Outcome of one call. They are different answers: a caller tells its model
// which it is.
type Outcome string

// The outcomes.
const (
	OutcomePending    Outcome = "pending"
	OutcomeAllowed    Outcome = "allowed"  // the policy needs nobody
	OutcomeRefused    Outcome = "refused"  // by the policy, at once or when the approved call was about to be claimed
	OutcomeApproved   Outcome = "approved" // by people
	OutcomeDenied     Outcome = "denied"   // by a person
	OutcomeExpired    Outcome = "expired"  // nobody decided in time
	OutcomeWithdrawn  Outcome = "withdrawn"
	OutcomeSuperseded Outcome = "superseded" // the same external id asked for something else
	OutcomeFulfilled  Outcome = "fulfilled"  // an external call has its result
)

// A Request is what a client sees of what it asked.
type Request struct {
	ID           approvals.RunID
	Agent        string            // that asked
	Batch        approvals.BatchID // empty if nobody is asked
	ExternalID   string
	Group        string
	State        State
	Calls        []CallStatus // in the order of the Ask
	StateDoc     json.RawMessage
	CreatedAt    time.Time
	ExpiresAt    time.Time // when the first open call expires; zero if none does
	Trace        string
	SupersededBy approvals.RunID // the request that took the place of this one
	Version      string          // changes with everything that a client can see: an ETag
	Joined       bool            // it was found by its fingerprint: another external id asked first
	Claimed      bool            `json:"-"` // by the very question, see [Ask.Claim]
	// Run is what was ruled on, if it is Claimed.
	Run  agentrun.RemoteRun `json:"-"`
	Left []string           `json:"-"` // the external ids whose callers do not wait any more, see [Service.Leave]
}

// A CallStatus is where one call stands.
type CallStatus struct {
	ID          approvals.ToolCallID
	Tool        string
	Outcome     Outcome
	Digest      approvals.Digest
	Fingerprint string
	Place       approvals.Place    // where it would run, as its caller said
	Args        json.RawMessage    // the bytes that count: as approved, or as asked while pending
	Edited      bool               // Args are not those of the Ask
	Reason      string             // why it was denied or refused, in words for the model
	By          []approvals.Seat   // who approved or denied it, in their order
	Editors     []approvals.UserID // who changed the arguments
	// Approvers and Deniers are whose decision on Args stood when the call got its
	// outcome, whatever that is. A client sees them in the receipt only.
	Approvers []approvals.Seat   `json:"-"`
	Deniers   []approvals.UserID `json:"-"`
	Given     int                // how many approvals it has that count
	Needed    int                // how many it needs in all; 0 if it may be approved in several ways
	Rule      string             // that asked, permitted or refused, and the version of its policy, as rule@version
	DecidedAt time.Time
	// UsableUntil is when a decision that is not claimed is of no use any more. The
	// time begins once every call of the request is decided; before it is zero,
	// unless the call is claimed: then it began with the claim.
	UsableUntil time.Time
	ClaimedAt   time.Time // zero until it is claimed
	External    bool      // it waits for a result, not for a decision
	Report      *Report
	Here        bool                 // this program executes it
	Answered    bool                 // somebody has been told what became of it here
	Result      approvals.CallResult // of an external call
	Receipt     string               // signed, see package receipt; empty without a key
}

// A Report is what a caller says became of an approved call. It is the caller's word, and
// the card says so.
type Report struct {
	State   approvals.ExecutionState // Ran, RanFailed or NotRun
	Took    time.Duration
	Words   string
	Excerpt string
	At      time.Time
}

// A Claim is the one use of a decision.
type Claim struct {
	Call      approvals.ToolCallID
	Tool      string
	Args      json.RawMessage // exactly what was approved
	Digest    approvals.Digest
	ClaimedAt time.Time
	Receipt   string
}

// An Event is that something changed about one of a client's requests.
type Event struct {
	ID      string // its place: events after it follow
	Type    string // approval.created, approval.decided, approval.settled, ...
	Request approvals.RunID
	Call    approvals.ToolCallID // empty if it is about the request
	At      time.Time
}
