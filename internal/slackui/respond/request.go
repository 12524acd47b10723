package respond

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// RequestID names one press of a button, or one sending of a form, so that it
// counts once: the same press delivered again has the same name, and nothing
// else has. press are Slack's ids of it; everything that it means is in the name
// too, so that an id that Slack leaves out makes no two presses one.
func RequestID(team string, press []string, ptr ref.Pointer, v approvals.Verdict, reason string) approvals.RequestID {
	all := make([]byte, 0, 512)
	for _, part := range slices.Concat([]string{team}, press, []string{
		string(ptr.Batch), string(ptr.Call), ptr.Digest.String(), string(v), reason,
	}) {
		// With its length before it, no part can pass for the end of another.
		all = append(append(strconv.AppendInt(all, int64(len(part)), 10), ':'), part...)
	}
	sum := sha256.Sum256(all)
	return approvals.RequestID("slack-" + hex.EncodeToString(sum[:]))
}
