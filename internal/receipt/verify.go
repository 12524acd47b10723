package receipt

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"strings"
)

// maxReceipt is how long a receipt may be.
const maxReceipt = 64 << 10

// Verify returns the statement of the receipt if one of the keys signed it and it
// is written exactly as [Signer.Sign] writes it. It does not look at the clock: a
// receipt is evidence for as long as its key is trusted. Whether a call may run on
// it now is for [Statement.Usable] and [Statement.Covers] to say.
func Verify(keys Keys, receipt string) (Statement, error) {
	if len(receipt) > maxReceipt {
		return Statement{}, fmt.Errorf("%w: it has more than %d bytes", ErrMalformed, maxReceipt)
	}
	parts := strings.Split(receipt, ".")
	if len(parts) != 3 {
		return Statement{}, fmt.Errorf("%w: a receipt has three parts with dots between them", ErrMalformed)
	}
	key, known := keys.byHeader[parts[0]]
	if !known {
		return Statement{}, explain(parts[0])
	}
	signature, err := b64.DecodeString(parts[2])
	if err != nil || len(signature) != ed25519.SignatureSize || b64.EncodeToString(signature) != parts[2] {
		return Statement{}, fmt.Errorf("%w: its signature is not %d bytes in base64url", ErrMalformed, ed25519.SignatureSize)
	}
	if !ed25519.Verify(key.public, []byte(parts[0]+"."+parts[1]), signature) {
		return Statement{}, fmt.Errorf("%w: the receipt was changed, or its key %s did not sign it", ErrSignature, key.id)
	}
	payload, err := b64.DecodeString(parts[1])
	if err != nil || b64.EncodeToString(payload) != parts[1] {
		return Statement{}, fmt.Errorf("%w: its payload is not base64url", ErrMalformed)
	}
	return decode(payload)
}

// explain says why a header is not that of a known key. A header is compared as a
// whole; it is read only for this message.
func explain(encoded string) error {
	raw, err := b64.DecodeString(encoded)
	if err != nil {
		return fmt.Errorf("%w: its header is not base64url", ErrMalformed)
	}
	var h struct {
		Alg string `json:"alg"`
		Kid string `json:"kid"`
		Typ string `json:"typ"`
	}
	switch err := json.Unmarshal(raw, &h); {
	case err != nil:
		return fmt.Errorf("%w: its header is not JSON", ErrMalformed)
	case h.Alg != algorithm:
		return fmt.Errorf("%w: its algorithm is %q, and only %s counts", ErrMalformed, h.Alg, algorithm)
	case h.Typ != mediaType:
		return fmt.Errorf("%w: its type is %q, expected %s", ErrMalformed, h.Typ, mediaType)
	case encoded != header(h.Kid):
		return fmt.Errorf("%w: its header is not in the form in which receipts are written: a member is unknown, repeated or out of order", ErrMalformed)
	}
	return fmt.Errorf("%w: the id of its key is %q", ErrUnknownKey, h.Kid)
}
