package uistream

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// post is POST /api/chat: a message of the user, or their answers.
func (s *Server) post(c caller) error {
	body, err := s.body(c)
	if err != nil {
		return err
	}
	q, faults := readRequest(body)
	d, follow, err := s.manner(c.r, q.Dialect, q.Follow)
	if p, ok := errors.AsType[*problem](err); ok {
		faults = append(faults, p.Errors...)
	}
	instructions := ""
	if s.c.System {
		if instructions = q.system(); utf8.RuneCountInString(instructions) > maxSystem {
			faults = append(faults, fault{At: "/messages", Problem: fmt.Sprintf("the system messages must have at most %d characters of text", maxSystem)})
		}
	}
	if len(faults) > 0 {
		p := refuse(http.StatusUnprocessableEntity, "The request can't be understood.")
		p.Errors = faults
		return p
	}
	ctx := c.r.Context()
	at, err := s.placeOf(ctx, c.user, q.Chat)
	if err != nil {
		return err
	}
	newest := q.Messages[len(q.Messages)-1]
	asks := newest.Role == roleUser
	var answered approvals.RunID
	if asks {
		err = s.mayAsk(ctx, c.user, at)
	} else {
		answered, err = s.answered(ctx, at, newest)
	}
	if err != nil {
		return err
	}
	x := &stream{s: s, c: c, at: at, head: answered, follow: follow, tell: newTeller(d, c.user, s.c.Reasoning), counted: map[approvals.ToolCallID]bool{}}
	// This comes before the answers are decided: if the person has too many streams,
	// nothing may count. And it comes before the run begins, so that no draft is missed.
	leave, err := x.enter()
	if err != nil {
		return err
	}
	defer leave()
	last, older, unknown, err := s.decideAll(ctx, at, c.user, q)
	if err != nil {
		return err
	}
	x.notes = unknown
	for _, o := range older {
		x.notes = append(x.notes, o.data(s, c.user))
	}
	if asks {
		if x.head, err = s.say(ctx, c.user, at, q, instructions); err != nil {
			return err
		}
		return x.run()
	}
	return s.goOn(x, newest, last)
}

// mayAsk refuses a person who may not write to the agent of the chat.
func (s *Server) mayAsk(ctx context.Context, user approvals.UserID, at place) error {
	if at.agent == "" {
		return refuse(http.StatusForbidden, "No agent answers in this conversation any more. Your message was not taken.")
	}
	return s.c.People.MayAsk(ctx, user, at.agent)
}

// body reads the body of a request. The credential may be taken away while it arrives, so
// who calls is proven again.
func (s *Server) body(c caller) ([]byte, error) {
	media, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, "The body must be JSON.")
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "us-ascii") {
		return nil, refuse(http.StatusUnsupportedMediaType, "The body must be in UTF-8.")
	}
	raw, err := io.ReadAll(c.r.Body)
	if _, large := errors.AsType[*http.MaxBytesError](err); err != nil && !large && !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, refuse(http.StatusBadRequest, "The request did not arrive as a whole. Nothing changed.")
	}
	if err != nil {
		return nil, err
	}
	return raw, s.still(c)
}

// still returns an error if the request does not prove its caller any more.
func (s *Server) still(c caller) error {
	user, err := s.c.People.Prove(c.r)
	if err == nil && user != c.user {
		err = refuse(http.StatusUnauthorized, "Sign in: the credential proves somebody else now.")
	}
	return err
}

// manner is how the client wants its stream.
func (s *Server) manner(r *http.Request, dialect string, follow *bool) (Dialect, bool, error) {
	p := refuse(http.StatusUnprocessableEntity, "The request can't be understood.")
	if h := r.Header.Get(headerSDK); h != "" {
		dialect = h
	}
	d, err := parseDialect(dialect)
	if err != nil {
		p.Errors = append(p.Errors, fault{At: "/sdk", Problem: err.Error()})
	}
	if dialect == "" {
		d = s.c.Dialect
	}
	stays := follow != nil && *follow
	if h := r.Header.Get(headerFollow); h != "" {
		if stays, err = strconv.ParseBool(h); err != nil {
			p.Errors = append(p.Errors, fault{At: headerFollow, Problem: "must be true or false"})
		}
	}
	if len(p.Errors) > 0 {
		return "", false, p
	}
	return d, stays, nil
}

