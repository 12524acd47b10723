package respond

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// RequestID names this press of a button, or of what sends a form, so that it counts
// once: the same press delivered again has the same name, and nothing else
// has. Everything that the press means is in it, whatever Slack left out of
// its own ids.
func RequestID(team string, p inbound.Interaction, ptr ref.Pointer, v approvals.Verdict, reason string) approvals.RequestID {
	action, ts := p.Press.ID, p.Press.TS
	sum := sha256.New()
	for _, part := range []string{
		team, p.Trigger, p.User, p.Channel, p.MessageTS, p.View.ID, p.View.Hash, action, ts,
		string(ptr.Batch), string(ptr.Call), ptr.Digest.String(), string(v), reason,
	} {
		// With its length before it, no part can pass for the end of another.
		sum.Write(fmt.Appendf(nil, "%d:%s", len(part), part))
	}
	return approvals.RequestID("slack-" + hex.EncodeToString(sum.Sum(nil)))
}
