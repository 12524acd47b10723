package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/receipt"
	"github.com/countersign/countersign/internal/strictyaml"
)

const (
	maxKeys      = 1 << 20
	maxArguments = 64 << 20
	keysTimeout  = 10 * time.Second
)

// receiptVerify says whether a receipt verifies, and what it says.
func receiptVerify(ctx context.Context, in *call) error {
	keysAt := in.flags.String("keys", "", "The public keys: a `FILE`, as a JSON Web Key Set or in PEM, or the URL at which the bot publishes them.")
	tool := in.flags.String("tool", "", "The `NAME` of the tool that is about to run. Another one fails.")
	argsAt := in.flags.String("args", "", "The `FILE` with the exact argument bytes of the call that is about to run. Others fail.")
	audit := in.flags.Bool("audit", false, "Only verify the receipt, whatever its outcome is and even if it can no longer be used.")
	asJSON := in.flags.Bool("json", false, "Write the statement as it was signed.")
	words, err := in.parse()
	if err != nil {
		return err
	}
	keys, err := readKeys(ctx, *keysAt)
	if err != nil {
		return fmt.Errorf("read the keys at %s: %w", *keysAt, err)
	}
	given, err := readReceipt(words)
	if err != nil {
		return err
	}
	s, err := receipt.Verify(keys, given)
	if err != nil {
		return fmt.Errorf("the receipt does not verify: %w", err)
	}
	if in.given("tool") && s.Tool != *tool {
		return fmt.Errorf("%w: it is about the tool %q", receipt.ErrOtherCall, s.Tool)
	}
	if in.given("args") {
		args, err := readAtMost(*argsAt, maxArguments)
		if err != nil {
			return fmt.Errorf("read the arguments: %w", err)
		}
		if err := s.CoversArguments(args); err != nil {
			return err
		}
	}
	if !*audit {
		if err := s.Usable(time.Now()); err != nil {
			return fmt.Errorf("the signature is right, but %w", err)
		}
	}
	if *asJSON {
		return json.NewEncoder(in.stdout).Encode(s)
	}
	_, err = io.WriteString(in.stdout, receiptInWords(s, in.given("args")))
	return err
}

// receiptInWords says what the statement says. Names and ids come from people and
// models: what a terminal would hide or obey is written as escapes.
func receiptInWords(s receipt.Statement, checked bool) string {
	var out strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&out, "%-13s%s\n", name, approvals.Visible(value))
		}
	}
	people := func(name string, all []receipt.Person) {
		for _, p := range all {
			line(name, personInWords(p, ", in the place of "))
		}
	}
	arguments := s.Arguments
	if checked {
		arguments += ", as given"
	}
	out.WriteString("The receipt verifies.\n" + approvals.Visible(accountOf(s)) + "\n\n")
	line("Outcome", string(s.Outcome))
	people("Approved by", s.Approvers)
	people("Denied by", s.Deniers)
	people("Edited by", s.Editors)
	line("Tool", s.Tool)
	line("Arguments", arguments)
	line("Server", s.Place.Server)
	line("Directory", s.Place.Cwd)
	line("Repository", s.Place.Repository)
	line("Branch", s.Place.Branch)
	line("Call", s.Call)
	line("Request", s.Request)
	line("Fingerprint", s.Fingerprint)
	line("Agent", s.Agent)
	line("Rule", s.Rule)
	line("Policy", s.Policy)
	line("Decided at", inWords(s.DecidedAt))
	if !s.NotAfter.IsZero() {
		line("Not after", inWords(s.NotAfter))
	}
	return out.String()
}

func inWords(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// accountOf says in a sentence who decided what, when, and by which rule.
func accountOf(s receipt.Statement) string {
	decided := map[receipt.Outcome]string{
		receipt.Approved:   listInWords(s.Approvers) + " approved",
		receipt.Denied:     listInWords(s.Deniers) + " denied",
		receipt.Permitted:  "The policy permitted, without asking anyone,",
		receipt.Refused:    "The policy refused",
		receipt.Expired:    "The time to approve ran out for",
		receipt.Withdrawn:  "The request was withdrawn before it was used for",
		receipt.Superseded: "Another request took the place of",
	}
	account := fmt.Sprintf("%s a call of %s by the agent %s at %s", decided[s.Outcome], s.Tool, s.Agent, inWords(s.DecidedAt))
	if s.Rule != "" {
		account += ", by the rule " + s.Rule
		if s.Policy != "" {
			account += " of version " + s.Policy + " of the policy"
		}
	}
	account += "."
	if s.Outcome != receipt.Approved && len(s.Approvers) > 0 {
		account += " " + listInWords(s.Approvers) + " had approved it."
	}
	if s.Outcome != receipt.Denied && len(s.Deniers) > 0 {
		account += " " + listInWords(s.Deniers) + " had denied it."
	}
	return account
}

func personInWords(p receipt.Person, instead string) string {
	who := p.ID
	if p.Name != "" {
		who = fmt.Sprintf("%s (%s)", p.Name, p.ID)
	}
	if p.For != "" {
		who += instead + p.For
	}
	return who
}

func listInWords(people []receipt.Person) string {
	all := make([]string, 0, len(people))
	for _, p := range people {
		all = append(all, personInWords(p, " for "))
	}
	return strings.Join(all, " and ")
}

func readReceipt(words []string) (string, error) {
	if len(words) == 1 && words[0] != "-" {
		return strings.TrimSpace(words[0]), nil
	}
	text, err := limited(os.Stdin, maxKeys)
	if err != nil {
		return "", fmt.Errorf("read the receipt: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func readKeys(ctx context.Context, at string) (receipt.Keys, error) {
	read := func() ([]byte, error) { return readAtMost(at, maxKeys) }
	if strings.Contains(at, "://") {
		read = func() ([]byte, error) { return fetchKeys(ctx, at) }
	}
	data, err := read()
	if err != nil {
		return receipt.Keys{}, err
	}
	return receipt.ParseKeys(data)
}

// fetchKeys asks for the public keys. Someone who can change them on the way can forge
// receipts, so they are accepted only over TLS or from this machine, and redirects are
// not followed.
func fetchKeys(ctx context.Context, at string) ([]byte, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, errors.New("it is not a URL")
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme != "https" && (u.Scheme != "http" || ip == nil || !ip.IsLoopback()) {
		return nil, errors.New("keys are fetched over https only")
	}
	ctx, cancel := context.WithTimeout(ctx, keysTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered %d", resp.StatusCode)
	}
	return limited(resp.Body, maxKeys)
}

func readAtMost(path string, most int64) ([]byte, error) {
	f, err := strictyaml.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return limited(f, most)
}

func limited(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("it has more than %d bytes", most)
	}
	return data, nil
}

// receiptKey makes a key pair: the private key in a file, the public key on the
// standard output.
func receiptKey(_ context.Context, in *call) error {
	path := in.flags.String("out", "", "The new `FILE` for the private key. It must not exist.")
	if _, err := in.parse(); err != nil {
		return err
	}
	private, err := receipt.GenerateKey()
	if err != nil {
		return err
	}
	signer, err := receipt.ParseSigner(private)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(*path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the private key: %w", err)
	}
	_, err = f.Write(private)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the private key: %w", err)
	}
	if _, err := in.stdout.Write(receipt.NewKeys(signer.Key()).JWKS()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(in.stderr, "The private key is in %s. Its id is %s.\n", *path, signer.Key().ID())
	return err
}
