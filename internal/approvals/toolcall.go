package approvals

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// A ToolCall is a call as the model made it. Args holds the exact bytes that
// are validated, shown, approved and executed: nothing is coerced, reordered or
// filled in on the way. Nil Args stand for a call without arguments.
type ToolCall struct {
	ID   ToolCallID
	Name string
	Args json.RawMessage
}

// A CallRef stands for a [ToolCall] where its arguments are not needed: their
// digest says which they are, Size how many bytes.
type CallRef struct {
	ID     ToolCallID `json:"id"`
	Name   string     `json:"name"`
	Digest Digest     `json:"digest"`
	Size   int        `json:"size"`
}

// Ref returns what a batch keeps of the call.
func (c ToolCall) Ref(batch BatchID) CallRef {
	return CallRef{ID: c.ID, Name: c.Name, Digest: DigestOf(batch, c), Size: len(c.Args)}
}

// A Digest binds an approval to what was shown: SHA-256 over a version, the
// batch, the call's id, the tool's name and the exact argument bytes, each
// with its length in front. It is not a digest of canonical JSON: there
// 9007199254740993 and ...992 would share one.
type Digest [sha256.Size]byte

const digestVersion = "countersign.call.v1"

// DigestOf returns the digest of call in batch.
func DigestOf(batch BatchID, call ToolCall) Digest {
	return TupleDigest[[]byte]([]byte(digestVersion), []byte(batch), []byte(call.ID), []byte(call.Name), call.Args)
}

// TupleDigest returns SHA-256 over the parts, each with its length in front.
func TupleDigest[P string | []byte](parts ...P) Digest {
	h := sha256.New()
	for _, part := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return Digest(h.Sum(nil))
}

// String is the digest in lowercase hex, 64 characters.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes the digest as [Digest.String] does.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what [Digest.String] wrote.
func (d *Digest) UnmarshalText(text []byte) error {
	parsed, err := ParseDigest(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// Short is the beginning of the digest, for people to compare.
func (d Digest) Short() string { return hex.EncodeToString(d[:6]) }

// IsZero reports whether d is no digest at all. It matches no call.
func (d Digest) IsZero() bool { return d == Digest{} }

// ParseDigest reads what [Digest.String] wrote.
func ParseDigest(s string) (Digest, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != sha256.Size {
		return Digest{}, fmt.Errorf("%w: a digest is %d hex characters", ErrInvalid, 2*sha256.Size)
	}
	return Digest(b), nil
}
