// Package receipt signs and verifies receipts: statements of what was decided
// about one call, which an executor elsewhere can check without asking us.
//
// A receipt is a JWS in compact serialization (RFC 7515), signed with Ed25519
// (RFC 8032, 8037). Every language has a library or thirty lines for that, its
// keys have a standard document (JWKS) and a standard id (RFC 7638). The signature
// covers the bytes that are sent, so that a verifier does not have to
// bring JSON into a canonical form. The protected header is fixed:
//
//	{"alg":"EdDSA","kid":"…","typ":"countersign-receipt+jws"}
//
// "EdDSA" is the older name of the algorithm; RFC 9864 prefers "Ed25519", which many
// libraries do not know yet. The key's type leaves no doubt which one it is.
//
// The payload is the [Statement] as canonical JSON (RFC 8785): the keys in
// alphabetical order, no white space, absent members left out. Equal statements
// have equal bytes and, with one key, equal receipts. [Verify] accepts exactly
// what [Signer.Sign] writes: anything else in the header or the payload, such as
// another algorithm, an unknown or repeated member or another order, is refused
// even if a known key has signed it.
//
// A receipt proves who decided what. It does not keep a call from running twice: an
// executor claims the decision, or remembers which calls it has run.
package receipt
