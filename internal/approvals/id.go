package approvals

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// RunID and BatchID name documents that this project stores. Each carries its
// partition, see [NewID].
type (
	// RunID names a run.
	RunID string
	// BatchID names a batch.
	BatchID string
)

// ToolCallID, UserID and GroupID are minted elsewhere: by the model or the chat
// service. They are compared byte for byte and never parsed.
type (
	// ToolCallID names a call within a run.
	ToolCallID string
	// UserID names a person.
	UserID string
	// GroupID names a group of people.
	GroupID string
)

// A RequestID names one attempt to change something, so that the same attempt
// made twice is answered like the first. The caller mints it.
type RequestID string

// Partitions is how many partitions there are. The number is written into
// every id, so it may grow for new ids without moving the old ones.
const Partitions = 64

// PartitionOf says in which partition everything about the thread with this
// key lives. The same parts always give the same partition.
func PartitionOf(parts ...string) int {
	h := fnv.New32a()
	var b []byte
	for _, p := range parts {
		b = append(append(strconv.AppendInt(b, int64(len(p)), 10), ':'), p...)
	}
	_, _ = h.Write(b) // a hash takes every write
	return int(h.Sum32() % Partitions)
}

// NewID returns an id such as "run-17-6f0c…": what it names, its partition in
// two digits, and what makes it unique.
func NewID(kind string, partition int, unique string) string {
	digits := strconv.Itoa(partition)
	if len(digits) < 2 {
		digits = "0" + digits
	}
	return kind + "-" + digits + "-" + unique
}

// Partition reads the partition back from an id made by [NewID]. An invented id
// is an error, never a panic: ids arrive from buttons.
func Partition(id string) (int, error) {
	_, rest, ok := strings.Cut(id, "-")
	digits, unique, ok2 := strings.Cut(rest, "-")
	n, err := strconv.Atoi(digits)
	// Written in one way only: "+1" is not another name for partition 01.
	if !ok || !ok2 || unique == "" || err != nil || n >= Partitions || len(digits) != 2 || digits[0] < '0' || digits[0] > '9' {
		return 0, fmt.Errorf("%w: %q is not an id of ours", ErrNotFound, id)
	}
	return n, nil
}
