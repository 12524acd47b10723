package receipt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The versions of the statement's encoding. Every change of the encoding, also a
// new member, is a new version: verifiers refuse what they do not know. A
// statement is written in the oldest version that can hold it.
const (
	plainVersion  = 1
	placedVersion = 2 // with a place
	ruledVersion  = 3 // refused by the policy when people had decided it
)

func (s Statement) version() int {
	switch {
	case s.Outcome == Refused && s.decided():
		return ruledVersion
	case s.Place != (Place{}):
		return placedVersion
	}
	return plainVersion
}

// encode returns the statement as canonical JSON (RFC 8785). It does not use
// encoding/json, whose way of escaping has changed between releases of Go.
func (s Statement) encode() []byte {
	return []byte(object(
		member{"agent", text(s.Agent)},
		member{"approvers", people(s.Approvers)},
		member{"arguments", text(s.Arguments)},
		member{"call", text(s.Call)},
		member{"decided_at", text(stamp(s.DecidedAt))},
		member{"deniers", people(s.Deniers)},
		member{"editors", people(s.Editors)},
		member{"fingerprint", text(s.Fingerprint)},
		member{"not_after", text(stamp(s.NotAfter))},
		member{"outcome", text(string(s.Outcome))},
		member{"place", s.Place.encode()},
		member{"policy", text(s.Policy)},
		member{"request", text(s.Request)},
		member{"rule", text(s.Rule)},
		member{"tool", text(s.Tool)},
		member{"version", fmt.Sprint(s.version())},
	))
}

// MarshalJSON returns the statement as a receipt holds it.
func (s Statement) MarshalJSON() ([]byte, error) { return s.encode(), nil }

// A member is a key of an object with its value as JSON; without a value it is
// left out.
type member struct{ key, value string }

func object(members ...member) string {
	var kept []string
	for _, m := range members {
		if m.value != "" {
			kept = append(kept, text(m.key)+":"+m.value)
		}
	}
	return "{" + strings.Join(kept, ",") + "}"
}

// encode is the place as JSON; nothing if nothing is known of it.
func (p Place) encode() string {
	if p == (Place{}) {
		return ""
	}
	return object(member{"branch", text(p.Branch)}, member{"cwd", text(p.Cwd)}, member{"repository", text(p.Repository)}, member{"server", text(p.Server)})
}

func people(all []Person) string {
	if len(all) == 0 {
		return ""
	}
	items := make([]string, 0, len(all))
	for _, p := range all {
		items = append(items, object(member{"for", text(p.For)}, member{"id", text(p.ID)}, member{"name", text(p.Name)}))
	}
	return "[" + strings.Join(items, ",") + "]"
}

// text is s as a JSON string, escaped only where JSON needs it; nothing for an
// empty text.
func text(s string) string {
	if s == "" {
		return ""
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch r {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '\b':
			b.WriteString(`\b`)
		case '\t':
			b.WriteString(`\t`)
		case '\n':
			b.WriteString(`\n`)
		case '\f':
			b.WriteString(`\f`)
		case '\r':
			b.WriteString(`\r`)
		default:
			if r < ' ' {
				fmt.Fprintf(&b, `\u%04x`, r)
				continue
			}
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// stamp is a time in the form of the encoding: in UTC, in whole seconds.
func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Truncate(time.Second).Format(time.RFC3339)
}

// stored is the statement as encoding/json reads it.
type stored struct {
	Agent       string         `json:"agent"`
	Approvers   []storedPerson `json:"approvers"`
	Arguments   string         `json:"arguments"`
	Call        string         `json:"call"`
	DecidedAt   string         `json:"decided_at"`
	Deniers     []storedPerson `json:"deniers"`
	Editors     []storedPerson `json:"editors"`
	Fingerprint string         `json:"fingerprint"`
	NotAfter    string         `json:"not_after"`
	Outcome     Outcome        `json:"outcome"`
	Place       storedPlace    `json:"place"`
	Policy      string         `json:"policy"`
	Request     string         `json:"request"`
	Rule        string         `json:"rule"`
	Tool        string         `json:"tool"`
	Version     int            `json:"version"`
}

type storedPlace struct {
	Branch     string `json:"branch"`
	Cwd        string `json:"cwd"`
	Repository string `json:"repository"`
	Server     string `json:"server"`
}

type storedPerson struct {
	For  string `json:"for"`
	ID   string `json:"id"`
	Name string `json:"name"`
}

// decode reads what encode wrote. The comparison at its end refuses everything
// else that encoding/json tolerates: unknown and repeated members, members in
// other letters or another order, escapes, white space, broken text.
func decode(payload []byte) (Statement, error) {
	var in stored
	if err := json.Unmarshal(payload, &in); err != nil {
		return Statement{}, fmt.Errorf("%w: its payload is not the JSON of a statement", ErrMalformed)
	}
	if in.Version < plainVersion || in.Version > ruledVersion {
		return Statement{}, fmt.Errorf("%w: its version is %d, this program knows %d to %d", ErrMalformed, in.Version, plainVersion, ruledVersion)
	}
	s := Statement{
		Request: in.Request, Call: in.Call, Tool: in.Tool, Arguments: in.Arguments, Fingerprint: in.Fingerprint,
		Place: Place{Server: in.Place.Server, Cwd: in.Place.Cwd, Repository: in.Place.Repository, Branch: in.Place.Branch},
		Agent: in.Agent, Outcome: in.Outcome, Rule: in.Rule, Policy: in.Policy,
		Approvers: read(in.Approvers), Deniers: read(in.Deniers), Editors: read(in.Editors),
	}
	var err error
	if s.DecidedAt, err = readTime(in.DecidedAt); err != nil {
		return Statement{}, err
	}
	if s.NotAfter, err = readTime(in.NotAfter); err != nil {
		return Statement{}, err
	}
	if err := s.check(); err != nil {
		return Statement{}, err
	}
	if !bytes.Equal(s.encode(), payload) {
		return Statement{}, fmt.Errorf("%w: its payload is not in the form in which receipts are written: a member is unknown, repeated or out of order", ErrMalformed)
	}
	return s, nil
}

func readTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %q is not a time", ErrMalformed, s)
	}
	return at.UTC(), nil
}

func read(in []storedPerson) []Person {
	var all []Person
	for _, p := range in {
		all = append(all, Person{ID: p.ID, Name: p.Name, For: p.For})
	}
	return all
}
