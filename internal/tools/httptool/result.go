package httptool

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// An answer is what a model reads of an answer of the endpoint.
type answer struct {
	Status int    `json:"status"`
	Body   any    `json:"body,omitempty"` // JSON, or text
	Note   string `json:"note,omitempty"`
	Bytes  int    `json:"bytes,omitempty"` // of what is not shown
	SHA256 string `json:"sha256,omitempty"`
}

// maxDepth is how deep JSON may nest to be read as such.
const maxDepth = 64

// result is what the model reads of a success, within the bound of the tool.
func (t *Tool) result(status int, content []byte) agentrun.Result {
	a := answer{Status: status}
	room := cmp.Or(t.config.MaxResult, DefaultMaxResult)
	long := len(content) > maxAnswer
	content = content[:min(len(content), maxAnswer)]
	text := t.conceal(string(content))
	for i := 1; long && i < utf8.UTFMax; i++ { // its last character may be cut
		if r, n := utf8.DecodeLastRuneInString(text); r == utf8.RuneError && n == 1 {
			text = text[:len(text)-1]
		}
	}
	switch {
	case len(content) == 0:
	case !utf8.ValidString(text) && long:
		a.Note = fmt.Sprintf("The answer is no text, so it is not shown. It has more than %d bytes.", maxAnswer)
	case !utf8.ValidString(text):
		sum := sha256.Sum256(content)
		a.Bytes, a.SHA256, a.Note = len(content), hex.EncodeToString(sum[:]), "The answer is no text, so it is not shown."
	case len(text) <= room && approvals.CheckJSON([]byte(text), maxDepth) == nil:
		a.Body = json.RawMessage(text)
	default:
		shown := strings.ToValidUTF8(text[:min(len(text), room)], "")
		a.Body = shown
		if len(shown) < len(text) {
			a.Note = fmt.Sprintf("Cut: the first %d of %d bytes.", len(shown), len(text))
		}
		if long {
			a.Note = fmt.Sprintf("Cut: the first %d bytes of more than %d.", len(shown), maxAnswer)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(a); err != nil {
		return agentrun.Result{Value: fmt.Appendf(nil, `{"status":%d}`, status)} // unreachable
	}
	return agentrun.Result{Value: bytes.TrimSpace(b.Bytes())}
}
