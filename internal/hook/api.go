package hook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxAnswer = 8 << 20
	// slice is how long one request waits: proxies cut connections that are silent
	// for a minute.
	slice = 50 * time.Second
	// handling is how long the API may take, besides what a request waits.
	handling = 15 * time.Second
	// away is how long the API may be away while a request waits: the bot restarts. It
	// is asked again after a pause.
	away  = 2 * time.Minute
	pause = time.Second
)

var (
	errUnreached = errors.New("the API cannot be reached")
	errClaimed   = errors.New("another call like it, or another hook that asks about the same call, has used its approval; if the settings of the agent name two different hooks of Countersign, keep one")
	errCut       = errors.New("the answer of Countersign cannot be read")
	errRedirect  = errors.New("it answers with a redirect")
	errNoAPI     = errors.New("what is at the URL of Countersign has no such API (404): it must be the address of http.listen")
)

// passing reports whether the API may answer when it is asked again.
func passing(err error) bool {
	if p, ok := errors.AsType[*problem](err); ok {
		return slices.Contains([]int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, p.status)
	}
	return errors.Is(err, errCut) || errors.Is(err, errUnreached) && !errors.Is(err, errRedirect)
}

// api speaks the HTTP API.
type api struct {
	base  *url.URL
	token string
	http  *http.Client
}

// newAPI checks the address and the token: a token is sent in plain text to this
// machine only.
func newAPI(c Config) (*api, error) {
	if c.URL == "" {
		return nil, errors.New("the URL of Countersign is missing: set COUNTERSIGN_URL or --url")
	}
	if c.Token == "" {
		return nil, errors.New("the token of the agent is missing: set COUNTERSIGN_TOKEN, COUNTERSIGN_TOKEN_FILE or --token-file")
	}
	base, err := url.Parse(c.URL)
	if err != nil || base.Host == "" || base.User != nil || base.RawQuery != "" {
		return nil, errors.New("the URL of Countersign is not one such as https://countersign.your-company.com")
	}
	if at, ends := strings.CutSuffix(strings.TrimRight(base.String(), "/"), GatewayPath); ends {
		return nil, fmt.Errorf("the URL of Countersign is %s, without %s", at, GatewayPath)
	}
	ip := net.ParseIP(base.Hostname())
	if local := base.Hostname() == "localhost" || ip != nil && ip.IsLoopback(); base.Scheme != "https" && (base.Scheme != "http" || !local) {
		return nil, errors.New("the URL of Countersign must begin with https://, except on this machine")
	}
	client := *cmp.Or(c.HTTP, http.DefaultClient)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return errRedirect }
	return &api{base, c.Token, &client}, nil
}

// A status is a request as the API states it.
type status struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Calls  []struct {
		ID        string          `json:"id"`
		Tool      string          `json:"tool"`
		Outcome   string          `json:"outcome"`
		Args      string          `json:"args_text"`
		Reason    string          `json:"reason"`
		ClaimedAt *time.Time      `json:"claimed_at"`
		Report    json.RawMessage `json:"report"`
	} `json:"calls"`
	External string `json:"external_id"`
}

// do sends a request and reads its answer, which must be a success.
func (a *api) do(ctx context.Context, limit time.Duration, method, path string, query url.Values, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var raw []byte
	if body != nil {
		var err error
		if raw, err = encode(body); err != nil {
			return err
		}
	}
	u := a.base.JoinPath(path)
	u.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("ask Countersign: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("Accept", "application/json")
	if raw != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := a.http.Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL
		}
		return fmt.Errorf("%w: %w", errUnreached, err)
	}
	defer func() { _ = answer.Body.Close() }()
	got, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil || len(got) > maxAnswer {
		return errCut
	}
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusCreated {
		var p problem
		if json.Unmarshal(got, &p) != nil && answer.StatusCode == http.StatusNotFound {
			return errNoAPI
		}
		p.status = answer.StatusCode
		return &p
	}
	if err := json.Unmarshal(got, into); err != nil {
		return errors.New("the answer of Countersign is not what it should be")
	}
	return nil
}

// A problem is an answer that is no success.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Reason string `json:"reason"`
	status int
}

func (p *problem) Error() string {
	words := []string{fmt.Sprintf("Countersign answers %d", p.status), p.Title, p.Detail, p.Reason}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ": ")
}

