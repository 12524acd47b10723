package ref

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
type Action string

// The actions.
const (
	ActionApprove    Action = "countersign.approve"     // approves the call of its value
	ActionSign       Action = "countersign.sign"        // opens the form in which a call that its card does not show whole is approved
	ActionAll        Action = "countersign.all"         // approves all open calls that a card shows
	ActionDeny       Action = "countersign.deny"        // opens the form for a denial
	ActionAgain      Action = "countersign.again"       // approves that a call in doubt runs once more
	ActionHappened   Action = "countersign.happened"    // opens the form in which a person says that a call in doubt took effect
	ActionGiveUp     Action = "countersign.give_up"     // opens the form in which a call in doubt is given up
	ActionEdit       Action = "countersign.edit"        // opens the form for changed arguments
	ActionRetract    Action = "countersign.retract"     // takes back the person's own decision
	ActionView       Action = "countersign.view"        // opens the whole arguments of a call
	ActionPage       Action = "countersign.page"        // turns a page of them
	ActionReview     Action = "countersign.review"      // opens the card of its value
	ActionEach       Action = "countersign.each"        // opens the card on which equal calls are decided one by one
	ActionNext       Action = "countersign.next"        // shows the next card that waits for the person
	ActionDigest     Action = "countersign.digest"      // opens the request of a digest that has waited longest
	ActionTurn       Action = "countersign.turn"        // turns a page of the Home
	ActionBack       Action = "countersign.back"        // ends the person's own absence
	ActionSeveral    Action = "countersign.several"     // opens a sheet of all that waits for the person
	ActionSheet      Action = "countersign.sheet"       // opens a sheet of its value
	ActionSheetPage  Action = "countersign.sheet_page"  // turns a page of a sheet
	ActionTick       Action = "countersign.tick"        // ticks a call of a sheet
	ActionList       Action = "countersign.list"        // turns a page of a list
	ActionResult     Action = "countersign.result"      // opens what became of a sheet
	ActionResultPage Action = "countersign.result_page" // turns a page of that

	ActionToolsAccept Action = "countersign.tools_accept" // an owner accepts what an MCP server changed
	ActionToolsBlock  Action = "countersign.tools_block"  // an owner keeps that blocked
)

// ID returns the n-th action_id of the action in a message.
func (a Action) ID(n int) string { return fmt.Sprintf("%s.%d", string(a), n) }

// ActionOf returns the action of an action_id, without its number.
func ActionOf(id string) Action {
	if i := strings.LastIndexByte(id, '.'); i > 0 && strings.Trim(id[i+1:], "0123456789") == "" {
		return Action(id[:i])
	}
	return Action(id)
}

// The callback ids of views and shortcuts.
const (
	CallbackApprove  = "countersign.approve"  // the reason for an approval
	CallbackDeny     = "countersign.deny"     // the reason for a denial
	CallbackHappened = "countersign.happened" // that a call in doubt took effect
	CallbackGiveUp   = "countersign.give_up"  // that a call in doubt is given up
	CallbackEdit     = "countersign.edit"     // changed arguments
	CallbackHere     = "countersign.here"     // the message shortcut
	CallbackHome     = "countersign.home"     // the Home tab
	CallbackReview   = "countersign.review"   // a review
	CallbackSheet    = "countersign.sheet"    // a sheet
)

// A Pointer is the value of a button of a call. It carries no authority: the
// call is read from the store, and the digest only says what was shown.
type Pointer struct {
	Batch  approvals.BatchID
	Call   approvals.ToolCallID
	Digest approvals.Digest
}

const (
	pointerVersion = "1"
	maxPlainCall   = 200
)

// MaxPointer bounds the values of our buttons, in bytes. Slack's limit is 2000
// characters: https://docs.slack.dev/reference/block-kit/block-elements/button-element.
const MaxPointer = 1000

// ErrPointer is a value of a button or a view that this package did not write.
var ErrPointer = errors.New("not a button of ours")

// Encode writes the pointer as a button's value. A model chooses the ids of
// calls: one that is long or has other characters is replaced by its hash.
func (p Pointer) Encode() (string, error) {
	s := strings.Join([]string{pointerVersion, string(p.Batch), p.Digest.String(), callKey(p.Call)}, "|")
	if len(s) > MaxPointer {
		return "", fmt.Errorf("%w: %d bytes", ErrPointer, len(s))
	}
	back, err := ParsePointer(s)
	if err != nil {
		return "", err
	}
	if back.Batch != p.Batch || back.Digest != p.Digest {
		return "", ErrPointer
	}
	return s, nil
}

// ParsePointer reads what [Pointer.Encode] wrote and nothing else. Its Call may
// be a hash, which [Pointer.In] resolves.
func ParsePointer(s string) (Pointer, error) {
	fields := strings.Split(s, "|")
	if len(s) > MaxPointer || len(fields) != 4 || fields[0] != pointerVersion || !validKey(fields[3]) {
		return Pointer{}, ErrPointer
	}
	if _, err := approvals.Partition(fields[1]); err != nil || strings.Trim(fields[1], IDChars) != "" {
		return Pointer{}, ErrPointer
	}
	digest, err := approvals.ParseDigest(fields[2])
	if err != nil || digest.IsZero() || digest.String() != fields[2] {
		return Pointer{}, ErrPointer
	}
	return Pointer{Batch: approvals.BatchID(fields[1]), Digest: digest, Call: approvals.ToolCallID(fields[3])}, nil
}

// In returns the approval that the pointer means.
func (p Pointer) In(b approvals.Batch) (approvals.Approval, error) {
	for _, a := range b.Approvals {
		if callKey(a.Call.ID) == string(p.Call) {
			return a, nil
		}
	}
	return approvals.Approval{}, fmt.Errorf("call of the button in batch %s: %w", b.ID, approvals.ErrNotFound)
}

// IDChars are the characters of ids that are written as they are.
const IDChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:"

func callKey(id approvals.ToolCallID) string {
	if s := string(id); s != "" && len(s) <= maxPlainCall && strings.Trim(s, IDChars) == "" {
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
	return s != "" && len(s) <= maxPlainCall && strings.Trim(s, IDChars) == ""
}
