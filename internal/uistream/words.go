package uistream

import (
	"context"
	"errors"

	"github.com/countersign/countersign/internal/approvals"
)

// What people read about their answers.
const (
	wordsUnknown    = "There is no such request in this chat. Nothing changed."
	wordsOtherCall  = "The answer is about another call than the request. Nothing changed."
	wordsEdited     = "The arguments in your answer aren't those of the call. Nothing changed, and nothing was run. Reload the chat."
	wordsStale      = "Someone edited the arguments after you were asked. Nothing was decided. Read the new ones, then decide."
	wordsCounted    = "Your approval counts. The call needs more approvals."
	wordsTakenBack  = "You took a decision back, so this answer doesn't count. Nothing changed. To decide again, use the card in Slack."
	wordsDenied     = "Your denial counts. More people must deny the call before it is denied."
	wordsUnfinished = "The agent did not finish this call. Nothing was run."
	wordsTooLong    = "Your reason is too long. Nothing changed. Decide again with a shorter one."
	wordsSiblings   = "Decided. The agent continues when all calls are decided."
)

// explain turns the reason for which an answer does not count into words for the
// person. Other errors are not for them.
func explain(err error, v approvals.Verdict) (text string, known bool) {
	verb := "approve"
	if v == approvals.Deny {
		verb = "deny"
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return refused.Words, true
	}
	switch {
	case errors.Is(err, approvals.ErrInDoubt):
		return "It isn't known whether this call took effect, so it can't be " + map[string]string{"approve": "approved", "deny": "denied"}[verb] + ". Nothing changed. Say in Slack what became of it.", true
	case errors.Is(err, approvals.ErrSettled):
		return "This was already decided. Nothing changed.", true
	case errors.Is(err, approvals.ErrExpired):
		return "The time to decide is over. Nothing changed, and the call won't run.", true
	case errors.Is(err, approvals.ErrOwnEdit):
		return "You edited this call, so someone else must approve it. Nothing changed.", true
	case errors.Is(err, approvals.ErrOwnWords):
		return "You wrote to the agent before it made this call, so someone else must approve it. Nothing changed. You can still deny it.", true
	case errors.Is(err, approvals.ErrOwnRequest):
		return "You asked for this, so someone else must " + verb + " it. Nothing changed.", true
	case errors.Is(err, approvals.ErrNotEligible):
		return "You can't " + verb + " this. Nothing changed.", true
	case errors.Is(err, approvals.ErrStale):
		return wordsStale, true
	case errors.Is(err, approvals.ErrReasonNeeded):
		return "This approval needs a reason. Nothing changed.", true
	case errors.Is(err, approvals.ErrDecided):
		return "You already decided otherwise. Nothing changed. To decide again, take that back in Slack, and use the card there.", true
	case errors.Is(err, approvals.ErrConflict):
		return "Several people are deciding right now. Nothing changed. Try again in a moment.", true
	case errors.Is(err, context.DeadlineExceeded):
		return "", false
	}
	return "", false
}
