package approvals

import "fmt"

// climb takes the rungs that are due.
func (b Batch) climb(cmd Climb) (Batch, []Event, error) {
	return b, nil, fmt.Errorf("batch %s: %w", b.ID, ErrNotYet)
}
