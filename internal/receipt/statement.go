package receipt

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"
)

// A Statement says what was decided about one call.
type Statement struct {
	Request     string // the id of the request, which holds the call
	Call        string // the id of the call
	Tool        string
	Arguments   string // the digest of the exact argument bytes, see [DigestOf]
	Place       Place  // where it was to run, if who asked has said so
	Fingerprint string // of the request, where it has one
	Agent       string // who asked for the call
	Outcome     Outcome
	Approvers   []Person // whose approval of these arguments stood, whatever the outcome, in their order
	Deniers     []Person // likewise
	Editors     []Person // who changed the arguments before they were decided
	Rule        string   // the rule of the policy that decided who must approve
	Policy      string   // the version of the policy
	DecidedAt   time.Time
	NotAfter    time.Time // the last moment at which a call may run on this receipt
}

// A Place is where a call was to run, as people saw it.
type Place struct {
	Cwd        string // the working directory
	Repository string
	Branch     string
	Server     string // the MCP server that the tool is of
}

// A Person is someone who acted on the call. Names are for people to read: only
// the id identifies anyone.
type Person struct {
	ID   string
	Name string
	For  string // the id of the absent person in whose place an approver counted
}

// Outcome is how a call ended.
type Outcome string

// The outcomes. Only the first two permit the call to run.
const (
	Approved   Outcome = "approved"
	Permitted  Outcome = "permitted" // the policy needed nobody
	Denied     Outcome = "denied"
	Refused    Outcome = "refused" // by the policy
	Expired    Outcome = "expired"
	Withdrawn  Outcome = "withdrawn"
	Superseded Outcome = "superseded"
)

func (o Outcome) permits() bool { return o == Approved || o == Permitted }

func (o Outcome) known() bool {
	switch o {
	case Approved, Permitted, Denied, Refused, Expired, Withdrawn, Superseded:
		return true
	}
	return false
}

const digestPrefix = "sha256:"

// DigestOf returns the digest that a statement holds of these argument bytes:
// "sha256:" and the SHA-256 of the bytes in lowercase hex. The bytes are taken as
// they are; the same JSON with other white space has another digest.
func DigestOf(arguments []byte) string {
	sum := sha256.Sum256(arguments)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// skew is how far the clock of an executor may be behind ours.
const skew = 5 * time.Minute

// Usable returns nil if the call may run at this time: it was approved, or the
// policy permitted it, and the receipt has not expired. A caller also compares the
// call with [Statement.Covers].
func (s Statement) Usable(at time.Time) error {
	switch {
	case !s.Outcome.permits():
		return fmt.Errorf("%w: the outcome is %s", ErrNotUsable, s.Outcome)
	case at.After(s.NotAfter):
		return fmt.Errorf("%w: it could be used until %s", ErrNotUsable, stamp(s.NotAfter))
	case at.Before(s.DecidedAt.Add(-skew)):
		return fmt.Errorf("%w: the decision is of %s, which is in the future", ErrNotUsable, stamp(s.DecidedAt))
	}
	return nil
}

// CoversArguments returns nil if the statement is about exactly these argument
// bytes.
func (s Statement) CoversArguments(arguments []byte) error {
	got := DigestOf(arguments)
	if subtle.ConstantTimeCompare([]byte(got), []byte(s.Arguments)) != 1 {
		return fmt.Errorf("%w: the digest of the arguments is %s, the receipt is about %s", ErrOtherCall, got, s.Arguments)
	}
	return nil
}

const (
	maxText   = 1024 // bytes of one text
	maxPeople = 200
)

// decided reports whether a person had approved or denied the call.
func (s Statement) decided() bool { return len(s.Approvers)+len(s.Deniers) > 0 }

var digestForm = regexp.MustCompile(`^` + digestPrefix + `[0-9a-f]{64}$`)

// check returns what keeps the statement from being signed or accepted.
func (s Statement) check() error {
	for _, f := range []struct {
		name, value string
		needed      bool
	}{
		{"place.cwd", s.Place.Cwd, false},
		{"place.repository", s.Place.Repository, false},
		{"place.branch", s.Place.Branch, false},
		{"place.server", s.Place.Server, false},
		{"request", s.Request, true},
		{"call", s.Call, true},
		{"tool", s.Tool, true},
		{"fingerprint", s.Fingerprint, false},
		{"agent", s.Agent, true},
		{"rule", s.Rule, false},
		{"policy", s.Policy, false},
	} {
		if err := checkText(f.name, f.value, f.needed); err != nil {
			return err
		}
	}
	switch {
	case !digestForm.MatchString(s.Arguments):
		return fmt.Errorf("%w: the arguments need a digest, sha256: and 64 hex digits", ErrStatement)
	case !s.Outcome.known():
		return fmt.Errorf("%w: there is no outcome %q", ErrStatement, s.Outcome)
	case s.Outcome == Approved && len(s.Approvers) == 0:
		return fmt.Errorf("%w: an approved call needs approvers", ErrStatement)
	case s.Outcome == Denied && len(s.Deniers) == 0:
		return fmt.Errorf("%w: a denied call needs deniers", ErrStatement)
	case s.Outcome == Permitted && s.decided():
		return fmt.Errorf("%w: a call that the policy permitted has no approvers and no deniers", ErrStatement)
	case s.Outcome.permits() && s.NotAfter.IsZero():
		return fmt.Errorf("%w: a call that may run needs not_after", ErrStatement)
	case s.DecidedAt.IsZero():
		return fmt.Errorf("%w: decided_at is missing", ErrStatement)
	case !s.NotAfter.IsZero() && s.NotAfter.Before(s.DecidedAt):
		return fmt.Errorf("%w: not_after is before decided_at", ErrStatement)
	}
	for _, at := range []time.Time{s.DecidedAt, s.NotAfter} {
		if !at.IsZero() && (at.UTC().Year() < 1970 || at.UTC().Year() > 9999) {
			return fmt.Errorf("%w: the year %d", ErrStatement, at.UTC().Year())
		}
	}
	return s.checkPeople()
}

func (s Statement) checkPeople() error {
	if err := checkPeople("approvers", s.Approvers); err != nil {
		return err
	}
	if err := checkPeople("deniers", s.Deniers); err != nil {
		return err
	}
	return checkPeople("editors", s.Editors)
}

func checkPeople(role string, people []Person) error {
	if len(people) > maxPeople {
		return fmt.Errorf("%w: more than %d %s", ErrStatement, maxPeople, role)
	}
	seen := map[string]bool{}
	for _, p := range people {
		if seen[p.ID] {
			return fmt.Errorf("%w: a person is listed twice among the %s", ErrStatement, role)
		}
		seen[p.ID] = true
		if err := checkText(role+".id", p.ID, true); err != nil {
			return err
		}
		if err := checkText(role+".name", p.Name, false); err != nil {
			return err
		}
		if err := checkText(role+".for", p.For, false); err != nil {
			return err
		}
	}
	return nil
}

func checkText(name, value string, needed bool) error {
	switch {
	case needed && value == "":
		return fmt.Errorf("%w: %s is missing", ErrStatement, name)
	case len(value) > maxText:
		return fmt.Errorf("%w: %s has more than %d bytes", ErrStatement, name, maxText)
	case !utf8.ValidString(value):
		return fmt.Errorf("%w: %s is not UTF-8", ErrStatement, name)
	}
	return nil
}
