package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/httpapi/format"
)

const (
	// maxBody is how many bytes a body may have: the state, and all calls.
	maxBody = 4 << 20
	// maxDepth is how deep it may nest around arguments, which may nest 64 deep.
	maxDepth = 80
	// writeTime is how long an answer may take to be sent.
	writeTime = 20 * time.Second
)

// whole reads what of the body was not read yet.
func (c caller) whole() ([]byte, error) {
	raw, err := io.ReadAll(c.r.Body)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, refuse(kindTooLarge, "a body may have at most %d bytes", maxBody)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, refuse(kindTooSlow, "").set("Connection", "close")
	}
	if err != nil {
		return nil, refuse(kindMalformed, "the body ends early").set("Connection", "close")
	}
	return raw, nil
}

// waits prepares for a request that takes longer than the deadline for reading it. That
// deadline would end it, because the server reads on to learn whether the client is
// still there. The whole body has to be there by then: for a rest of it, the server
// would wait without a deadline after the answer.
func (c caller) waits() error {
	if _, err := c.whole(); err != nil {
		return err
	}
	_ = c.control.SetReadDeadline(time.Time{})
	return nil
}

// body reads the whole body: one JSON value that every reader reads alike. An
// empty body is nil. The credential may be taken away while the body arrives.
func (c caller) body() (json.RawMessage, error) {
	raw, err := c.whole()
	if err != nil {
		return nil, err
	}
	if len(raw) == 0 {
		return nil, nil
	}
	if err := c.still(); err != nil {
		return nil, err
	}
	media, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return nil, refuse(kindMediaType, "")
	}
	if charset, ok := params["charset"]; ok && !isUTF8(charset) {
		return nil, refuse(kindMediaType, "JSON is read as UTF-8")
	}
	if coding := c.r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, refuse(kindMediaType, "a body with a content encoding is not read")
	}
	if err := approvals.CheckJSON(raw, maxDepth); err != nil {
		return nil, refuse(kindMalformed, "%s", strings.TrimPrefix(err.Error(), approvals.ErrInvalid.Error()+" JSON "))
	}
	return raw, nil
}

// isUTF8 reports whether a text in the charset is UTF-8, as JSON must be (RFC 8259).
func isUTF8(charset string) bool {
	return strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "us-ascii")
}

// object reads a body that is an object with these keys. Without a body it is
// empty.
func (c caller) object(known ...string) (map[string]format.Value, error) {
	raw, err := c.body()
	if raw == nil || err != nil {
		return map[string]format.Value{}, err
	}
	return format.Value{Raw: raw}.Object(known...)
}

// idempotencyKey returns the Idempotency-Key: a string of structured fields, or
// the same without its quotes.
func (c caller) idempotencyKey() (string, error) {
	const name = "Idempotency-Key"
	wrong := &format.RequestError{At: name, Problem: "must be one text of 1 to 255 printable ASCII characters, in quotes or without"}
	values := c.r.Header.Values(name)
	if len(values) == 0 {
		return "", nil
	}
	s := strings.Trim(values[0], " \t")
	if inner, quoted := strings.CutPrefix(s, `"`); quoted {
		if inner, quoted = strings.CutSuffix(inner, `"`); !quoted {
			return "", wrong
		}
		var ok bool
		if s, ok = unquote(inner); !ok {
			return "", wrong
		}
	} else if strings.ContainsAny(s, "\", ;\\") {
		return "", wrong
	}
	printable := !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
	if len(values) != 1 || len(s) == 0 || len(s) > 255 || !printable {
		return "", wrong
	}
	return s, nil
}

// unquote reads the inside of a string of structured fields (RFC 9651): only a
// quote and a backslash are escaped, and always.
func unquote(s string) (string, bool) {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return "", false
		case '\\':
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
		}
		out.WriteByte(s[i])
	}
	return out.String(), true
}
