// Package rulecheck asks the services that rules of the policy name as their checks.
// The messages are signed and sent like those of webhooks; package webhook says to which
// addresses they may go.
//
// A check is asked while a call waits for its ruling, so its time is limited. It is
// asked again for every ruling, and no answer is kept, because an answer is about one
// call at one moment. An answer is a JSON object with the keys answer (ok, ask or deny)
// and reason. Anything else, and no answer in time, is an error: the policy then fails
// closed.
package rulecheck

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/webhook"
)

// Time limits of one check.
const (
	DefaultTimeout = 2 * time.Second
	MaxTimeout     = 10 * time.Second
)

// reserve is how much of the caller's time a check must leave for storing the outcome:
// when a person edits a call, Slack waits three seconds for all of it.
const reserve = time.Second

// A Check is a service that is asked about calls.
type Check struct {
	Endpoint  webhook.Endpoint
	Timeout   time.Duration // 0 means [DefaultTimeout]
	Arguments bool          // whether it gets the arguments
}

// A Sender asks an endpoint, as [webhook.Sender] does.
type Sender interface {
	Ask(ctx context.Context, e webhook.Endpoint, m webhook.Message, within time.Duration) ([]byte, webhook.Outcome)
}

// Config is what [Checks] are made of.
type Config struct {
	Checks map[string]Check // by name
	Sender Sender
	Now    func() time.Time
	Log    *slog.Logger
	Count  func(check, answer string) // counts an answer; nil counts nothing
}

// Checks are the checks of a configuration. They are safe for concurrent use.
type Checks struct{ c Config }

// New returns the checks.
func New(c Config) *Checks {
	if c.Count == nil {
		c.Count = func(string, string) {}
	}
	return &Checks{c}
}

// What can be wrong with an answer. The texts never quote it.
var (
	errUnknown  = errors.New("the configuration has no check of this name")
	errNoTime   = errors.New("there was no time left to ask it")
	errNoAnswer = errors.New("the answer is not a JSON object with answer (ok, ask or deny) and reason")
)

// Ask asks a check. It is a [policy.Checker].
func (c *Checks) Ask(ctx context.Context, q policy.Question) (policy.Answer, error) {
	began := c.c.Now()
	a, err := c.ask(ctx, q)
	level, said := slog.LevelInfo, string(a.Answer)
	attrs := []slog.Attr{
		slog.String("check", q.Check), slog.String("rule", q.Rule), slog.String("agent", q.Call.Agent),
		slog.String("tool", q.Call.Call.Name), slog.String("call", string(q.Call.Call.ID)),
	}
	if err != nil {
		level, said = slog.LevelWarn, string(approvals.CheckFailed)
		attrs = append(attrs, slog.Any("err", err))
	}
	c.c.Count(q.Check, said)
	c.c.Log.LogAttrs(ctx, level, "check asked", append(attrs, slog.String("answer", said), slog.Duration("took", c.c.Now().Sub(began)))...)
	return a, err
}

func (c *Checks) ask(ctx context.Context, q policy.Question) (policy.Answer, error) {
	check, ok := c.c.Checks[q.Check]
	if !ok {
		return policy.Answer{}, errUnknown
	}
	within := check.Timeout
	if within == 0 {
		within = DefaultTimeout
	}
	if end, limited := ctx.Deadline(); limited {
		if within = min(within, end.Sub(c.c.Now())-reserve); within <= 0 {
			return policy.Answer{}, errNoTime
		}
	}
	data, err := json.Marshal(questionOf(q, check.Arguments))
	if err != nil {
		return policy.Answer{}, fmt.Errorf("encode the question: %w", err)
	}
	body, o := c.c.Sender.Ask(ctx, check.Endpoint, webhook.Message{
		ID: "check_" + rand.Text(), Type: "policy.check", Timestamp: c.c.Now(), Data: data,
	}, within)
	if o.Kind != webhook.Delivered {
		return policy.Answer{}, errors.New(o.Reason)
	}
	return read(body)
}

// question is the data of a message.
type question struct {
	Check     string             `json:"check"`
	Rule      string             `json:"rule"`
	Would     policy.Kind        `json:"would"`
	Agent     string             `json:"agent"`
	Requester approvals.UserID   `json:"requester,omitempty"`
	Channel   string             `json:"channel,omitempty"`
	Call      string             `json:"call"`
	Tool      string             `json:"tool"`
	SHA256    string             `json:"arguments_sha256"`
	Size      int                `json:"arguments_size"`
	Arguments *string            `json:"arguments,omitempty"` // their exact bytes
	Severity  approvals.Severity `json:"severity,omitempty"`
	Gate      approvals.Gate     `json:"gate,omitempty"`
	Cwd       string             `json:"cwd,omitempty"`
	Repo      string             `json:"repository,omitempty"`
	Branch    string             `json:"branch,omitempty"`
	Server    string             `json:"server,omitempty"`
}

func questionOf(q policy.Question, arguments bool) question {
	p := q.Call
	sum := sha256.Sum256(p.Call.Args)
	out := question{
		Check: q.Check, Rule: q.Rule, Would: q.Would, Agent: p.Agent, Requester: p.Requester, Channel: p.Channel,
		Call: string(p.Call.ID), Tool: p.Call.Name, SHA256: hex.EncodeToString(sum[:]), Size: len(p.Call.Args),
		Severity: q.Severity, Gate: p.Gate, Cwd: p.Place.Cwd, Repo: p.Place.Repository, Branch: p.Place.Branch, Server: p.Place.Server,
	}
	if arguments {
		args := string(p.Call.Args)
		out.Arguments = &args
	}
	return out
}

// read decodes an answer. One that could be read in two ways is an error.
func read(body []byte) (policy.Answer, error) {
	var keys map[string]string // encoding/json would take ANSWER for answer in a struct
	if approvals.CheckArgs(body) != nil || json.Unmarshal(body, &keys) != nil {
		return policy.Answer{}, errNoAnswer
	}
	a := policy.Answer{Answer: approvals.CheckAnswer(keys["answer"]), Reason: keys["reason"]}
	delete(keys, "answer")
	delete(keys, "reason")
	if len(keys) > 0 {
		return policy.Answer{}, errNoAnswer
	}
	switch a.Answer {
	case approvals.CheckOK, approvals.CheckAsk, approvals.CheckDeny:
		return a, nil
	case approvals.CheckFailed: // the policy says this about a check; no check says it
	}
	return policy.Answer{}, errNoAnswer
}
