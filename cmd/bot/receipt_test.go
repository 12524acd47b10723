package main

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/receipt"
)

// receipts is a key pair as `bot receipt key` makes it, with a file of arguments.
type receipts struct {
	t                *testing.T
	signer           *receipt.Signer
	keys, args, dir  string
	published, other []byte
}

func newReceipts(t *testing.T) *receipts {
	t.Helper()
	r := &receipts{t: t, dir: t.TempDir(), other: []byte(`{"path":"b"}`)}
	private := filepath.Join(r.dir, "key.pem")
	out, stderr, code := said(t, "receipt", "key", "--out", private)
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "The private key is in "+private)
	var err error
	r.signer, err = receipt.ReadSigner(private)
	require.NoError(t, err)
	require.Contains(t, out, r.signer.Key().ID())
	require.NotContains(t, out+stderr, "PRIVATE KEY")
	r.published = []byte(out)
	r.keys = r.file("keys.json", r.published)
	r.args = r.file("args.json", []byte(`{"path":"a"}`))
	return r
}

func (r *receipts) file(name string, data []byte) string {
	path := filepath.Join(r.dir, name)
	require.NoError(r.t, os.WriteFile(path, data, 0o600))
	return path
}

func (r *receipts) sign(change func(*receipt.Statement)) string {
	r.t.Helper()
	s := receipt.Statement{
		Request: "batch-01-7f3a", Call: "call-1", Tool: "delete_file", Arguments: receipt.DigestOf([]byte(`{"path":"a"}`)),
		Agent: "deployer", Outcome: receipt.Approved, Rule: "deletions", Policy: "p1",
		Approvers: []receipt.Person{{ID: "U0BOB", Name: "Bob\u202e"}, {ID: "U0CAROL", For: "U0DAVE"}},
		Editors:   []receipt.Person{{ID: "U0ALICE", Name: "Alice"}},
		DecidedAt: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
	}
	change(&s)
	text, err := r.signer.Sign(s)
	require.NoError(r.t, err)
	return text
}

func TestReceiptVerifySaysWhoApprovedWhat(t *testing.T) {
	t.Parallel()
	r := newReceipts(t)
	good := r.sign(func(*receipt.Statement) {})
	out, stderr, code := said(t, "receipt", "verify", "--keys", r.keys, "--tool", "delete_file", "--args", r.args, good)
	require.Zero(t, code, stderr)
	require.Empty(t, stderr)
	require.Regexp(t, `(?s)^The receipt verifies\.\nBob\\u202e \(U0BOB\) and U0CAROL for U0DAVE approved a call of delete_file by the agent deployer at \S+Z, `+
		`by the rule deletions of version p1 of the policy\.\n\nOutcome      approved\nApproved by  Bob\\u202e \(U0BOB\)\n`+
		`Approved by  U0CAROL, in the place of U0DAVE\nEdited by    Alice \(U0ALICE\)\nTool         delete_file\n`+
		`Arguments    sha256:\w{64}, as given\nCall         call-1\nRequest      batch-01-7f3a\nAgent        deployer\nRule         deletions\n`+
		`Policy       p1\nDecided at   \S+Z\nNot after    \S+Z\n$`, out)

	out, stderr, code = said(t, "receipt", "verify", "--keys", r.keys, "--json", good)
	require.Zero(t, code, stderr)
	signed, err := base64.RawURLEncoding.DecodeString(strings.Split(good, ".")[1])
	require.NoError(t, err)
	require.JSONEq(t, string(signed), out, "what was signed")

	before := os.Stdin
	t.Cleanup(func() { os.Stdin = before })
	for _, args := range [][]string{{"-"}, {}} {
		in, err := os.Open(r.file("receipt", []byte(good+"\n")))
		require.NoError(t, err)
		os.Stdin = in
		_, stderr, code := said(t, append([]string{"receipt", "verify", "--keys", r.keys}, args...)...)
		require.Zero(t, code, stderr)
		require.NoError(t, in.Close())
	}
}

// resigned is the one receipt with the signature of the other.
func resigned(a, b string) string {
	return a[:strings.LastIndexByte(a, '.')] + b[strings.LastIndexByte(b, '.'):]
}

