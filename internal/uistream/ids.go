package uistream

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// surface is where the threads of chats come from.
const surface = "web"

// maxChatID is how many characters the id of a chat may have.
const maxChatID = 128

// chatIDOK reports whether a chat may have the id: clients make it up.
func chatIDOK(id string) bool {
	if id == "" || len(id) > maxChatID || slices.Contains([]string{"__proto__", "constructor", "prototype"}, id) {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.:", r)
	})
}

// origin is where the chat of a person comes from. The person is part of it: the
// same id in the hands of another is another chat.
func (s *Server) origin(user approvals.UserID, chat string) agentrun.Origin {
	return agentrun.Origin{Surface: surface, Team: string(user), Channel: s.c.Channel, Root: chat}
}

// ChatID returns the id under which people open the thread with this origin. The id
// of a thread of another surface is not a secret: see [People.MayOpen].
func ChatID(o agentrun.Origin) string {
	if o.Surface == surface {
		return o.Root
	}
	return o.Surface + ":" + string(agentrun.ThreadIDOf(o))
}

// What the ids of messages begin with: those of the assistant, and those of people in the
// history.
const (
	messagePrefix = "msg-"
	saidPrefix    = "said-"
)

// messageID is the id of the assistant message of a turn, which never changes.
func messageID(head approvals.RunID) string { return messagePrefix + string(head) }

// headOf is the first run of the turn of a message whose id begins with the prefix.
func headOf(message, prefix string) (approvals.RunID, bool) {
	run, ok := strings.CutPrefix(message, prefix)
	_, err := approvals.Partition(run)
	return approvals.RunID(run), ok && err == nil && strings.HasPrefix(run, "run-")
}

// digestChars is how much of a digest is in the id of an approval: 128 bits.
const digestChars = 32

// approvalID names a call of a batch with exactly these arguments: the digest is
// of all of it.
func approvalID(b approvals.BatchID, d approvals.Digest) string {
	return string(b) + "." + d.String()[:digestChars]
}

// policyApproval is the approval id of a call that the policy refuses by itself. It
// cannot be answered.
func policyApproval(c approvals.ToolCallID) string { return "policy." + string(c) }

// parseApprovalID is the reverse of approvalID. Ids come from clients.
func parseApprovalID(id string) (b approvals.BatchID, digest string, ok bool) {
	batch, digest, ok := strings.Cut(id, ".")
	_, err := approvals.Partition(batch)
	if !ok || err != nil || !strings.HasPrefix(batch, "batch-") || len(digest) != digestChars || strings.Trim(digest, "0123456789abcdef") != "" {
		return "", "", false
	}
	return approvals.BatchID(batch), digest, true
}

// Watched reports whether people can watch a run in a chat, because it began in one.
func Watched(r agentrun.Run) bool { return r.Origin.Surface == surface || r.Via == surface }
