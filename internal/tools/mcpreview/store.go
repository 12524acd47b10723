package mcpreview

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

// Store keeps the memos. CommitTimed also says when a memo is due. The state package
// has the one implementation.
type Store interface {
	Memo(ctx context.Context, id, surface string) (data []byte, version int64, err error)
	KeepMemo(ctx context.Context, id, surface string, data []byte, version int64) error
	CommitTimed(ctx context.Context, id, surface string, data []byte, version int64, due time.Time) error
	Confirm(ctx context.Context, id string) error
}

// PinsID and PinsSurface are where the accepted tools are, with the decisions.
var PinsID = approvals.NewID("mcp", 0, "pins")

// The surfaces of the memos. Surface is also the name of the due work.
const (
	PinsSurface = "pins"
	Surface     = "toolchanges"
)

// ReadPins returns the accepted tools and the version of their memo, 0 if nothing
// was ever accepted.
func ReadPins(ctx context.Context, s Store) (mcptool.Pins, int64, error) {
	b, version, err := s.Memo(ctx, PinsID, PinsSurface)
	if err != nil || b == nil {
		return mcptool.Pins{}, version, err
	}
	pins, err := mcptool.ReadPins(b)
	return pins, version, err
}

// A Review is what owners are asked about one server, and how it ended.
type Review struct {
	mcptool.Proposal

	SeenAt time.Time
	Locked bool // the tools are those of a lock file: nothing is accepted here
	// Ended is empty while the owners are asked.
	Ended Ending
	By    approvals.UserID // who decided; empty for an operator
	At    time.Time
}

// An Ending is how a review ended.
type Ending string

// The endings.
const (
	Accepted Ending = "accepted"
	Blocked  Ending = "blocked"
	Reverted Ending = "reverted" // the server lists again what was accepted
)

const version = 1

// reviewForm is the stored form of a [Review].
type reviewForm struct {
	Version  int                `json:"version"`
	Agent    string             `json:"agent"`
	Server   string             `json:"server"`
	Digest   string             `json:"digest"`
	Tools    []mcptool.Proposed `json:"tools"`
	TooLarge bool               `json:"too_large,omitempty"`
	SeenAt   time.Time          `json:"seen_at"`
	Locked   bool               `json:"locked,omitempty"`
	Ended    Ending             `json:"ended,omitempty"`
	By       approvals.UserID   `json:"by,omitempty"`
	At       time.Time          `json:"at,omitzero"`
}

// IDOf is the id of the review of a server.
func IDOf(at mcptool.Place) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(at.Agent), at.Agent, at.Server))
	return approvals.NewID("mcp", approvals.PartitionOf(at.Agent, at.Server), hex.EncodeToString(sum[:12]))
}

// load returns the review of a server and its version, which is 0 if there is none.
func load(ctx context.Context, s Store, id string) (Review, int64, error) {
	b, v, err := s.Memo(ctx, id, Surface)
	if err != nil {
		return Review{}, 0, fmt.Errorf("load what is asked about an MCP server: %w", err)
	}
	if v == 0 || b == nil {
		return Review{}, v, nil
	}
	var f reviewForm
	if err := json.Unmarshal(b, &f); err != nil {
		return Review{}, v, fmt.Errorf("read what is asked about an MCP server: %w", err)
	}
	if f.Version != version {
		return Review{}, v, fmt.Errorf("read what is asked about an MCP server: its version is %d, and only %d is known", f.Version, version)
	}
	return Review{
		Proposal: mcptool.Proposal{Place: mcptool.Place{Agent: f.Agent, Server: f.Server}, Digest: f.Digest, Tools: f.Tools, TooLarge: f.TooLarge},
		SeenAt:   f.SeenAt, Locked: f.Locked, Ended: f.Ended, By: f.By, At: f.At,
	}, v, nil
}

func (r Review) bytes() ([]byte, error) {
	return json.Marshal(reviewForm{
		Version: version, Agent: r.Agent, Server: r.Server, Digest: r.Digest, Tools: r.Tools, TooLarge: r.TooLarge,
		SeenAt: r.SeenAt.UTC(), Locked: r.Locked, Ended: r.Ended, By: r.By, At: r.At,
	})
}

// commit stores the review and makes it due at a time, or not any more if that is
// zero.
func commit(ctx context.Context, s Store, id string, r Review, v int64, due time.Time) error {
	b, err := r.bytes()
	if err != nil {
		return fmt.Errorf("store what is asked about an MCP server: %w", err)
	}
	return s.CommitTimed(ctx, id, Surface, b, v, due)
}
