package intake

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// MaxID is how many bytes a name may have that a caller chooses.
const MaxID = 256

// maxCwd is how many bytes a directory may have: people see all of it.
const maxCwd = 512

// check refuses what could not be stored, shown or answered as it is.
func (a Ask) check(c Client) error {
	if c.Name == "" || c.Credential == "" || c.requester() == "" {
		return fmt.Errorf("%w: a client has a name, a credential and a requester", approvals.ErrInvalid)
	}
	for _, f := range []struct{ at, v string }{
		{"external_id", a.ExternalID},
		{"idempotency key", a.IdempotencyKey},
		{"group", a.Group},
		{"session", a.Session},
		{"trace", a.Trace},
		{"notify", a.Notify},
		{"door", string(a.Door)},
	} {
		if err := name(f.at, f.v, MaxID); err != nil {
			return err
		}
	}
	if a.Notify != "" && !slices.Contains(c.Endpoints, a.Notify) {
		return invalid("notify", "names no webhook of the agent's configuration")
	}
	if a.Within < 0 {
		return invalid("within", "is negative")
	}
	if len(a.State) > MaxState {
		return invalid("state", "is larger than %d bytes", MaxState)
	}
	if a.IdempotencyKey != "" && a.Payload.IsZero() {
		return invalid("idempotency key", "needs a digest of the payload")
	}
	if len(a.Calls) == 0 || len(a.Calls) > agentrun.MaxCalls {
		return invalid("calls", "must be between 1 and %d", agentrun.MaxCalls)
	}
	if a.Reuse && (len(a.Calls) != 1 || a.Calls[0].External) {
		return invalid("calls", "must be one call that is to be approved, if an earlier decision may be used")
	}
	if a.Claim && !a.Reuse {
		return invalid("calls", "can be claimed with the question only if an earlier decision may be used")
	}
	if a.Here && !a.Reuse {
		return invalid("calls", "that are executed here must be found again by their fingerprint")
	}
	var seen []approvals.ToolCallID
	for i, call := range a.Calls {
		at := fmt.Sprintf("calls[%d]", i)
		if slices.Contains(seen, call.ID) {
			return invalid(at+".id", "is that of another call")
		}
		seen = append(seen, call.ID)
		if err := call.check(at); err != nil {
			return err
		}
	}
	return nil
}

func (c Call) check(at string) error {
	for _, f := range []struct {
		at, v    string
		max      int
		required bool
	}{
		{".id", string(c.ID), MaxID, true},
		{".tool", c.Tool, MaxID, true},
		{".server", c.Server, MaxID, false},
		{".definition", c.Definition, MaxID, false},
		{".repository", c.Repository, MaxID, false},
		{".branch", c.Branch, MaxID, false},
		{".cwd", c.Cwd, maxCwd, false},
	} {
		if f.required && strings.TrimSpace(f.v) == "" {
			return invalid(at+f.at, "is missing")
		}
		if err := name(at+f.at, f.v, f.max); err != nil {
			return err
		}
	}
	if err := approvals.CheckArgs(c.Args); err != nil {
		return fmt.Errorf("%s.args: %w", at, err)
	}
	return nil
}

// name refuses what is no single line of text.
func name(at, v string, most int) error {
	switch {
	case len(v) > most:
		return invalid(at, "is longer than %d bytes", most)
	case !utf8.ValidString(v):
		return invalid(at, "is not valid UTF-8")
	case strings.ContainsFunc(v, unicode.IsControl):
		return invalid(at, "has control characters")
	}
	return nil
}

// requester is the owner of the credential, or, if several people share it, a service
// that is no person.
func (c Client) requester() approvals.UserID {
	switch {
	case c.Owner != "":
		return c.Owner
	case len(c.Triggers) > 0:
		return c.actor()
	}
	return ""
}

// actor is the agent itself, for what it does with its requests.
func (c Client) actor() approvals.UserID { return approvals.ServiceUser(c.Name) }
