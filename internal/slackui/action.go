package slackui

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// An Action is what a button or a box means. Slack wants every action_id of a
// message to be different, so a number follows it there.
type action string

// The actions.
const (
	actionApprove    action = "countersign.approve"     // approves the call of its value
	actionSign       action = "countersign.sign"        // opens the form in which a call that its card does not show whole is approved
	actionDeny       action = "countersign.deny"        // opens the form for a denial
	actionEdit       action = "countersign.edit"        // opens the form for changed arguments
	actionRetract    action = "countersign.retract"     // takes back the person's own decision
	actionView       action = "countersign.view"        // opens the whole arguments of a call
	actionPage       action = "countersign.page"        // turns a page of them
	actionReview     action = "countersign.review"      // opens the card of its value
	actionEach       action = "countersign.each"        // opens the card on which equal calls are decided one by one
	actionNext       action = "countersign.next"        // shows the next card that waits for the person
	actionDigest     action = "countersign.digest"      // opens the request of a digest that has waited longest
	actionTurn       action = "countersign.turn"        // turns a page of the Home
	actionBack       action = "countersign.back"        // ends the person's own absence
	actionSeveral    action = "countersign.several"     // opens a sheet of all that waits for the person
	actionSheet      action = "countersign.sheet"       // opens a sheet of its value
	actionSheetPage  action = "countersign.sheet_page"  // turns a page of a sheet
	actionTick       action = "countersign.tick"        // ticks a call of a sheet
	actionList       action = "countersign.list"        // turns a page of a list
	actionResult     action = "countersign.result"      // opens what became of a sheet
	actionResultPage action = "countersign.result_page" // turns a page of that
)

// id returns the n-th action_id of the action in a message.
func (a action) id(n int) string { return fmt.Sprintf("%s.%d", string(a), n) }

// actionOf returns the action of an action_id, without its number.
func actionOf(id string) action {
	if i := strings.LastIndexByte(id, '.'); i > 0 && strings.Trim(id[i+1:], "0123456789") == "" {
		return action(id[:i])
	}
	return action(id)
}

// The callback ids of views and shortcuts.
const (
	callbackApprove = "countersign.approve" // the reason for an approval
	callbackDeny    = "countersign.deny"    // the reason for a denial
	callbackEdit    = "countersign.edit"    // changed arguments
	callbackHere    = "countersign.here"    // the message shortcut
	callbackHome    = "countersign.home"    // the Home tab
	callbackReview  = "countersign.review"  // a review
	callbackSheet   = "countersign.sheet"   // a sheet
)

// A pointer is all that a button holds. It carries no authority: what it
// names is read from the store, and the digest only says what was shown.
type pointer struct {
	Batch  approvals.BatchID
	Call   approvals.ToolCallID
	Digest approvals.Digest
}

const (
	pointerVersion = "1"
	maxPointer     = 1000
	maxPlainCall   = 200
)

var errPointer = errors.New("not a button of ours")

// encode writes the pointer as a button's value. Call ids are the model's
// words: those that are long or odd are replaced by their hash.
func (p pointer) encode() (string, error) {
	s := strings.Join([]string{pointerVersion, string(p.Batch), p.Digest.String(), callKey(p.Call)}, "|")
	if len(s) > maxPointer {
		return "", fmt.Errorf("%w: %d bytes", errPointer, len(s))
	}
	back, err := parsePointer(s)
	if err != nil {
		return "", err
	}
	if back.Batch != p.Batch || back.Digest != p.Digest {
		return "", errPointer
	}
	return s, nil
}

// parsePointer reads what encode wrote and nothing else. Its Call is a key
// that [pointer.in] resolves.
func parsePointer(s string) (pointer, error) {
	fields := strings.Split(s, "|")
	if len(s) > maxPointer || len(fields) != 4 || fields[0] != pointerVersion || !validKey(fields[3]) {
		return pointer{}, errPointer
	}
	if _, err := approvals.Partition(fields[1]); err != nil || strings.Trim(fields[1], idChars) != "" {
		return pointer{}, errPointer
	}
	digest, err := approvals.ParseDigest(fields[2])
	if err != nil || digest.IsZero() || digest.String() != fields[2] {
		return pointer{}, errPointer
	}
	return pointer{Batch: approvals.BatchID(fields[1]), Digest: digest, Call: approvals.ToolCallID(fields[3])}, nil
}

// in returns the approval that the pointer means.
func (p pointer) in(b approvals.Batch) (approvals.Approval, error) {
	for _, a := range b.Approvals {
		if callKey(a.Call.ID) == string(p.Call) {
			return a, nil
		}
	}
	return approvals.Approval{}, fmt.Errorf("call of the button in batch %s: %w", b.ID, approvals.ErrNotFound)
}

const idChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:"

func callKey(id approvals.ToolCallID) string {
	if s := string(id); s != "" && len(s) <= maxPlainCall && strings.Trim(s, idChars) == "" {
		return s
	}
	sum := sha256.Sum256([]byte(id))
	return "#" + hex.EncodeToString(sum[:])
}

func validKey(s string) bool {
	hash, hashed := strings.CutPrefix(s, "#")
	if hashed {
		return len(hash) == 2*sha256.Size && strings.Trim(hash, "0123456789abcdef") == ""
	}
	return s != "" && len(s) <= maxPlainCall && strings.Trim(s, idChars) == ""
}
