package agentrun

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

// changed tells the model what really ran after a person changed the arguments
// of its call: the history keeps what the model wrote. Write-only values are
// given as a length only, because they may hold a secret.
func (p *plan) changed() string {
	if bytes.Equal(p.call.Args, p.proposed) {
		return ""
	}
	result, _ := p.part.(ToolReturn)
	_, again := p.part.(RetryPrompt)
	switch {
	case result.Outcome == OutcomeDenied:
	case p.ran || p.elsewhere:
		return fmt.Sprintf("The arguments of call %s (%s) were changed by a person before it was run. It was run with: %s",
			p.call.ID, p.call.Name, masked(p.call.Args, p.writeOnly))
	case again:
		return fmt.Sprintf("The arguments of call %s (%s) had been changed by a person, and it was not run with them.",
			p.call.ID, p.call.Name)
	}
	return ""
}

// masked returns the arguments with the values at these JSON pointers replaced
// by their length. Arguments that cannot be masked are not shown at all.
func masked(args json.RawMessage, pointers []string) string {
	if len(pointers) == 0 {
		return string(args)
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return "(not shown)"
	}
	v = mask(v, approvals.HiddenAt(pointers))
	out, err := json.Marshal(v)
	if err != nil {
		return "(not shown)"
	}
	return string(out)
}

func mask(v any, hidden approvals.Hidden) any {
	if hidden.Here() {
		s, ok := v.(string)
		if !ok {
			b, _ := json.Marshal(v) // what was decoded encodes
			s = string(b)
		}
		return fmt.Sprintf("(%d characters)", utf8.RuneCountInString(s))
	}
	if !hidden.Any() {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = mask(inner, hidden.Below(key))
		}
	case []any:
		for i, inner := range v {
			v[i] = mask(inner, hidden.Below(strconv.Itoa(i)))
		}
	}
	return v
}
