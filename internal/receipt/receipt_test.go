package receipt_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/receipt"
)

var update = flag.Bool("update", false, "write the test vectors anew")

var b64 = base64.RawURLEncoding

// The key pair of RFC 8037, appendix A, with the thumbprint that A.3 gives for it.
const (
	seedOfTheRFC = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"
	kidOfTheRFC  = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
)

var args = []byte(`{"path": "/srv/a", "n": 9007199254740993}`)

func privateKey(tb testing.TB) ed25519.PrivateKey {
	tb.Helper()
	seed, err := b64.DecodeString(seedOfTheRFC)
	require.NoError(tb, err)
	return ed25519.NewKeyFromSeed(seed)
}

func pemOf(tb testing.TB, private ed25519.PrivateKey) []byte {
	tb.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(tb, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func signer(tb testing.TB) *receipt.Signer {
	tb.Helper()
	s, err := receipt.ParseSigner(pemOf(tb, privateKey(tb)))
	require.NoError(tb, err)
	return s
}

func keys(tb testing.TB) receipt.Keys {
	tb.Helper()
	return receipt.NewKeys(signer(tb).Key())
}

var decided = time.Date(2026, 11, 22, 7, 30, 0, 0, time.UTC)

// approved is a statement with everything in it.
func approved() receipt.Statement {
	return receipt.Statement{
		Request: "batch-01-7f3a", Call: "call-1", Tool: "delete_file", Arguments: receipt.DigestOf(args),
		Fingerprint: "c0ffee", Agent: "deployer", Outcome: receipt.Approved,
		Approvers: []receipt.Person{{ID: "U0BOB", Name: "Bob \"B\" Ünal \u2028\x01\n"}, {ID: "U0CAROL", Name: "Carol", For: "U0DAVE"}},
		Deniers:   []receipt.Person{{ID: "U0ERIN"}}, Editors: []receipt.Person{{ID: "U0ALICE", Name: "Alice <a@b>"}},
		Rule: "deletions", Policy: "sha256:77", DecidedAt: decided, NotAfter: decided.Add(15 * time.Minute),
	}
}

func with(change func(*receipt.Statement)) receipt.Statement {
	s := approved()
	change(&s)
	return s
}

func sign(tb testing.TB, s receipt.Statement) string {
	tb.Helper()
	r, err := signer(tb).Sign(s)
	require.NoError(tb, err)
	return r
}

func TestAReceiptVerifiesAsTheStatementThatWasSigned(t *testing.T) {
	got, err := receipt.Verify(keys(t), sign(t, approved()))
	require.NoError(t, err)
	require.Equal(t, approved(), got)

	again := sign(t, with(func(s *receipt.Statement) {
		s.DecidedAt = s.DecidedAt.Add(time.Millisecond).In(time.FixedZone("", 3600))
	}))
	require.Equal(t, sign(t, approved()), again, "times are in UTC and in whole seconds")

	at := with(func(s *receipt.Statement) { s.NotAfter = s.DecidedAt })
	got, err = receipt.Verify(keys(t), sign(t, at))
	require.NoError(t, err)
	require.Equal(t, at, got)
}

func TestEveryMemberIsSigned(t *testing.T) {
	seen := map[string]bool{sign(t, approved()): true}
	for i, change := range []func(*receipt.Statement){
		func(s *receipt.Statement) { s.Request += "x" },
		func(s *receipt.Statement) { s.Call += "x" },
		func(s *receipt.Statement) { s.Tool += "x" },
		func(s *receipt.Statement) { s.Arguments = receipt.DigestOf(nil) },
		func(s *receipt.Statement) { s.Fingerprint = "" },
		func(s *receipt.Statement) { s.Place.Server = "files" },
		func(s *receipt.Statement) { s.Place.Cwd = "files" },
		func(s *receipt.Statement) { s.Place.Repository = "files" },
		func(s *receipt.Statement) { s.Place.Branch = "files" },
		func(s *receipt.Statement) { s.Agent += "x" },
		func(s *receipt.Statement) { s.Outcome = receipt.Expired },
		func(s *receipt.Statement) { s.Approvers = s.Approvers[:1] },
		func(s *receipt.Statement) { s.Approvers[1].For = "" },
		func(s *receipt.Statement) { s.Approvers[1].Name = "" },
		func(s *receipt.Statement) { s.Deniers = nil },
		func(s *receipt.Statement) { s.Editors = nil },
		func(s *receipt.Statement) { s.Rule = "" },
		func(s *receipt.Statement) { s.Policy = "" },
		func(s *receipt.Statement) { s.DecidedAt = s.DecidedAt.Add(time.Second) },
		func(s *receipt.Statement) { s.NotAfter = s.NotAfter.Add(time.Second) },
	} {
		r := sign(t, with(change))
		require.False(t, seen[r], "change %d", i)
		seen[r] = true
		got, err := receipt.Verify(keys(t), r)
		require.NoError(t, err)
		require.Equal(t, with(change), got)
	}
}

func TestAStatementThatSaysTooLittleIsNotSigned(t *testing.T) {
	for want, change := range map[string]func(*receipt.Statement){
		"request is missing":        func(s *receipt.Statement) { s.Request = "" },
		"call is missing":           func(s *receipt.Statement) { s.Call = "" },
		"tool is missing":           func(s *receipt.Statement) { s.Tool = "" },
		"agent is missing":          func(s *receipt.Statement) { s.Agent = "" },
		"need a digest":             func(s *receipt.Statement) { s.Arguments = "sha256:ABC" },
		`no outcome ""`:             func(s *receipt.Statement) { s.Outcome = "" },
		"call needs approvers":      func(s *receipt.Statement) { s.Approvers = nil },
		"call needs deniers":        func(s *receipt.Statement) { s.Outcome, s.Deniers = receipt.Denied, nil },
		"that the policy permitted": func(s *receipt.Statement) { s.Outcome = receipt.Permitted },
		"a person is listed twice":  func(s *receipt.Statement) { s.Approvers[1].ID = "U0BOB" },
		"approvers.id":              func(s *receipt.Statement) { s.Approvers[0].ID = "" },
		"approvers.name is not":     func(s *receipt.Statement) { s.Approvers[0].Name = "\xff" },
		"needs not_after":           func(s *receipt.Statement) { s.NotAfter = time.Time{} },
		"decided_at is missing":     func(s *receipt.Statement) { s.DecidedAt = time.Time{} },
		"before decided_at":         func(s *receipt.Statement) { s.NotAfter = decided.Add(-time.Second) },
		"the year 20000":            func(s *receipt.Statement) { s.NotAfter = time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"rule has more than":        func(s *receipt.Statement) { s.Rule = strings.Repeat("x", 1025) },
		"more than 200 editors":     func(s *receipt.Statement) { s.Editors = make([]receipt.Person, 201) },
	} {
		_, err := signer(t).Sign(with(change))
		require.ErrorIs(t, err, receipt.ErrStatement, want)
		require.ErrorContains(t, err, want)
	}
}

// forged signs any header and payload with the known key.
func forged(tb testing.TB, header, payload string) string {
	tb.Helper()
	message := b64.EncodeToString([]byte(header)) + "." + b64.EncodeToString([]byte(payload))
	return message + "." + b64.EncodeToString(ed25519.Sign(privateKey(tb), []byte(message)))
}

func parts(tb testing.TB, r string) (header, payload string) {
	tb.Helper()
	p := strings.Split(r, ".")
	h, err := b64.DecodeString(p[0])
	require.NoError(tb, err)
	body, err := b64.DecodeString(p[1])
	require.NoError(tb, err)
	return string(h), string(body)
}

type refusal struct {
	Name    string `json:"name"`
	Receipt string `json:"receipt"`
	Why     string `json:"why"`
	err     error
}

// refusals are receipts that must not verify. Nearly all of them carry a true
// signature of the known key: what refuses them is the form.
func refusals(tb testing.TB) []refusal {
	tb.Helper()
	good := sign(tb, approved())
	h, p := parts(tb, good)
	seg := strings.Split(good, ".")
	swap := func(s, old, instead string) string {
		require.Contains(tb, s, old)
		return strings.Replace(s, old, instead, 1)
	}
	other, err := receipt.GenerateKey()
	require.NoError(tb, err)
	stranger, err := receipt.ParseSigner(other)
	require.NoError(tb, err)
	foreign, err := stranger.Sign(approved())
	require.NoError(tb, err)
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := good[:len(good)-1] + string(alphabet[strings.IndexByte(alphabet, good[len(good)-1])^1])
	header, payload := func(old, instead string) string { return forged(tb, swap(h, old, instead), p) },
		func(old, instead string) string { return forged(tb, h, swap(p, old, instead)) }
	return []refusal{
		{"empty", "", "three parts", receipt.ErrMalformed},
		{"two parts", seg[0] + "." + seg[1], "three parts", receipt.ErrMalformed},
		{"four parts", good + ".x", "three parts", receipt.ErrMalformed},
		{"too long", good + strings.Repeat("A", 64<<10), "more than", receipt.ErrMalformed},
		{"no algorithm", header(`"alg":"EdDSA"`, `"alg":"none"`), `algorithm is "none"`, receipt.ErrMalformed},
		{"hmac with the public key", header(`"alg":"EdDSA"`, `"alg":"HS256"`), `algorithm is "HS256"`, receipt.ErrMalformed},
		{"algorithm in other letters", header(`EdDSA`, `eddsa`), "algorithm", receipt.ErrMalformed},
		{"another type", header(`countersign-receipt+jws`, `JWT`), `type is "JWT"`, receipt.ErrMalformed},
		{"no type", header(`,"typ":"countersign-receipt+jws"`, ``), "type", receipt.ErrMalformed},
		{"key in the header", header(`"kid"`, `"jwk":{},"kid"`), "header is not in the form", receipt.ErrMalformed},
		{"critical extension", header(`"alg"`, `"crit":["b64"],"alg"`), "header is not in the form", receipt.ErrMalformed},
		{"algorithm twice", header(`{"alg":"EdDSA"`, `{"alg":"EdDSA","alg":"EdDSA"`), "header is not in the form", receipt.ErrMalformed},
		{"header with white space", header(`{"alg"`, `{ "alg"`), "header is not in the form", receipt.ErrMalformed},
		{"header is no JSON", forged(tb, "x", p), "not JSON", receipt.ErrMalformed},
		{"header is no base64", "{}." + seg[1] + "." + seg[2], "not base64url", receipt.ErrMalformed},
		{"unknown kid", header(kidOfTheRFC, strings.Repeat("A", 43)), "AAAA", receipt.ErrUnknownKey},
		{"key of a stranger", foreign, "id of its key", receipt.ErrUnknownKey},
		{"kid of ours, signed by a stranger", seg[0] + "." + seg[1] + "." + strings.Split(foreign, ".")[2], "changed", receipt.ErrSignature},
		{"changed payload", seg[0] + "." + b64.EncodeToString([]byte(swap(p, "U0BOB", "U0EVE"))) + "." + seg[2], "changed", receipt.ErrSignature},
		{"no signature", seg[0] + "." + seg[1] + ".", "64 bytes", receipt.ErrMalformed},
		{"short signature", seg[0] + "." + seg[1] + "." + seg[2][:40], "64 bytes", receipt.ErrMalformed},
		{"padded signature", good + "==", "64 bytes", receipt.ErrMalformed},
		{"signature with a line break", good + "\n", "64 bytes", receipt.ErrMalformed},
		{"signature with other unused bits", last, "64 bytes", receipt.ErrMalformed},
		{"unknown member", payload(`"agent"`, `"admin":"yes","agent"`), "payload is not in the form", receipt.ErrMalformed},
		{"outcome twice", payload(`"outcome":"approved"`, `"outcome":"denied","outcome":"approved"`), "payload is not in the form", receipt.ErrMalformed},
		{"outcome in other letters", payload(`"outcome"`, `"Outcome"`), "payload is not in the form", receipt.ErrMalformed},
		{"unknown member of a person", payload(`{"id":"U0ERIN"`, `{"admin":1,"id":"U0ERIN"`), "payload is not in the form", receipt.ErrMalformed},
		{"payload with white space", payload(`{"agent"`, `{ "agent"`), "payload is not in the form", receipt.ErrMalformed},
		{"needless escape", payload(`deployer`, `\u0064eployer`), "payload is not in the form", receipt.ErrMalformed},
		{"lone surrogate", payload(`deployer`, `\ud800`), "payload is not in the form", receipt.ErrMalformed},
		{"time in another zone", payload(`2026-11-22T07:30:00Z`, `2026-11-22T08:30:00+01:00`), "payload is not in the form", receipt.ErrMalformed},
		{"time in words", payload(`2026-11-22T07:30:00Z`, `noon`), "not a time", receipt.ErrMalformed},
		{"null people", payload(`"deniers":[{"id":"U0ERIN"}]`, `"deniers":null`), "payload is not in the form", receipt.ErrMalformed},
		{"next version", payload(`"version":1`, `"version":4`), "version is 4", receipt.ErrMalformed},
		{"version 2 without a place", payload(`"version":1`, `"version":2`), "payload is not in the form", receipt.ErrMalformed},
		{"version 3 of an approved call", payload(`"version":1`, `"version":3`), "payload is not in the form", receipt.ErrMalformed},
		{"version 1 of an approved call that the policy refused", payload(`"outcome":"approved"`, `"outcome":"refused"`), "payload is not in the form", receipt.ErrMalformed},
		{"version 1 with a place", payload(`"policy"`, `"place":{"cwd":"/srv"},"policy"`), "payload is not in the form", receipt.ErrMalformed},
		{"an empty place", payload(`"policy"`, `"place":{},"policy"`), "payload is not in the form", receipt.ErrMalformed},
		{"null place", payload(`"policy"`, `"place":null,"policy"`), "payload is not in the form", receipt.ErrMalformed},
		{"unknown member of a place", forged(tb, h, swap(swap(p, `"policy"`, `"place":{"cwd":"/srv","host":"a"},"policy"`), `"version":1`, `"version":2`)), "payload is not in the form", receipt.ErrMalformed},
		{"no version", payload(`,"version":1`, ``), "version is 0", receipt.ErrMalformed},
		{"version as a text", payload(`"version":1`, `"version":"1"`), "not the JSON", receipt.ErrMalformed},
		{"two payloads", forged(tb, h, p+p), "not the JSON", receipt.ErrMalformed},
		{"empty payload", forged(tb, h, ""), "not the JSON", receipt.ErrMalformed},
		{"unknown outcome", payload(`"outcome":"approved"`, `"outcome":"fine"`), "no outcome", receipt.ErrStatement},
		{"approved by nobody", payload(p[strings.Index(p, `"approvers"`):strings.Index(p, `"arguments"`)], ``), "needs approvers", receipt.ErrStatement},
		{"one approver twice", payload(`U0CAROL`, `U0BOB`), "twice", receipt.ErrStatement},
		{"without an end", payload(`"not_after":"2026-11-22T07:45:00Z",`, ``), "needs not_after", receipt.ErrStatement},
	}
}

func TestVerifyRefusesWhatSignDoesNotWrite(t *testing.T) {
	for _, c := range refusals(t) {
		st, err := receipt.Verify(keys(t), c.Receipt)
		require.ErrorIs(t, err, c.err, c.Name)
		require.ErrorContains(t, err, c.Why, c.Name)
		require.Equal(t, receipt.Statement{}, st, c.Name)
	}
	_, err := receipt.Verify(receipt.Keys{}, sign(t, approved()))
	require.ErrorIs(t, err, receipt.ErrUnknownKey, "no keys accept nothing")
}

func TestOnlyAPermissionThatHoldsIsUsable(t *testing.T) {
	s := approved()
	require.NoError(t, s.Usable(decided))
	require.NoError(t, s.Usable(s.NotAfter))
	require.NoError(t, s.Usable(decided.Add(-time.Minute)), "clocks differ")
	require.ErrorIs(t, s.Usable(s.NotAfter.Add(time.Second)), receipt.ErrNotUsable)
	require.ErrorIs(t, s.Usable(decided.Add(-time.Hour)), receipt.ErrNotUsable)
	for _, o := range []receipt.Outcome{receipt.Denied, receipt.Refused, receipt.Expired, receipt.Withdrawn, receipt.Superseded, ""} {
		s.Outcome = o
		require.ErrorIs(t, s.Usable(decided), receipt.ErrNotUsable, o)
	}
	require.ErrorIs(t, receipt.Statement{}.Usable(decided), receipt.ErrNotUsable)
}

func TestAReceiptCoversExactlyTheseBytes(t *testing.T) {
	s := approved()
	require.NoError(t, s.CoversArguments(args))
	for _, other := range []string{"", `{"path": "/srv/b", "n": 9007199254740993}`, `{"path": "/srv/a", "n": 9007199254740992}`, `{"path":"/srv/a","n":9007199254740993}`} {
		require.ErrorIs(t, s.CoversArguments([]byte(other)), receipt.ErrOtherCall, other)
	}
}

// Whatever Verify accepts, the signer would write again, byte for byte: there is
// no second receipt for a statement.
func FuzzVerify(f *testing.F) {
	header, payload := parts(f, sign(f, approved()))
	f.Add(sign(f, approved()), header, payload)
	for _, c := range refusals(f) {
		if len(c.Receipt) < 4096 {
			f.Add(c.Receipt, header, payload)
		}
	}
	for _, p := range []string{`{"agent":"a","version":1}`, strings.Replace(payload, "deployer", "\u2028\x7f", 1), payload + " "} {
		f.Add("", header, p)
	}
	s, known := signer(f), keys(f)
	f.Fuzz(func(t *testing.T, raw, header, payload string) {
		for _, r := range []string{raw, forged(t, header, payload)} {
			st, err := receipt.Verify(known, r)
			if err != nil {
				require.Equal(t, receipt.Statement{}, st)
				continue
			}
			again, err := s.Sign(st)
			require.NoError(t, err)
			require.Equal(t, r, again)
		}
	})
}

func ExampleVerify() {
	private, _ := receipt.GenerateKey()
	signer, _ := receipt.ParseSigner(private)
	call := []byte(`{"path":"/srv/a"}`)
	signed, _ := signer.Sign(receipt.Statement{
		Request: "batch-01-7f3a", Call: "call-1", Tool: "delete_file", Arguments: receipt.DigestOf(call), Agent: "deployer",
		Outcome: receipt.Approved, Approvers: []receipt.Person{{ID: "U0BOB", Name: "Bob"}},
		DecidedAt: decided, NotAfter: decided.Add(15 * time.Minute),
	})

	published := receipt.NewKeys(signer.Key())
	statement, err := receipt.Verify(published, signed)
	fmt.Println(err, statement.Approvers[0].Name)
	fmt.Println(statement.Tool, statement.CoversArguments(call), statement.Usable(decided))
	fmt.Println(statement.Usable(decided.Add(time.Hour)))
	// Output:
	// <nil> Bob
	// delete_file <nil> <nil>
	// the receipt does not permit the call to run: it could be used until 2026-11-22T07:45:00Z
}