// decide asks about a call, waits until it is decided or the hold is over, and
// claims an approval.
func (a *api) decide(ctx context.Context, c Config, f form, q question) (verdict, error) {
	until := c.until
	git := c.Git
	if git == nil {
		git = Git
	}
	call := map[string]any{"id": cmp.Or(q.use, "call"), "tool": q.tool, "args": q.input}
	repository, branch := git(q.cwd)
	for key, v := range map[string]string{"server": q.server, "cwd": q.cwd, "repository": repository, "branch": branch, "reason": q.reason} {
		if v != "" {
			call[key] = v
		}
	}
	body := map[string]any{
		"group": q.session, "session": q.session, "reuse": true, "calls": []any{call},
		"carries": map[string]bool{"edits": f.edits, "reasons": true, "late": c.Keep},
	}
	if q.use != "" {
		body["external_id"] = q.external()
	}
	var s status
	wait := max(min(c.Hold, slice), 0)
	err := a.do(ctx, wait+handling, http.MethodPost, "/v1/approvals", waiting(wait), body, &s)
	for err == nil && s.Status == "pending" {
		if s.ID == "" || len(s.Calls) != 1 {
			return verdict{}, errors.New("the answer of Countersign is not what it should be")
		}
		if wait = min(until.Sub(c.Now()).Truncate(time.Second), slice); wait < time.Second {
			return verdict{reason: "Pending: nobody has decided this call yet, and it was not run. Ask again with exactly the same call to keep waiting. Request " + s.ID + "."}, nil
		}
		s, err = a.poll(ctx, c, s, wait)
	}
	if ctx.Err() != nil {
		a.leave(ctx, s, c.Keep)
		return verdict{}, stoppedBy(ctx)
	}
	if err != nil {
		return verdict{}, err
	}
	return a.settle(ctx, f, q, s)
}

