package agentrun

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

// minSecret is how many characters a value has at least to be looked for in a
// text. Shorter ones are in any text, and are guessed as quickly.
const minSecret = 3

// Secrets are the values of write-only arguments. People see these as a length
// only, so what a batch quotes of a tool or a model must not hold them either.
type secrets []string

// secretsOf returns the values at these JSON pointers, with those within them.
func secretsOf(args json.RawMessage, pointers []string) secrets {
	if len(pointers) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil // arguments were decoded before they came here
	}
	var found secrets
	found.collect(v, approvals.HiddenAt(pointers), false)
	return found
}

func (s *secrets) collect(v any, hidden approvals.Hidden, all bool) {
	if all = all || hidden.Here(); !all && !hidden.Any() {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			s.collect(inner, hidden.Below(key), all)
		}
	case []any:
		for i, inner := range v {
			s.collect(inner, hidden.Below(strconv.Itoa(i)), all)
		}
	case string:
		s.add(v, all)
	case json.Number:
		s.add(v.String(), all)
	}
}

func (s *secrets) add(v string, hidden bool) {
	if hidden && utf8.RuneCountInString(v) >= minSecret {
		*s = append(*s, v)
	}
}

// secrets are those of the call, as the model made it and as it is now.
func (p *plan) secrets() secrets {
	if p.tool == nil {
		return nil
	}
	hidden := p.tool.Spec().WriteOnly
	found := secretsOf(p.call.Args, hidden)
	if !bytes.Equal(p.call.Args, p.proposed) {
		found = append(found, secretsOf(p.proposed, hidden)...)
	}
	return found
}

// secretsIn are those of several calls.
func secretsIn(plans []*plan) secrets {
	var found secrets
	for _, p := range plans {
		found = append(found, p.secrets()...)
	}
	return found
}

// scrub returns the text with each of the values replaced by its length, as it is
// and as it is written in JSON.
func (s secrets) scrub(text string) string {
	if text == "" || len(s) == 0 {
		return text
	}
	slices.SortFunc(s, func(a, b string) int { return len(b) - len(a) }) // one may be in another
	var pairs []string
	for _, v := range s {
		length := fmt.Sprintf("(%d characters)", utf8.RuneCountInString(v))
		pairs = append(pairs, v, length)
		for _, html := range []bool{true, false} {
			if w := written(v, html); w != v {
				pairs = append(pairs, w, length)
			}
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// written is a text as it stands between the quotes of a JSON string.
func written(v string, html bool) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(html)
	if enc.Encode(v) != nil {
		return v
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(out.String()), `"`), `"`)
}
