package ref

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// Surface names Slack in an [agentrun.Origin].
const Surface = "slack"

// MarkerType marks the messages that are cards.
const MarkerType = "countersign_batch"

// Card is what a modal shows: one card of a batch.
type Card struct {
	Batch approvals.BatchID
	Part  int
}

const reviewVersion = "r1"

// String is the value of a button that leads to the card. Like a [Pointer] it
// carries no authority.
func (r Card) String() string {
	return strings.Join([]string{reviewVersion, string(r.Batch), strconv.Itoa(r.Part)}, "|")
}

// ParseCard reads what [Card.String] wrote and nothing else.
func ParseCard(s string) (Card, error) {
	fields := strings.Split(s, "|")
	if len(s) > MaxPointer || len(fields) != 3 || fields[0] != reviewVersion {
		return Card{}, ErrPointer
	}
	if _, err := approvals.Partition(fields[1]); err != nil || strings.Trim(fields[1], IDChars) != "" {
		return Card{}, ErrPointer
	}
	part, err := strconv.Atoi(fields[2])
	if err != nil || part < 0 || strconv.Itoa(part) != fields[2] {
		return Card{}, ErrPointer
	}
	return Card{Batch: approvals.BatchID(fields[1]), Part: part}, nil
}

// Review is the private metadata of a review: the card that it shows, and where
// the person is among the calls that wait for them.
type Review struct {
	At      string `json:"r"`
	Urgency string `json:"u,omitempty"`
}

// Screen is a review that is open on a person's screen.
type Screen struct {
	View string `json:"v,omitempty"`
	Hash string `json:"h,omitempty"`
	Memo string `json:"m,omitempty"` // the private metadata of the view
}

// ReadReview reads the private metadata of a review. It returns the zero
// Review if a review did not write it.
func ReadReview(metadata string) Review {
	var m Review
	if json.Unmarshal([]byte(metadata), &m) != nil {
		return Review{}
	}
	return m
}
