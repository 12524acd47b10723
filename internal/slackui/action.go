package slackui

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// What can be pressed. Slack wants every action_id of a message to be
// different, so a number follows.
const (
	actionApprove = "countersign.approve" // of a call that the card shows whole
	actionSign    = "countersign.sign"    // opens the form in which a call is read and approved
	actionDeny    = "countersign.deny"
	actionEdit    = "countersign.edit"
	actionView    = "countersign.view"
	actionRetract = "countersign.retract"
	actionPage    = "countersign.page"
)

// actionOf returns the action without its number.
func actionOf(id string) string {
	if i := strings.LastIndexByte(id, '.'); i > 0 && strings.Trim(id[i+1:], "0123456789") == "" {
		return id[:i]
	}
	return id
}

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
