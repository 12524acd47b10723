package mcptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Pins are the tools that an operator has accepted, with their definitions. The
// zero Pins has none. Their stored form, in a lock file and in Redis, is
//
//	{"version": 1, "agents": {"AGENT": {"SERVER": {"TOOL": {"digest": "sha256:…", "definition": {…}}}}}}
//
// with the decisions of people under "decisions", which a lock file does not have.
// A definition may be indented there: what is between its tokens does not count.
type Pins struct {
	accepted  map[Place]map[string]Definition // then by tool
	decisions []Decision
}

// A Place is one server of one agent.
type Place struct {
	Agent  string `json:"agent"`
	Server string `json:"server"`
}

type pinsForm struct {
	Version int                                      `json:"version"`
	Agents  map[string]map[string]map[string]pinForm `json:"agents"`

	Decisions []Decision `json:"decisions,omitempty"`
}

type pinForm struct {
	Digest     string          `json:"digest"`
	Definition json.RawMessage `json:"definition"`
}

const pinsVersion = 1

// ReadPins reads the stored form. What is wrong with any of it is an error: pins
// that cannot be read accept nothing.
func ReadPins(b []byte) (Pins, error) {
	var f pinsForm
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return Pins{}, fmt.Errorf("read the pins: %w", err)
	}
	if d.More() {
		return Pins{}, errors.New("read the pins: there is something behind them")
	}
	if f.Version != pinsVersion {
		return Pins{}, fmt.Errorf("read the pins: their version is %d, and only %d is known", f.Version, pinsVersion)
	}
	p := Pins{decisions: f.Decisions}
	for agent, servers := range f.Agents {
		for server, pins := range servers {
			at := Place{agent, server}
			p.Accept(at, nil)
			for tool, pin := range pins {
				d, err := readDefinition(pin.Definition)
				switch {
				case err != nil:
					return Pins{}, fmt.Errorf("read the pins: %s.%s of %s: %w", server, tool, agent, err)
				case d.Name != tool || d.Digest != pin.Digest:
					return Pins{}, fmt.Errorf("read the pins: %s.%s of %s: the definition does not have the name or the digest beside it", server, tool, agent)
				}
				p.accepted[at][tool] = d
			}
		}
	}
	return p, nil
}

// Bytes returns the stored form, the same for the same pins.
func (p Pins) Bytes() []byte {
	f := pinsForm{Version: pinsVersion, Agents: map[string]map[string]map[string]pinForm{}, Decisions: p.decisions}
	for at, tools := range p.accepted {
		if f.Agents[at.Agent] == nil {
			f.Agents[at.Agent] = map[string]map[string]pinForm{}
		}
		pins := map[string]pinForm{}
		for name, d := range tools {
			pins[name] = pinForm{d.Digest, d.Raw}
		}
		f.Agents[at.Agent][at.Server] = pins
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // it would change definitions
	e.SetIndent("", "  ")
	if err := e.Encode(f); err != nil {
		return nil // it is made of JSON that was read
	}
	return b.Bytes()
}

// Lock returns the form of a lock file: without the decisions, which are in the
// history of the file.
func (p Pins) Lock() []byte { return Pins{accepted: p.accepted}.Bytes() }

// Accept makes these the accepted tools of a server.
func (p *Pins) Accept(at Place, tools []Definition) {
	if p.accepted == nil {
		p.accepted = map[Place]map[string]Definition{}
	}
	p.accepted[at] = map[string]Definition{}
	for _, d := range tools {
		p.accepted[at][d.Name] = d
	}
}

// Forget removes the servers that are not among these.
func (p *Pins) Forget(except []Place) {
	maps.DeleteFunc(p.accepted, func(at Place, _ map[string]Definition) bool { return !slices.Contains(except, at) })
}

// Of returns the accepted tools of a server, by their names.
func (p Pins) Of(at Place) []Definition {
	var all []Definition
	for _, name := range slices.Sorted(maps.Keys(p.accepted[at])) {
		all = append(all, p.accepted[at][name])
	}
	return all
}

// Knows reports whether anything of the server was ever accepted.
func (p Pins) Knows(at Place) bool { return p.accepted[at] != nil }

// Listed is a tool that a server lists. Why says why it cannot be used at all;
// nil if it can.
type Listed struct {
	Definition

	Why error
}

// listed reads what a server lists, without what the configuration leaves out.
func listed(s Server, raw []json.RawMessage) []Listed {
	var all []Listed
	index := map[string]int{}
	for _, r := range raw {
		d, err := readDefinition(r)
		if d.Name != "" && !s.takes(d.Name) {
			continue
		}
		if first, twice := index[d.Name]; twice {
			err = errors.New("the server lists it twice")
			all[first].Why = err
		}
		index[d.Name] = len(all)
		all = append(all, Listed{d, err})
	}
	return all
}

// A Change is how a tool that a server lists differs from what was accepted.
type Change struct {
	Tool   string
	Kind   ChangeKind
	Before json.RawMessage // as it was accepted
	After  json.RawMessage // as the server sends it
	Why    error           // of [ToolUnusable]
}

// ChangeKind is one of the ways to differ.
type ChangeKind string

// The kinds of a [Change]. None of them is available to an agent.
const (
	ToolNew      ChangeKind = "new"
	ToolChanged  ChangeKind = "changed"
	ToolGone     ChangeKind = "gone"
	ToolUnusable ChangeKind = "unusable"
)

// Compare returns the changes of a server, by the names of its tools.
func (p Pins) Compare(s Server, live []Listed) []Change {
	pinned := p.accepted[Place{s.Agent, s.Name}]
	var all []Change
	there := map[string]bool{}
	for _, l := range live {
		there[l.Name] = true
		before, known := pinned[l.Name]
		switch {
		case l.Why != nil:
			all = append(all, Change{Tool: l.Name, Kind: ToolUnusable, After: l.Raw, Before: before.Raw, Why: l.Why})
		case !known:
			all = append(all, Change{Tool: l.Name, Kind: ToolNew, After: l.Raw})
		case before.Digest != l.Digest:
			all = append(all, Change{Tool: l.Name, Kind: ToolChanged, Before: before.Raw, After: l.Raw})
		}
	}
	for name, d := range pinned {
		if !there[name] && s.takes(name) {
			all = append(all, Change{Tool: name, Kind: ToolGone, Before: d.Raw})
		}
	}
	slices.SortStableFunc(all, func(a, b Change) int { return bytes.Compare([]byte(a.Tool), []byte(b.Tool)) })
	return all
}
