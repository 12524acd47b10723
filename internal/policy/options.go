package policy

import (
	"context"
	"encoding/json"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// Options say what a file is read against. The zero Options know no tool, so
// that no condition on arguments is type-checked, and no people.
type Options struct {
	// Tools are all tools of the agents of this program. A rule for a tool that is
	// not among them is refused, unless it may be for one of Remote. A call of one
	// asks with the file's default.
	Tools []Tool
	// Remote are the agents that run elsewhere. Their tools are not known: a rule
	// that may be for one of them can name any tool.
	Remote []string
	// Roster is who is in which group, and who can approve at all. With it, a
	// requirement that nobody can meet is refused when the file is read.
	Roster *Roster
	// Directory is asked for the groups of a requester, only where a condition
	// or a list of requesters needs them.
	Directory Directory
	// Ledger is asked for the calls of a requester that were allowed to run, only
	// where a condition counts those of today.
	Ledger Ledger
	// Checks are the names of the checks that rules can name; nil if they are not
	// known.
	Checks []string
	// AskCheck asks the check of the rule that decides. Without it no check can be
	// asked: [Policy.Rule] fails closed, and explanations leave it out. Examples and
	// [Replay] ask no check.
	AskCheck Checker
	// Shadow is called with what rules in shadow mode would have ruled. It is
	// called while a call waits, so it must not block.
	Shadow func(ctx context.Context, r ShadowRuling)
	// Now is the time of the examples that name none, and by which a policy was written
	// lately; time.Now if left out.
	Now func() time.Time
}

func (o Options) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now() //nolint:forbidigo // examples that name no time are judged now
}

// A Tool is one tool of one agent.
type Tool struct {
	Agent string
	Name  string
	// Schema is the JSON Schema of its arguments. Conditions are type-checked
	// against it; without one they are not.
	Schema      json.RawMessage
	WriteOnly   []string // JSON pointers of write-only arguments, which no summary may show
	Annotations Annotations
	// Severity is what the tool states; conditions see it as severity.
	Severity approvals.Severity
	Asks     Asks
	// Setting is the approval of this tool in the bot's configuration, and
	// AgentSetting that of its agent.
	Setting      Setting
	AgentSetting Setting
}

// Annotations are what a tool says of its effects, by the words and defaults of
// MCP, where nil stands for true.
type Annotations struct {
	ReadOnlyHint    bool
	DestructiveHint *bool
	IdempotentHint  bool
	OpenWorldHint   *bool
}

// Asks is what the code of a tool says about approval. The zero value says
// nothing, and then the file's default asks.
type Asks string

// What a tool's code may say.
const (
	AsksNever    Asks = "never"    // it needs none
	AsksWhen     Asks = "when"     // its predicate decides, call by call
	AsksAlways   Asks = "always"   // every call needs one
	AsksExternal Asks = "external" // it runs elsewhere and needs none to be set aside
)

// A Setting is an approval in the bot's configuration: true, false or a
// condition. The zero value is that there is none.
type Setting struct {
	Approval Approval
	When     string // of ApprovalWhen: a CEL expression; true asks, false allows
	Place    string // where it is written, such as agents[0].approval; for messages and rule names
}

// Approval says whether calls need approval.
type Approval string

// The approvals of a [Setting].
const (
	ApprovalUnset Approval = ""
	ApprovalTrue  Approval = "true"
	ApprovalFalse Approval = "false"
	ApprovalWhen  Approval = "when"
)

// A Directory knows who is in which group now.
type Directory interface {
	// GroupsOf returns those of the groups in which the person is. What it
	// cannot find out is an error, never a "no".
	GroupsOf(ctx context.Context, user approvals.UserID, of []approvals.GroupID) ([]approvals.GroupID, error)
}

// A Ledger knows which calls of a person were allowed to run.
type Ledger interface {
	// Entries returns those of the last two days at least, in the order in which
	// they were entered. What it cannot find out is an error, never an empty list.
	Entries(ctx context.Context, user approvals.UserID) ([]approvals.LedgerEntry, error)
}

// A ShadowRuling is what a rule in shadow mode, or a file in shadow mode, would
// have ruled if it were enforced, and what was ruled. It holds no arguments.
type ShadowRuling struct {
	Rule  string // name@version, as in [approvals.Ask]
	Agent string
	Tool  string
	Would approvals.Ruling
	Was   approvals.Ruling
}
