package toolcards

import (
	"context"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// A Review is what the owners of an agent are asked about one server.
type Review struct {
	ID      string
	Version int64
	Agent   string
	Server  string
	Digest  string // what a decision is about
	Tools   []Tool
	Partial bool // the definitions are left out, because they are too large
	Lock    bool // there is a lock file, so that nothing is accepted here

	Ended Ending // empty while it is asked
	By    approvals.UserID
	At    time.Time
}

// A Tool is one that is not as it was accepted. Everything of it is the server's.
type Tool struct {
	Name   string
	Kind   Kind
	Diff   string // of the definitions
	Digest string // of the definition now
	Why    string // of one that cannot be used
}

// Kind says how a tool differs.
type Kind string

// The kinds.
const (
	New      Kind = "new"
	Changed  Kind = "changed"
	Gone     Kind = "gone"
	Unusable Kind = "unusable"
)

// An Ending is how a review ended.
type Ending string

// The endings.
const (
	Accepted Ending = "accepted"
	Blocked  Ending = "blocked"
	Reverted Ending = "reverted" // the server lists again what was accepted
)

// Reviews are where they are kept. Decide has the errors of the core: ErrNotEligible
// for someone who is no owner, ErrStale if the server has changed its tools since the
// digest was shown, ErrSettled with the decision of who was first, ErrRefused if there
// is a lock file, ErrInvalid if the bot would not start with these tools. It returns
// once the decision is durable.
type Reviews interface {
	Review(ctx context.Context, id string) (Review, error)
	Decide(ctx context.Context, id, digest string, accept bool, by approvals.Principal) (Review, error)
	Drawn(ctx context.Context, id string, version int64) error
}
