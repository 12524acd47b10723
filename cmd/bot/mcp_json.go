package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/countersign/countersign/internal/tools/mcptool"
)

// pinsReport is what bot mcp pins --json prints.
type pinsReport struct {
	Servers   []serverReport     `json:"servers"`
	Decisions []mcptool.Decision `json:"decisions"` // the oldest first; none with a lock file, which has a history of its own
}

type serverReport struct {
	Agent       string         `json:"agent"`
	Server      string         `json:"server"`
	Accepted    []pinReport    `json:"accepted"`
	Differences []changeReport `json:"differences"`
	Error       string         `json:"error,omitempty"` // why it is not known what the server lists
}

type pinReport struct {
	Tool   string `json:"tool"`
	Digest string `json:"digest"`
}

type changeReport struct {
	Tool   string             `json:"tool"`
	Kind   mcptool.ChangeKind `json:"kind"`
	Before json.RawMessage    `json:"before,omitempty"`
	After  json.RawMessage    `json:"after,omitempty"`
	Why    string             `json:"why,omitempty"`
}

// printJSON prints what was accepted, by whom, and how what the servers list now
// differs. A server that does not answer is listed as such, and what was decided about
// it is printed anyway.
func (p *pinned) printJSON(ctx context.Context) error {
	r := pinsReport{Servers: []serverReport{}, Decisions: append([]mcptool.Decision{}, p.pins.Decisions()...)}
	for _, s := range p.servers {
		one := serverReport{Agent: s.Agent, Server: s.Name, Accepted: []pinReport{}, Differences: []changeReport{}}
		for _, d := range p.pins.Of(mcptool.Place{Agent: s.Agent, Server: s.Name}) {
			one.Accepted = append(one.Accepted, pinReport{d.Name, d.Digest})
		}
		live, err := mcptool.List(ctx, s, p.log)
		if err != nil {
			one.Error = err.Error()
		} else {
			for _, c := range p.pins.Compare(s, live) {
				said := changeReport{Tool: c.Tool, Kind: c.Kind, Before: c.Before, After: c.After}
				if c.Why != nil {
					said.Why = c.Why.Error()
				}
				one.Differences = append(one.Differences, said)
			}
		}
		r.Servers = append(r.Servers, one)
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	_, err = io.WriteString(p.stdout, escaped(string(b))+"\n")
	return err
}

// escaped is the same JSON in ASCII: definitions, names of tools and ids may hold what a
// terminal obeys or does not show.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < 0x7f:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
