package approvals

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

// What the model reads about a call that ended without a decision. None of them
// is a denial, and the model must not take it for one. Somebody may have denied it all
// the same, where a rule needs several denials.
const (
	// ExpiredMessage is about a call whose deadline passed.
	ExpiredMessage = "This tool call was not denied; the time to approve it ran out. It was not executed."
	// WithdrawnMessage is about a call that was ended from outside.
	WithdrawnMessage = "This tool call was not denied; it was withdrawn before it was approved. It was not executed."
	// UnansweredMessage is about an external call that was ended from outside.
	UnansweredMessage = "This tool call was withdrawn before its result came in. Whether it was executed elsewhere is not known."
)

// Results returns the answers for the model. They exist exactly when the batch
// is settled (otherwise [ErrOpen]) and answer exactly its calls. args are the
// current arguments of the approved calls, checked against the digests that
// were approved: a mismatch is [ErrStale] and nothing is answered. The stored
// status is not trusted: one that the decisions do not imply is [ErrInvalid].
func (b Batch) Results(args map[ToolCallID]json.RawMessage) (DeferredToolResults, error) {
	if !b.Settled() {
		return DeferredToolResults{}, fmt.Errorf("batch %s: %w", b.ID, ErrOpen)
	}
	results := DeferredToolResults{
		Calls:     make(map[ToolCallID]CallResult, len(b.Calls)),
		Approvals: make(map[ToolCallID]ApprovalResult, len(b.Approvals)),
		Metadata:  map[ToolCallID]json.RawMessage{},
	}
	for _, a := range b.Approvals {
		id := a.Call.ID
		if err := b.Implies(a); err != nil {
			return DeferredToolResults{}, err
		}
		if a.Status != Approved {
			results.Approvals[id] = a.unapproved()
			continue
		}
		approved, err := b.approved(a, args[id])
		if err != nil {
			return DeferredToolResults{}, err
		}
		results.Approvals[id] = approved
		results.Metadata[id] = b.provenance(a)
	}
	for _, c := range b.Calls {
		result, err := checkResult(c.Result)
		if err != nil {
			return DeferredToolResults{}, fmt.Errorf("call %q: %w", string(c.Call.ID), err)
		}
		results.Calls[c.Call.ID] = result
	}
	if len(results.Calls)+len(results.Approvals) != len(b.Calls)+len(b.Approvals) {
		return DeferredToolResults{}, fmt.Errorf("%w: batch %s has two calls of one id", ErrInvalid, b.ID)
	}
	return results, nil
}

// Implies is nil if the decisions of an approval of the batch imply its status, and else
// [ErrInvalid]. It is what must hold before a call runs that is stored as approved.
func (b Batch) Implies(a Approval) error {
	if implied := b.implied(a); implied != a.Status {
		return fmt.Errorf("%w: call %q is stored as %s but was %s", ErrInvalid, string(a.Call.ID), a.Status, implied)
	}
	return nil
}

// Authors returns whose words the model reads with the answers of the batch, in
// the order of the calls, each once: those who denied a call, gave it up, said
// that it took effect or ended it, and wrote something, and those who changed
// arguments with which a call is to run. What it does next may follow from these
// words, so the resumed run keeps them as participants of the calls that come
// after. People who only approve give the model no words and are not among them.
func (b Batch) Authors() []UserID {
	var all []UserID
	said := func(u UserID, reason string) {
		if oneLine(reason) != "" {
			all = append(all, u)
		}
	}
	for _, a := range b.Approvals {
		for _, d := range a.Decisions {
			if a.Status == Denied && d.Verdict == a.No() || a.Status == Confirmed && d.Verdict == Happened {
				said(d.By.User, d.Reason)
			}
		}
		if a.Status == Withdrawn {
			said(a.Ending.By, a.Ending.Reason)
		}
		if a.Status == Approved {
			all = append(all, a.Editors()...)
		}
	}
	for _, c := range b.Calls {
		if _, ended := c.Result.(ToolDenied); ended {
			said(c.Ending.By, c.Ending.Reason)
		}
	}
	return union(nil, all)
}

