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
package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Config is what [Run] works with.
type Config struct {
	URL   string        // of the HTTP API, such as https://countersign.your-company.com
	Token string        // of the agent
	Kind  Kind          // the agent that asks
	Hold  time.Duration // how long the agent waits; 0 for what its kind allows
	Keep  bool          // a request stays open when the agent stops waiting for it
	HTTP  *http.Client
	Now   func() time.Time
	Git   func(dir string) (repository, branch string) // nil for [Git]
}

// maxInput is how many bytes a question may have.
const maxInput = 4 << 20

// Run answers the question that it reads. It writes either a whole answer or
// nothing; with an error, the tool must not run.
func Run(ctx context.Context, c Config, in io.Reader, out io.Writer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("not run: a bug in the hook: %v", p)
		}
	}()
	q, err := read(ctx, in)
	if err != nil {
		return err
	}
	form, ok := forms[c.Kind]
	if !ok {
		return fmt.Errorf("not run: there is no kind of agent %q; the kinds are %s", c.Kind, Kinds())
	}
	if c.Hold == 0 {
		c.Hold = form.hold
	}
	ask, err := form.read(q)
	if err != nil {
		return fmt.Errorf("not run: %w", err)
	}
	api, err := newAPI(c)
	if err != nil {
		return fmt.Errorf("not run: %w", err)
	}
	var answer []byte
	switch {
	case ask.decides:
		var v verdict
		if v, err = api.decide(ctx, c, form, ask); err == nil {
			answer, err = form.write(ask, v)
		}
	default:
		answer, err = []byte("{}"), api.after(ctx, ask)
	}
	if err != nil {
		return fmt.Errorf("not run: %w. Nobody denied this call", err)
	}
	if ctx.Err() != nil {
		return errors.New("not run: the hook was stopped")
	}
	if len(answer) == 0 || !json.Valid(answer) {
		return errors.New("not run: the hook has no answer")
	}
	if _, err := out.Write(append(answer, '\n')); err != nil {
		return fmt.Errorf("not run: write the answer: %w", err)
	}
	return nil
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
		return nil, errors.New("not run: the hook was stopped")
	case r = <-done:
	}
	doc := map[string]json.RawMessage{}
	switch {
	case r.err != nil:
		return nil, fmt.Errorf("not run: read the question: %w", r.err)
	case len(r.raw) > maxInput:
		return nil, fmt.Errorf("not run: the question has more than %d bytes", maxInput)
	case json.Unmarshal(r.raw, &doc) != nil || doc == nil:
		return nil, errors.New("not run: the question on standard input is no JSON object")
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
	input    json.RawMessage // compact
	outcome  string          // of an event after the call: ran, failed, not_run, or ended for the session
	response string
}

// A verdict is what people, or the policy, said. The zero value denies.
type verdict struct {
	allow  bool
	input  json.RawMessage // what runs, if it is not what was asked
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
