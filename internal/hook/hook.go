// Package hook is what a coding agent calls before it runs a tool: it reads the
// question of the agent from its standard input, asks the HTTP API of Countersign
// with the token of that agent, waits until people have decided, and writes the
// answer in the form that the agent reads.
//
// It runs as a process of the agent, so it holds nothing that the agent may not
// have: no Slack, no Redis, no secret but the agent's own token. It imports
// nothing of this module.
//
// An agent takes most failures of a hook for a yes: an exit code that is not 2,
// or a text that it cannot read. So whatever is no decision is an error of [Run],
// for which the program exits with 2, and an answer is written as a whole.
//
// [Doctor] looks on the machine of an agent for settings with which a tool runs without
// being asked about.
package hook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
	"unicode/utf8"
)

// Config is what [Run] works with.
type Config struct {
	URL   string        // of the HTTP API, such as https://countersign.your-company.com
	Token string        // of the agent
	Kind  Kind          // the agent that asks
	Hold  time.Duration // how long the agent waits; 0 for what its kind allows
	Keep  bool          // a request stays open when the agent stops waiting for it
	// Grace is how long the answer may take after the hold; 0 for what its kind
	// allows. Then the agent would give up by itself, and run the tool.
	Grace time.Duration
	HTTP  *http.Client
	Now   func() time.Time
	Git   func(dir string) (repository, branch string) // nil for [Git]

	until time.Time // when the hold ends
}

// maxInput is how many bytes a question may have. After a call the result of the tool
// is in it.
const maxInput = 64 << 20

// leaving is how long what is left to do may take when the hook has to end.
const leaving = 2500 * time.Millisecond

var errTooLong = errors.New("not run: the answer took too long")

// Run answers the question that it reads. It writes either a whole answer or
// nothing; with an error, the tool must not run. Whatever it waits for, it returns
// before the agent gives up: its input, the API, a file of the repository, or who
// reads the answer.
func Run(ctx context.Context, c Config, in io.Reader, out io.Writer) error {
	form, ok := forms[c.Kind]
	if !ok {
		return fmt.Errorf("not run: there is no kind of agent %q; the kinds are %s", c.Kind, Kinds())
	}
	c.Hold, c.Grace = cmp.Or(c.Hold, form.hold), cmp.Or(c.Grace, form.grace)
	c.until = c.Now().Add(c.Hold)
	ctx, cancel := context.WithTimeoutCause(ctx, c.Hold+c.Grace, errTooLong)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- run(ctx, c, form, in, out) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(leaving)
	defer late.Stop()
	select {
	case err := <-done:
		if err == nil {
			err = stopped(ctx) // the answer may be there, but not in time
		}
		return err
	case <-late.C:
		return stopped(ctx)
	}
}

// unreported says what is not known to Countersign of an event that decides nothing.
var unreported = map[string]string{
	"ran":     "the tool ran, but its card does not say so",
	"failed":  "the tool ran and failed, but its card does not say so",
	"not_run": "the tool did not run, but its card does not say so",
	"ended":   "the session ended, but its requests may still be open",
}

// stopped says why the hook has to end.
func stopped(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errTooLong) {
		return cause
	}
	return errors.New("not run: the hook was stopped")
}

func run(ctx context.Context, c Config, form form, in io.Reader, out io.Writer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("not run: a bug in the hook: %v", p)
		}
	}()
	q, err := read(ctx, in)
	if err != nil {
		return err
	}
	ask, err := form.read(q)
	if err != nil {
		return fmt.Errorf("not run: %w", err)
	}
	api, err := newAPI(c)
	var answer []byte
	switch {
	case err != nil:
	case ask.decides && discards(out): // nobody is asked for an answer that is lost
		err = errors.New("standard output is closed or leads to " + os.DevNull + ", so the agent would not read the answer")
	case ask.decides:
		var v verdict
		if v, err = api.decide(ctx, c, form, ask); err == nil {
			answer, err = form.write(ask, v)
		}
	default:
		answer, err = []byte("{}"), api.after(ctx, ask)
	}
	switch {
	case err != nil && ask.decides:
		return fmt.Errorf("not run: %w. Nobody denied this call", err)
	case err != nil: // the model may read this, also of a call that has run
		return fmt.Errorf("%s: %w", cmp.Or(unreported[ask.outcome], "Countersign is not set up"), err)
	}
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	if len(answer) == 0 || !json.Valid(answer) {
		return errors.New("not run: the hook has no answer")
	}
	if _, err := out.Write(append(answer, '\n')); err != nil {
		return fmt.Errorf("not run: write the answer: %w", err)
	}
	return nil
}