// approved lets the call run with the arguments that were approved, and no others.
func (b Batch) approved(a Approval, args json.RawMessage) (ToolApproved, error) {
	call := ToolCall{ID: a.Call.ID, Name: a.Call.Name, Args: args}
	if DigestOf(b.ID, call) != a.Call.Digest {
		return ToolApproved{}, fmt.Errorf("call %q: %w", string(call.ID), ErrStale)
	}
	if a.Call.Digest == a.Proposed {
		return ToolApproved{}, nil
	}
	if len(args) == 0 {
		return ToolApproved{}, fmt.Errorf("%w: call %q was amended to no bytes at all", ErrInvalid, string(call.ID))
	}
	return ToolApproved{OverrideArgs: slices.Clone(args)}, nil
}

// provenance says who let the call run, for its tool.
func (b Batch) provenance(a Approval) json.RawMessage {
	meta := struct {
		ApprovedBy []UserID `json:"approved_by"`
		AmendedBy  []UserID `json:"amended_by,omitempty"`
		At         string   `json:"at"`
	}{At: a.Ending.At.Format(time.RFC3339Nano)}
	for _, p := range b.counted(a, a.Yes()) {
		meta.ApprovedBy = append(meta.ApprovedBy, p.User)
	}
	for _, m := range a.Amendments {
		if a.Call.Digest != a.Proposed && !slices.Contains(meta.AmendedBy, m.By.User) {
			meta.AmendedBy = append(meta.AmendedBy, m.By.User)
		}
	}
	return compactJSON(meta)
}

// unapproved says how the call was answered, if it is not to run.
func (a Approval) unapproved() ApprovalResult {
	if a.Status == Confirmed {
		return a.happened()
	}
	return a.Denial()
}

// Denial says, for the model, why a call that is settled and not approved did not
// run, or does not run again. What people wrote is quoted: it is
// information for the model, not an instruction to it.
func (a Approval) Denial() ToolDenied {
	if a.InDoubt() {
		return a.doubted()
	}
	switch a.Status {
	case Expired:
		return ToolDenied{Message: ExpiredMessage}
	case Withdrawn:
		return ToolDenied{Message: because(WithdrawnMessage, a.Ending.Reason)}
	case Denied, Pending, Approved, Confirmed: // only Denied comes here
	}
	var reasons []string
	for _, d := range a.Decisions {
		if r := oneLine(d.Reason); d.Verdict == Deny && r != "" {
			reasons = append(reasons, r)
		}
	}
	return ToolDenied{Message: because(DeniedMessage, strings.Join(reasons, " / "))}
}

// maxQuoted is how many characters of a reason the model reads.
const maxQuoted = 1000

// because adds the reason to the sentence, as a quoted string on one line.
func because(sentence, reason string) string {
	return quoting(sentence, "The reason that was given", reason)
}

// quoting adds what someone wrote to the sentence, as a quoted string on one line;
// what names it.
func quoting(sentence, what, words string) string {
	words = oneLine(words)
	if words == "" {
		return sentence
	}
	intro := " " + what + ", quoted: "
	if runes := []rune(words); len(runes) > maxQuoted {
		words = string(runes[:maxQuoted])
		begins := strings.ToLower(what[:1]) + what[1:]
		intro = fmt.Sprintf(" The beginning of %s, %d of %d characters, quoted: ", begins, maxQuoted, len(runes))
	}
	return sentence + intro + string(compactJSON(words))
}

// oneLine removes what a reader would not see and what would start a new line.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case Invisible(r), !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.Join(strings.Fields(s), " ")
}

// compactJSON encodes what cannot fail to encode, without escapes for HTML.
func compactJSON(v any) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("approvals: encode %T: %v", v, err))
	}
	return bytes.TrimSpace(buf.Bytes())
}
