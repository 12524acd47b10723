package card

import (
	"errors"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// Reopened is the batch with this call alone, as if nobody had decided yet and
// there were time.
func Reopened(b approvals.Batch, a approvals.Approval) (approvals.Batch, approvals.Approval) {
	a.Status, a.Ending, a.Decisions, a.Requirement.Deadline = approvals.Pending, approvals.Ending{}, nil, time.Time{}
	b.Approvals, b.Calls = []approvals.Approval{a}, nil
	return b, a
}

// bars reports whether the person may not sign the call, whatever names them:
// they asked for it, or changed it.
func bars(b approvals.Batch, a approvals.Approval, user approvals.UserID) bool {
	b, a = Reopened(b, a)
	err := Taken(b, a, approvals.Principal{User: user}, approvals.Approve, b.OpenedAt)
	return errors.Is(err, approvals.ErrOwnRequest)
}

// Taken is nil if this verdict of the person on the call would be taken now.
func Taken(b approvals.Batch, a approvals.Approval, who approvals.Principal, v approvals.Verdict, now time.Time) error {
	_, _, err := b.Apply(approvals.Decide{Decision: approvals.Decision{
		Call: a.Call.ID, By: who, Verdict: v, Digest: a.Call.Digest, Reason: "a reason", At: now,
	}})
	return err
}

// Unbarred is whom a quorum names, without the people who may not sign.
func Unbarred(b approvals.Batch, a approvals.Approval, f approvals.From) approvals.From {
	f.Users = slices.DeleteFunc(slices.Clone(f.Users), func(u approvals.UserID) bool { return bars(b, a, u) })
	return f
}