// Refuse writes what an agent needs to read, besides an exit with 2, when [Run] or what
// comes before it has failed. That is nothing for most kinds. Gemini CLI takes an exit
// code without words for a yes, and its command may send standard error to a file.
func Refuse(kind Kind, failed error, out io.Writer) {
	if kind != Gemini {
		return
	}
	answer, err := writeGemini(question{}, verdict{reason: failed.Error()})
	if err != nil {
		return
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = out.Write(append(answer, '\n'))
	}()
	select {
	case <-written:
	case <-time.After(time.Second): // nobody reads it
	}
}

// discards reports whether what is written to out is thrown away. A standard output
// that is closed is one, because the runtime of Go opens [os.DevNull] in its place.
func discards(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	about, err := f.Stat()
	null, nullErr := os.Stat(os.DevNull)
	return err == nil && nullErr == nil && os.SameFile(about, null)
}

// read reads the question, and gives up when ctx ends: an agent may never close
// its end.
func read(ctx context.Context, in io.Reader) (map[string]json.RawMessage, error) {
	type result struct {
		raw []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		raw, err := io.ReadAll(io.LimitReader(in, maxInput+1))
		done <- result{raw, err}
	}()
	var r result
	select {
	case <-ctx.Done():
		return nil, stopped(ctx)
	case r = <-done:
	}
	doc, bad := fieldsOf(r.raw)
	switch {
	case r.err != nil:
		return nil, fmt.Errorf("not run: read the question: %w", r.err)
	case len(r.raw) > maxInput:
		// It may be about a call that has run, whose result is large.
		return nil, fmt.Errorf("not answered: the question has more than %d bytes. A call that waits for the answer must not run", maxInput)
	case bad != nil:
		return nil, fmt.Errorf("not run: the question on standard input %w", bad)
	}
	return doc, nil
}

var errNoObject = errors.New("is no JSON object")

// fieldsOf takes an object apart. One that has a key twice is read differently by
// other programs.
func fieldsOf(raw []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') || !json.Valid(raw) || !utf8.Valid(raw) {
		return nil, errNoObject
	}
	doc := map[string]json.RawMessage{}
	for d.More() {
		token, err := d.Token()
		key, ok := token.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil {
			return nil, errNoObject
		}
		if _, twice := doc[key]; twice {
			return nil, errors.New("has a key twice")
		}
		doc[key] = value
	}
	return doc, nil
}

// A question is one event of an agent, in the terms of the API.
type question struct {
	event    string
	decides  bool // whether a tool runs depends on the answer
	session  string
	use      string // the id of the call
	tool     string
	server   string
	cwd      string
	reason   string          // what the card quotes as the words of the agent
	input    json.RawMessage // compact
	text     bool            // the agent gave a text, which is in the input
	outcome  string          // of an event after the call: ran, failed, not_run, or ended for the session
	response string
}

// A verdict is what people, or the policy, said. The zero value denies.
type verdict struct {
	allow  bool
	input  json.RawMessage // what runs, if the answer is to name it; else nil
	reason string
}

// compact is JSON without white space between its tokens, which are kept as they
// are.
func compact(raw json.RawMessage) (json.RawMessage, error) {
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return nil, errors.New("the input of the tool is no JSON")
	}
	return out.Bytes(), nil
}