// say commits the last message of the user, once, and returns the first run of
// what it leads to.
func (s *Server) say(ctx context.Context, user approvals.UserID, at place, q request, instructions string) (approvals.RunID, error) {
	m := q.Messages[len(q.Messages)-1]
	key := m.ID + "\n" + m.text()
	if m.ID == "" {
		key = rand.Text() // a client does not repeat such a request by itself
	}
	via := ""
	if at.shared { // other people are here, and would not see the instructions
		key, via, instructions = string(user)+"\n"+key, surface, ""
	}
	if q.Trigger == triggerRegenerate || strings.HasPrefix(m.ID, saidPrefix) { // whose regenerate() was lost
		made, next, err := s.again(ctx, at, m, key)
		if err != nil || made != "" {
			return made, err
		}
		key = next
	}
	run, err := s.c.Runner.Mention(ctx, agentrun.Mention{
		Event: event(key), Origin: at.origin, Agent: at.agent, Requester: user, Text: m.text(), Via: via,
		Instructions: instructions,
	})
	if err != nil {
		return "", err
	}
	s.c.Log.InfoContext(ctx, "message of a chat taken", slog.String("run", string(run.ID)), slog.String("user", string(user)))
	return s.turns.headOf(ctx, run.ID)
}

// event names a message for [agentrun.Mention].
func event(key string) string {
	sum := sha256.Sum256([]byte(key))
	return surface + ":" + hex.EncodeToString(sum[:])
}

// again finds the answer to a message that is to be made again. While the last one is
// not over it is that one: a client that lost its connection sends this to try again, and
// a browser may send it twice by itself. If the message is one of the history, made is the
// run of that answer; otherwise next is the key under which it was asked for. Once it is
// over, next is a new key.
func (s *Server) again(ctx context.Context, at place, m message, key string) (made approvals.RunID, next string, err error) {
	head, said, err := s.said(ctx, at, m)
	if err != nil {
		return "", "", err
	}
	first := string(head)
	for n := 1; ; n++ {
		if !said {
			id, err := agentrun.MentionRunID(at.thread, event(key))
			if err != nil {
				return "", "", err
			}
			head, err = s.turns.headOf(ctx, id)
			if errors.Is(err, approvals.ErrNotFound) {
				return "", key, nil
			}
			if err != nil {
				return "", "", err
			}
			if first == "" { // of a message that others were merged with, it is the run of all
				first = string(head)
			}
		}
		t, err := s.turns.load(ctx, head)
		switch {
		case err != nil:
			return "", "", err
		case !t.over && said:
			return head, "", nil
		case !t.over:
			return "", key, nil
		}
		said, key = false, fmt.Sprintf("again\n%s\n%d", first, n)
	}
}

// said returns the first run of what a message of the history has led to.
func (s *Server) said(ctx context.Context, at place, m message) (head approvals.RunID, ok bool, err error) {
	id, ok := headOf(m.ID, saidPrefix)
	if !ok {
		return "", false, nil
	}
	run, err := s.c.Runs.Run(ctx, id)
	if errors.Is(err, approvals.ErrNotFound) || err == nil && (run.Thread != at.thread || run.Prompt != m.text()) {
		return "", false, nil
	}
	return run.ID, err == nil, err
}

// answered returns the first run of the message that the client has answered.
func (s *Server) answered(ctx context.Context, at place, m message) (approvals.RunID, error) {
	if head, ok := headOf(m.ID, messagePrefix); ok {
		run, err := s.c.Runs.Run(ctx, head)
		if err == nil && run.Thread == at.thread {
			return head, nil
		}
		if err != nil && !errors.Is(err, approvals.ErrNotFound) {
			return "", err
		}
	}
	return "", refuse(http.StatusConflict, "The last message isn't one of this chat. Nothing changed. Reload the chat.")
}

// goOn continues the message that the client has answered.
func (s *Server) goOn(x *stream, m message, answered []outcome) error {
	ctx := x.c.r.Context()
	t, err := s.load(ctx, x.at, x.c.user, x.head)
	if err != nil {
		return err
	}
	x.tell.knows(m, t)
	for _, o := range answered {
		id := o.approval.Call.ID
		if t.find(id) == nil { // it is of another message
			x.notes = append(x.notes, o.data(s, x.c.user))
			continue
		}
		x.tell.words[string(id)] = o.words
		x.counted[id] = o.counted
	}
	return x.run()
}

// resume is GET /api/chat/{id}/stream: the message that is being made, from its
// beginning. It is 204 if there is none, also for a chat that there is not.
func (s *Server) resume(c caller) error {
	d, follow, err := s.manner(c.r, "", nil)
	if err != nil {
		return err
	}
	ctx := c.r.Context()
	at, err := s.placeOf(ctx, c.user, c.r.PathValue("id"))
	var thread agentrun.Thread
	if err == nil {
		thread, err = s.c.Runs.Thread(ctx, at.thread)
	}
	if errors.Is(err, approvals.ErrNotFound) || err == nil && thread.Active == "" {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if err != nil {
		return err
	}
	head, err := s.turns.headOf(ctx, thread.Active)
	if err != nil {
		return err
	}
	x := &stream{s: s, c: c, head: head, at: at, follow: follow, tell: newTeller(d, c.user, s.c.Reasoning)}
	leave, err := x.enter()
	if err != nil {
		return err
	}
	defer leave()
	return x.run()
}
