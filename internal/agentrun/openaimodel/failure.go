package openaimodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	openai "github.com/sashabaranov/go-openai"

	"github.com/countersign/countersign/internal/agentrun"
)

// A failure is why an attempt gave no answer.
type failure struct {
	code  agentrun.ModelErrorCode
	words string        // for people; empty: those of an answer that never came
	again bool          // asking again may help
	after time.Duration // the server asked to wait for that long
	text  string        // for the log

	notRun bool                    // the provider certainly did nothing with the request
	ran    []agentrun.ProviderCall // what the provider called itself before the answer broke off
}

// judge says what err means for the next attempt and for people.
func (a *attempt) judge(err error) *failure {
	f := &failure{code: agentrun.ModelUnavailable, again: true, text: err.Error(), notRun: a.notRun()}
	var wrong *malformedError
	var link *url.Error
	switch p, isProblem := a.problem(err); {
	case errors.Is(err, errTimeout):
		f.again, f.words = false, wordsTimeout
	case errors.Is(err, errTooLarge):
		f.again, f.words = false, wordsTooLarge
	case errors.Is(err, errFiltered):
		f.again, f.code, f.words = false, agentrun.ContentFiltered, wordsFiltered
	case errors.Is(err, errRedirect):
		f.again, f.code, f.words = false, agentrun.ModelRefused, wordsNotFound
	case errors.Is(err, errBadKey):
		f.again, f.code, f.words = false, agentrun.ModelRefused, wordsKey
	case errors.Is(err, errSilent):
	case isProblem:
		p.judge(f)
		f.after = a.retryAfter
	case errors.As(err, &wrong):
		f.text = fmt.Sprintf("%v (content type %.60q)", err, a.contentType)
	case !a.sent: // go-openai would not even make a request of it
		f.again, f.code, f.words = false, agentrun.ModelRefused, wordsRequest
	case errors.As(err, &link):
		f.text = link.Err.Error() // without the URL
	}
	return f
}

// redact keeps secrets out of what goes to the log, and its length in bounds.
func (f *failure) redact(secrets ...string) *failure {
	var forms []string
	for _, s := range secrets {
		quoted := strconv.Quote(s)
		forms = append(forms, s, quoted[1:len(quoted)-1], url.QueryEscape(s), url.PathEscape(s))
	}
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) }) // one may hold another
	for _, s := range forms {
		if s != "" {
			f.text = strings.ReplaceAll(f.text, s, "[redacted]")
		}
	}
	const most = 600
	if f.text = strings.ToValidUTF8(f.text, "\uFFFD"); utf8.RuneCountInString(f.text) > most {
		f.text = string([]rune(f.text)[:most]) + "… (cut)"
	}
	return f
}

// modelError returns the failure as the run gets it, after n attempts. Its
// cause is text only: what go-openai returned holds what the provider wrote.
func (f *failure) modelError(n int) *agentrun.ModelError {
	words := f.words
	if words == "" {
		words = wordsUnavailable(n)
	}
	return &agentrun.ModelError{Code: f.code, Words: words, Err: fmt.Errorf("attempt %d: %w", n, errors.New(f.text)), NotRun: f.notRun, Ran: f.ran}
}

// A problem is an error that the server reports, by status or in the stream.
type problem struct {
	status     int // 0: in the stream
	code, kind string
	param      string
	message    string // for the log
	said       string // all of it in lower case, only to be searched
}

// reported is an error that the server put into a stream, of any form.
func reported(raw json.RawMessage) error {
	var known *openai.APIError
	if json.Unmarshal(raw, &known) == nil {
		return known
	}
	return &openai.RequestError{Body: raw}
}

func (a *attempt) problem(err error) (problem, bool) {
	p := problem{status: a.status}
	if p.status < 400 {
		p.status = 0
	}
	var api *openai.APIError
	var other *openai.RequestError
	switch {
	case errors.As(err, &other): // of a form that is not OpenAI's
		p.message = strings.Join(strings.Fields(string(other.Body)), " ")
	case errors.As(err, &api):
		p.kind, p.message = api.Type, api.Message
		if api.Param != nil {
			p.param = *api.Param
		}
		if api.Code != nil {
			p.code = fmt.Sprint(api.Code)
		}
		if code, err := strconv.Atoi(p.code); err == nil && p.status == 0 && code >= 400 && code < 600 {
			p.status = code
		}
	default:
		return p, p.status != 0
	}
	p.said = strings.ToLower(p.message)
	return p, true
}

func (p problem) judge(f *failure) {
	f.text = p.text()
	final := func(code agentrun.ModelErrorCode, words string) {
		f.again, f.code, f.words = false, code, words
	}
	switch {
	case p.tooLong():
		final(agentrun.ContextTooLong, wordsTooLong)
	case p.is("content_filter", "content_policy_violation", "invalid_prompt"):
		final(agentrun.ContentFiltered, wordsFiltered)
	case p.status == http.StatusPaymentRequired,
		p.is("insufficient_quota", "billing_hard_limit_reached", "billing_not_active"):
		final(agentrun.ModelRefused, wordsQuota)
	case p.status == http.StatusTooManyRequests, p.status == 0 && p.is("rate_limit_exceeded"):
		f.code, f.words = agentrun.RateLimited, wordsRateLimited
	case p.status == http.StatusUnauthorized, p.status == http.StatusForbidden, p.is("invalid_api_key"):
		final(agentrun.ModelRefused, wordsKey)
	case p.status == http.StatusNotFound, p.is("model_not_found"):
		final(agentrun.ModelRefused, wordsNotFound)
	case p.status == http.StatusRequestTimeout, p.status == http.StatusConflict:
	case p.status >= 400 && p.status < 500, p.is("invalid_request_error"):
		final(agentrun.ModelRefused, wordsRequest)
	}
}

// tooLong reports whether the history does not fit the model. Only OpenAI has
// a code for it; others say it in words.
func (p problem) tooLong() bool {
	if p.is("context_length_exceeded", "exceed_context_size_error") || p.status == http.StatusRequestEntityTooLarge {
		return true
	}
	if p.status != http.StatusBadRequest && p.status != http.StatusUnprocessableEntity {
		return false
	}
	return slices.ContainsFunc(
		[]string{"context length", "context window", "context size", "context_length_exceeded", "prompt is too long"},
		func(s string) bool { return strings.Contains(p.said, s) })
}

func (p problem) is(names ...string) bool {
	return slices.Contains(names, p.code) || slices.Contains(names, p.kind)
}

func (p problem) text() string {
	var b strings.Builder
	b.WriteString("the server reports an error")
	if p.status != 0 {
		fmt.Fprintf(&b, ", status %d", p.status)
	}
	for _, s := range []struct{ name, value string }{{"code", p.code}, {"type", p.kind}, {"param", p.param}, {"message", p.message}} {
		if s.value != "" {
			fmt.Fprintf(&b, ", %s %q", s.name, s.value)
		}
	}
	return b.String()
}