// poll returns how the request stands once it has changed or the wait is over. While the
// API is away it asks again, for no longer than the hook may wait. Reading may be
// repeated, unlike a claim. With an error the status is the one before.
func (a *api) poll(ctx context.Context, c Config, s status, wait time.Duration) (status, error) {
	var failing time.Time // since when
	for {
		var next status
		err := a.do(ctx, wait+handling, http.MethodGet, s.path(), waiting(wait), nil, &next)
		if err == nil {
			return next, nil
		}
		now := c.Now()
		if failing.IsZero() {
			failing = now
		}
		wait = min(wait, c.until.Sub(now.Add(pause)).Truncate(time.Second))
		if !passing(err) || ctx.Err() != nil || wait < time.Second || now.Sub(failing) > away {
			return s, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func waiting(d time.Duration) url.Values {
	return url.Values{"wait": {strconv.Itoa(int(d/time.Second)) + "s"}}
}

// external names the call of this session.
func (q question) external() string {
	id := q.session + "/" + q.use
	if len(id) > 256 {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	}
	return id
}

// settle turns a request that is decided into a verdict.
func (a *api) settle(ctx context.Context, f form, q question, s status) (verdict, error) {
	if s.Status != "settled" || len(s.Calls) != 1 || s.ID == "" {
		return verdict{}, errors.New("the answer of Countersign is not what it should be")
	}
	call := s.Calls[0]
	switch call.Outcome {
	case "approved", "allowed":
	case "refused":
		return verdict{reason: "Refused by the policy; nobody was asked. " + call.Reason}, nil
	case "denied", "expired", "withdrawn", "superseded":
		return verdict{reason: cmp.Or(call.Reason, "Not run: the call is "+call.Outcome+".")}, nil
	default:
		return verdict{}, errors.New("the answer of Countersign is not what it should be")
	}
	var claim struct {
		Call string `json:"call"`
		Tool string `json:"tool"`
		Args string `json:"args_text"`
	}
	if err := a.do(ctx, handling, http.MethodPost, s.path("calls", call.ID, "claim"), nil, nil, &claim); err != nil {
		if p, ok := errors.AsType[*problem](err); ok && path.Base(p.Type) == "already-claimed" {
			err = errClaimed
		} else if ctx.Err() != nil {
			err = stoppedBy(ctx)
		}
		return verdict{}, err
	}
	if claim.Call != call.ID || claim.Tool != q.tool || claim.Args == "" {
		return verdict{}, errors.New("the claim is not of this call")
	}
	// After an answer with any other input, an agent may run what it asked about.
	if _, bad := fieldsOf([]byte(claim.Args)); bad != nil {
		return verdict{}, fmt.Errorf("the input that was approved %w", bad)
	}
	v := verdict{allow: true, reason: "Approved through Countersign."}
	edited := claim.Args != string(q.input)
	switch {
	case edited && !f.edits:
		return verdict{}, errors.New("people changed the input, which this agent cannot run")
	case edited, f.exact != nil && f.exact(q.tool) && call.Outcome == "approved":
		v.input = json.RawMessage(claim.Args) // another hook may have changed the input meanwhile
	}
	return v, nil
}

// stoppedBy is why a question is not answered any more.
func stoppedBy(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errTooLong) {
		return errors.New("the answer took too long")
	}
	return errors.New("the hook was stopped")
}

// leave withdraws a request whose agent has stopped waiting, as well as the little
// time that is left permits.
func (a *api) leave(ctx context.Context, s status, keep bool) {
	if s.ID == "" || keep {
		return
	}
	var next status
	_ = a.do(context.WithoutCancel(ctx), 2*time.Second, http.MethodPost, "/v1/approvals/"+url.PathEscape(s.ID)+"/withdraw", nil,
		map[string]string{"reason": "the agent stopped waiting"}, &next)
}

// after says what became of a call, or that its session ended. A request that is
// still open was answered at the terminal.
func (a *api) after(ctx context.Context, q question) error {
	if q.outcome == "" {
		return nil
	}
	var list struct {
		Approvals []status `json:"approvals"`
	}
	if err := a.do(ctx, handling, http.MethodGet, "/v1/approvals", url.Values{"group": {q.session}, "limit": {"200"}}, nil, &list); err != nil {
		return err
	}
	var failed error
	for _, s := range list.Approvals {
		if q.outcome == "ended" && s.Status == "pending" {
			var next status
			failed = cmp.Or(failed, a.do(ctx, handling, http.MethodPost, s.path("withdraw"), nil, map[string]string{"reason": "the session of the agent ended"}, &next))
		}
	}
	if q.outcome == "ended" {
		return failed
	}
	// The id names the call, unless another call with the same input asked first.
	looked := 0
	for _, named := range []bool{true, false} {
		for _, s := range list.Approvals {
			if len(s.Calls) != 1 || s.Calls[0].Tool != q.tool || named != (q.use != "" && s.External == q.external()) || looked == maxLooked {
				continue
			}
			looked++
			if done, err := a.became(ctx, q, s, named); done || err != nil {
				return err
			}
		}
	}
	return nil
}

// maxLooked is how many requests are looked at to find that of a call.
const maxLooked = 20

// path is the path of something about the request.
func (s status) path(of ...string) string {
	parts := []string{"/v1/approvals", url.PathEscape(s.ID)}
	for _, part := range of {
		parts = append(parts, url.PathEscape(part))
	}
	return strings.Join(parts, "/")
}

// became says what became of a call, if the request is about it and does not know
// yet.
func (a *api) became(ctx context.Context, q question, s status, named bool) (bool, error) {
	var full, next status
	if err := a.do(ctx, handling, http.MethodGet, s.path(), nil, nil, &full); err != nil {
		return false, err
	}
	if len(full.Calls) != 1 || !named && full.Calls[0].Args != string(q.input) {
		return false, nil
	}
	call := full.Calls[0]
	if full.Status == "pending" {
		return true, a.do(ctx, handling, http.MethodPost, s.path("withdraw"), nil, map[string]string{"reason": "it was answered at the terminal first"}, &next)
	}
	if call.ClaimedAt == nil || call.Report != nil {
		return false, nil
	}
	report := map[string]string{"state": q.outcome, "words": cut(q.response)}
	if q.outcome == "ran" {
		report = map[string]string{"state": q.outcome, "excerpt": cut(q.response)}
	}
	return true, a.do(ctx, handling, http.MethodPost, s.path("calls", call.ID, "result"), nil, report, &next)
}

// cut is the beginning of a text: a card shows no more.
func cut(text string) string {
	const most = 4 << 10
	if len(text) > most {
		text = text[:most]
	}
	return string(bytes.ToValidUTF8([]byte(text), []byte("\uFFFD")))
}
