package ref

import (
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// Together is the value of the button that approves several calls of a card at
// once: the calls, by the digests of the arguments that the card shows. Like a
// [Pointer] it carries no authority.
type Together struct {
	Card

	Digests []approvals.Digest
}

const (
	togetherVersion = "t1"
	maxTogether     = 8 // as many as a card shows
)

// Encode writes the button's value.
func (t Together) Encode() (string, error) {
	all := make([]string, len(t.Digests))
	for i, d := range t.Digests {
		all[i] = d.String()
	}
	s := strings.Join([]string{togetherVersion, string(t.Batch), strconv.Itoa(t.Part), strings.Join(all, ",")}, "|")
	back, err := ParseTogether(s)
	if err != nil {
		return "", err
	}
	if back.Card != t.Card || !slices.Equal(back.Digests, t.Digests) {
		return "", ErrPointer
	}
	return s, nil
}

// ParseTogether reads what [Together.Encode] wrote and nothing else.
func ParseTogether(s string) (Together, error) {
	fields := strings.Split(s, "|")
	if len(s) > MaxPointer || len(fields) != 4 || fields[0] != togetherVersion {
		return Together{}, ErrPointer
	}
	c, err := ParseCard(strings.Join([]string{reviewVersion, fields[1], fields[2]}, "|"))
	if err != nil {
		return Together{}, err
	}
	t := Together{Card: c}
	for d := range strings.SplitSeq(fields[3], ",") {
		digest, err := approvals.ParseDigest(d)
		if err != nil || digest.IsZero() || digest.String() != d || slices.Contains(t.Digests, digest) || len(t.Digests) == maxTogether {
			return Together{}, ErrPointer
		}
		t.Digests = append(t.Digests, digest)
	}
	return t, nil
}
