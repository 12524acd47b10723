package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"
)

// MaxBody is how many bytes a message may have. The specification asks for small
// messages: an event says what happened and where to read it, and the receiver
// fetches the rest with its own credential.
const MaxBody = 20_000

// What is wrong with a message, for those who make one.
var (
	ErrTooLarge = fmt.Errorf("the message has more than %d bytes", MaxBody)
	ErrMessage  = errors.New("the message is not valid")
)

// A Message is an event that a receiver is told about.
type Message struct {
	ID        string // the same for every attempt, by which a receiver drops repetitions
	Type      string // such as "approval.settled"
	Timestamp time.Time
	Data      json.RawMessage // a JSON object
	// Trace is the traceparent of whoever asked for what the message is about, and is
	// sent as the header of that name. Another form than that of W3C is left out.
	Trace string
}

var (
	idForm    = regexp.MustCompile(`^[A-Za-z0-9_:-]{1,255}$`) // no dot: it separates what is signed
	traceForm = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)
	typeForm  = regexp.MustCompile(`^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*$`)
)

// Body returns the bytes that are signed and sent, the same for every attempt. Data
// is in it as it is given, byte for byte. A message that is too large is never cut and
// never sent: it is [ErrTooLarge], and the caller makes one without the details.
func (m Message) Body() ([]byte, error) { return m.body(MaxBody, ErrTooLarge) }

// body is [Message.Body] with another limit.
func (m Message) body(most int, tooLarge error) ([]byte, error) {
	switch data := bytes.TrimSpace(m.Data); {
	case !idForm.MatchString(m.ID):
		return nil, fmt.Errorf("%w: the id is not made of 1 to 255 letters, digits, colons, hyphens and underscores", ErrMessage)
	case len(m.Type) > 255 || !typeForm.MatchString(m.Type):
		return nil, fmt.Errorf("%w: the type consists of words with dots between them", ErrMessage)
	case m.Timestamp.IsZero():
		return nil, fmt.Errorf("%w: it has no time", ErrMessage)
	case !bytes.HasPrefix(data, []byte("{")) || !json.Valid(data) || !utf8.Valid(data):
		return nil, fmt.Errorf("%w: the data is not a JSON object", ErrMessage)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"type":%q,"timestamp":%q,"data":`, m.Type, m.Timestamp.UTC().Format(time.RFC3339Nano))
	b.Write(m.Data)
	b.WriteByte('}')
	if b.Len() > most {
		return nil, fmt.Errorf("%w: it has %d", tooLarge, b.Len())
	}
	return b.Bytes(), nil
}
