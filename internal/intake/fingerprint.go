package intake

import (
	"strconv"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

const (
	fingerprintVersion = "countersign.fingerprint.v1"
	payloadVersion     = "countersign.calls.v1"
)

// sum is the digest of the parts in hex.
func sum(parts ...string) string { return approvals.TupleDigest(parts...).String() }

// Fingerprint finds a call again that is asked about once more: by the same
// agent, within the session, with the same tool, definition, directory and exact
// argument bytes. Arguments in another order are another call. It is never an
// [approvals.Digest], which binds a decision to one call of one batch.
func Fingerprint(c Client, session string, call Call) string {
	if session == "" {
		session = "credential:" + c.Credential
	} else {
		session = "session:" + session
	}
	return sum(fingerprintVersion, c.Name, session, call.Tool, call.Server, call.Definition,
		call.Cwd, call.Repository, call.Branch, strconv.FormatBool(call.External), string(call.Args))
}

// payload names the calls of a request, byte for byte.
func payload(calls []Call) string {
	parts := []string{payloadVersion}
	for _, c := range calls {
		parts = append(parts, string(c.ID), c.Tool, c.Server, c.Definition, c.Cwd, c.Repository, c.Branch,
			strconv.FormatBool(c.External), string(c.Args))
	}
	return sum(parts...)
}

// indexID is the id of an index memo of the agent.
func indexID(agent, kind, name string) string {
	return approvals.NewID(kind, agentrun.RemotePartition(Executor, agent), sum(agent, name))
}