// Exit 0 means that the call may run: a script that runs it on exit 0 is right.
func TestReceiptVerifyFailsUnlessTheCallMayRun(t *testing.T) {
	t.Parallel()
	r := newReceipts(t)
	same := func(*receipt.Statement) {}
	stranger := newReceipts(t)
	denied := r.sign(func(s *receipt.Statement) { s.Outcome, s.Deniers = receipt.Denied, []receipt.Person{{ID: "U0ERIN"}} })
	late := r.sign(func(s *receipt.Statement) { s.DecidedAt, s.NotAfter = s.DecidedAt.Add(-time.Hour), s.DecidedAt })
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"denied":          {[]string{denied}, "the signature is right, but the receipt does not permit the call to run: the outcome is denied"},
		"too late":        {[]string{late}, "it could be used until"},
		"another tool":    {[]string{"--tool", "delete_folder", r.sign(same)}, `it is about the tool "delete_file"`},
		"other arguments": {[]string{"--args", r.file("other.json", r.other), r.sign(same)}, "the digest of the arguments is"},
		"no tool":         {[]string{"--tool", "", r.sign(same)}, `it is about the tool "delete_file"`}, // a variable that is not set
		"no file":         {[]string{"--args=", r.sign(same)}, "no such file"},
		"no arguments":    {[]string{"--args", "missing.json", r.sign(same)}, "no such file"},
		"audited, other":  {[]string{"--audit", "--args", r.file("other.json", r.other), denied}, "the digest of the arguments is"},
		"stranger":        {[]string{stranger.sign(same)}, "the receipt does not verify: no known key has signed the receipt"},
		"changed":         {[]string{resigned(r.sign(same), r.sign(func(s *receipt.Statement) { s.Tool = "other" }))}, "the signature of the receipt is wrong"},
		"nonsense":        {[]string{"hello"}, "this is not a receipt"},
		"no keys":         {[]string{"--keys", r.args, r.sign(same)}, "there is no Ed25519 public key"},
		"private key":     {[]string{"--keys", filepath.Join(r.dir, "key.pem"), r.sign(same)}, "PRIVATE KEY"},
		"keys over http":  {[]string{"--keys", "http://example.com/keys", r.sign(same)}, "over https only"},
	} {
		out, stderr, code := said(t, append([]string{"receipt", "verify", "--keys", r.keys}, c.args...)...)
		require.Equal(t, 1, code, name)
		require.Empty(t, out, name)
		require.Contains(t, stderr, c.want, name)
	}
	for _, text := range []string{denied, late} {
		_, stderr, code := said(t, "receipt", "verify", "--keys", r.keys, "--audit", text)
		require.Zero(t, code, stderr)
	}
}

func TestReceiptVerifyFetchesPublishedKeys(t *testing.T) {
	t.Parallel()
	r := newReceipts(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(r.published) })
	mux.Handle("/moved", http.RedirectHandler("/keys", http.StatusFound))
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	good := r.sign(func(*receipt.Statement) {})
	_, stderr, code := said(t, "receipt", "verify", "--keys", srv.URL+"/keys", good)
	require.Zero(t, code, stderr)
	for path, want := range map[string]string{"/moved": "answered 302", "/none": "answered 404"} {
		_, stderr, code = said(t, "receipt", "verify", "--keys", srv.URL+path, good)
		require.Equal(t, 1, code)
		require.Contains(t, stderr, want)
	}
}

func TestReceiptKeyOverwritesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key.pem")
	_, _, code := said(t, "receipt", "key", "--out", path)
	require.Zero(t, code)
	about, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), about.Mode().Perm())
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	out, stderr, code := said(t, "receipt", "key", "--out", path)
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, stderr, "exists")
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestReceiptVerifyTellsAnAuditorWhatHappened(t *testing.T) {
	t.Parallel()
	r := newReceipts(t)
	for outcome, want := range map[receipt.Outcome]string{
		receipt.Denied:     "U0ERIN denied a call of delete_file by the agent deployer at ",
		receipt.Permitted:  "The policy permitted, without asking anyone, a call of delete_file",
		receipt.Refused:    "The policy refused a call of delete_file",
		receipt.Expired:    "The time to approve ran out for a call of delete_file",
		receipt.Withdrawn:  "The request was withdrawn before it was used for a call of delete_file",
		receipt.Superseded: "Another request took the place of a call of delete_file",
	} {
		text := r.sign(func(s *receipt.Statement) {
			s.Outcome, s.Approvers = outcome, nil
			if outcome == receipt.Denied {
				s.Deniers = []receipt.Person{{ID: "U0ERIN"}}
			}
		})
		out, stderr, code := said(t, "receipt", "verify", "--audit", "--keys", r.keys, text)
		require.Zero(t, code, stderr)
		require.Contains(t, out, "\n"+want)
		require.Contains(t, out, ", by the rule deletions of version p1 of the policy.\n")
	}
	refused := r.sign(func(s *receipt.Statement) {
		s.Outcome, s.Deniers = receipt.Refused, []receipt.Person{{ID: "U0ERIN"}}
	})
	out, stderr, code := said(t, "receipt", "verify", "--audit", "--keys", r.keys, refused)
	require.Zero(t, code, stderr)
	require.Contains(t, out, " of the policy. Bob\\u202e (U0BOB) and U0CAROL for U0DAVE had approved it. U0ERIN had denied it.\n")
	require.Contains(t, out, "\nApproved by  Bob\\u202e (U0BOB)\nApproved by  U0CAROL, in the place of U0DAVE\nDenied by    U0ERIN\n")
}

func TestReceiptVerifySaysWhereTheCallWasToRun(t *testing.T) {
	t.Parallel()
	r := newReceipts(t)
	placed := r.sign(func(s *receipt.Statement) {
		s.Place = receipt.Place{Server: "files", Cwd: "/home/ann\u202e", Repository: "acme/shop", Branch: "main"}
	})
	out, stderr, code := said(t, "receipt", "verify", "--keys", r.keys, placed)
	require.Zero(t, code, stderr)
	require.Contains(t, out, "Server       files\nDirectory    /home/ann\\u202e\nRepository   acme/shop\nBranch       main\n")
}
