package agentrun

import (
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/approvals"
)

// batchID returns the id of the batch that a run defers to: a run does so once.
func batchID(run approvals.RunID) (approvals.BatchID, error) {
	return derivedID[approvals.BatchID]("batch", "batch", string(run))
}

// derivedID returns the id of what follows once from a document, in the partition of
// that document.
func derivedID[ID ~string](kind, what, from string) (ID, error) {
	partition, err := approvals.Partition(from)
	if err != nil {
		return "", err
	}
	return ID(approvals.NewID(kind, partition, derived(what, from))), nil
}

// derived returns the same uuid for the same words, so that what is made twice
// is made once.
func derived(parts ...string) string {
	b, err := json.Marshal(parts)
	if err != nil {
		panic(fmt.Sprintf("agentrun: marshal strings: %v", err)) // unreachable
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, append([]byte("countersign"), b...)).String()
}
