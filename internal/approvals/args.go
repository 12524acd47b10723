package approvals

import (
	"encoding/json"
	"fmt"
)

// MaxArgs is how many bytes the arguments of a call may have.
const MaxArgs = 256 << 10

// maxDepth is how deep objects and arrays may nest.
const maxDepth = 64

// CheckArgs says whether raw may be stored as the arguments of a call: nothing
// at all, or exactly one JSON object that every reader reads alike. So it must
// be valid UTF-8, without a key twice in one object (readers differ in which
// they take), without half a surrogate pair (readers differ in what they make
// of it), nested at most 64 deep, and of at most [MaxArgs] bytes. The error
// says what is wrong and where, in words that the model can act on.
func CheckArgs(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	if len(raw) > MaxArgs {
		return fmt.Errorf("%w: the arguments have %d bytes, at most %d are allowed", ErrInvalid, len(raw), MaxArgs)
	}
	if err := checkObject(raw, maxDepth); err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	return nil
}

// CheckJSON says whether raw is exactly one JSON value that every reader reads
// alike, in the sense of [CheckArgs], nested at most depth deep. The error names
// the byte.
func CheckJSON(raw []byte, depth int) error { return checkValue(raw, depth) }
