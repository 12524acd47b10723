package agentrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// unapprovedCall begins the call of an entry about what nobody approved.
const unapprovedCall = "unapproved:"

// Unapproved reports whether the entry is about a call that the provider of the model
// made without approval.
func (e Entry) Unapproved() bool { return strings.HasPrefix(string(e.Call), unapprovedCall) }

// failUnapproved ends the run because the provider made calls that nobody had approved.
// They are in the history and in the journal, the log and the person who asked are
// told, and nothing else of the response is used. A worker that is told to stop does
// this first: the next one would ask the model again.
func (s *session) failUnapproved(ctx context.Context, used func(*Run), response Response, plans []*plan, known ...RequestPart) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.claim.lease)
	defer cancel()
	entries := s.unapproved(ctx, response)
	response.Parts = slices.DeleteFunc(slices.Clone(response.Parts), func(p ResponsePart) bool {
		_, ran := p.(ProviderCall)
		return !ran
	})
	words := unapprovedWords(response)
	for wait := 10 * time.Millisecond; ; wait = min(4*wait, longestBurst) {
		err := s.failAfter(ctx, used, words, plans, []Message{response}, entries, known...)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errClaimLost):
			return errors.Join(err, s.journalOnly(ctx, entries))
		case !pause(ctx, wait):
			return err
		}
	}
}

// stillUnapproved is for a worker that cannot end the run, because of err. It stores
// what nobody approved in the journal alone.
func (s *session) stillUnapproved(ctx context.Context, response Response, err error) error {
	if len(providerCalls(response)) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.claim.lease)
	defer cancel()
	return errors.Join(err, s.journalOnly(ctx, s.unapproved(ctx, response)))
}

// journalOnly stores the entries if they are not there yet. It needs no claim: they
// are facts about what has happened, and no worker acts on them.
func (s *session) journalOnly(ctx context.Context, entries []Entry) error {
	c := Commit{Request: approvals.RequestID(fmt.Sprintf("%s:%s:unapproved", s.claim.id, s.claim.fence)), Entries: entries}
	for wait := 10 * time.Millisecond; ; wait = min(4*wait, longestBurst) {
		err := s.claim.store.Commit(ctx, c)
		if err == nil || errors.Is(err, approvals.ErrConflict) {
			return nil
		}
		if !pause(ctx, wait) {
			return fmt.Errorf("journal what run %s did not approve: %w", s.claim.id, err)
		}
	}
}

// unapproved logs the calls of the provider that nobody approved, and returns them as
// entries of the journal.
func (s *session) unapproved(ctx context.Context, response Response) []Entry {
	taken := map[approvals.ToolCallID]bool{}
	for id := range s.journal {
		taken[id] = true
	}
	var entries []Entry
	for _, c := range providerCalls(response) {
		s.log(ctx, slog.LevelError, "the model provider ran a call without approval",
			slog.String("call", string(c.ID)), slog.String("tool", c.Name))
		id := unapprovedCall + c.ID
		if taken[id] {
			id = unused(id, taken)
		}
		taken[id] = true
		part := returned(c.ToolCall, OutcomeSuccess, cut(c.Output), s.now())
		part.ProviderCall = string(c.ID)
		if c.Failed || c.Unsure {
			part.Outcome = OutcomeFailed
		}
		entries = append(entries, Entry{
			Run: s.claim.id, Call: id, Tool: c.Name, State: EntryFinished, Fence: s.claim.fence, At: s.now(),
			Finish: Finish{Part: part, Unsure: c.Unsure},
		})
	}
	return entries
}

// unapprovedWords say, for people, what the provider did.
func unapprovedWords(response Response) string {
	var names []string
	for _, c := range providerCalls(response) {
		names = append(names, c.Name)
	}
	end := "Nothing else of its answer was used, and this run stops here."
	if response.FinishReason == FinishError {
		end = "Its answer broke off, the calls may have taken effect, and this run stops here."
	}
	return fmt.Sprintf("The model provider ran %s without approval. %s Ask your Countersign admin to check what it did, and the provider.",
		strings.Join(slices.Compact(names), ", "), end)
}
