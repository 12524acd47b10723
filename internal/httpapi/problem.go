package httpapi

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A kind is a type of problem, in the sense of RFC 9457. Its name is the end of
// its URI, under which the API says what it means.
type kind struct {
	name   string
	status int
	title  string
	help   string // for people who look the type up
}

// The kinds. docs/api.md lists them.
var (
	kindMalformed    = kind{"malformed-json", http.StatusBadRequest, "The body is not JSON that every reader reads alike", "The body must be one JSON value in UTF-8, without a key twice in one object, without half a surrogate pair, and without anything after it. The detail names the byte."}
	kindMediaType    = kind{"unsupported-media-type", http.StatusUnsupportedMediaType, "The body must be JSON", "Send Content-Type: application/json, in UTF-8 and without a content encoding."}
	kindTooLarge     = kind{"too-large", http.StatusRequestEntityTooLarge, "The request is too large", "The detail names the limit."}
	kindTooSlow      = kind{"too-slow", http.StatusRequestTimeout, "The body did not arrive in time", "Nothing was done. Send the request again."}
	kindInvalid      = kind{"invalid-request", http.StatusUnprocessableEntity, "The request cannot be understood", "Each error names a place, as a JSON pointer into the body or as a parameter, and what is wrong there. Unknown keys are errors. Nothing was done."}
	kindKeyReused    = kind{"idempotency-key-reused", http.StatusUnprocessableEntity, "The Idempotency-Key was used for another request", "A key names one request. Use a new key for another body."}
	kindInProgress   = kind{"in-progress", http.StatusConflict, "Another request is changing the same thing", "Send the same request again after the time in Retry-After."}
	kindUnauthorized = kind{"unauthorized", http.StatusUnauthorized, "The credential proves no agent", "Send Authorization: Bearer with a token of an agent in the configuration."}
	kindNoDoor       = kind{"door-not-allowed", http.StatusForbidden, "The agent may not use the HTTP API", "The configuration lists where each agent may ask."}
	kindOrigin       = kind{"origin-not-allowed", http.StatusForbidden, "Pages of this origin may not call the API", "The setting http.origins lists the origins that may."}
	kindHost         = kind{"unknown-host", http.StatusMisdirectedRequest, "The API does not answer under this name", "A listener on loopback answers as localhost and under the names in http.hosts."}
	kindNotFound     = kind{"not-found", http.StatusNotFound, "There is no such thing", "It does not exist, or it is not yours: the answer is the same."}
	kindRemoved      = kind{"removed", http.StatusGone, "The request was removed", "It had ended long ago. Nothing was made or run in its place: to ask anew, use another external id and idempotency key."}
	kindMethod       = kind{"method-not-allowed", http.StatusMethodNotAllowed, "The resource does not have this method", "The header Allow lists its methods."}
	kindPending      = kind{"pending", http.StatusConflict, "Not every call has an outcome", "Wait for the request. An answer in which a call is missing is never written."}
	kindSettled      = kind{"settled", http.StatusConflict, "The request is settled", "It has its outcomes, which never change. The member outcomes lists them by call."}
	kindNotApproved  = kind{"not-approved", http.StatusConflict, "The call may not run", "Only an approved call can be claimed. The member outcome says what became of it."}
	kindClaimed      = kind{"already-claimed", http.StatusConflict, "The decision was claimed before", "A decision is for one execution. If the claim was not yours, do not run the call."}
	kindLapsed       = kind{"decision-lapsed", http.StatusConflict, "The decision was not claimed in time", "Ask again under another name: the same external_id or Idempotency-Key finds this request again."}
	kindNotExternal  = kind{"not-reportable", http.StatusConflict, "The call does not take this result", "An approved call is reported after it was claimed; a call that is to be fulfilled takes one result."}
	kindOtherFormat  = kind{"other-format", http.StatusConflict, "The answer cannot be written in this format", "Answers by position exist only in the format that the request was handed in with."}
	kindLimited      = kind{"too-many-requests", http.StatusTooManyRequests, "Too many requests", "Send the request again after the time in Retry-After."}
	kindUnavailable  = kind{"unavailable", http.StatusServiceUnavailable, "The request could not be handled now", "It may or may not have been stored. Send the same request again, with the same Idempotency-Key."}
	kindInternal     = kind{"internal", http.StatusInternalServerError, "Something is wrong with this program", "No call may run because of this answer. The log of the program says more."}
)

// kinds are all of them.
var kinds = []kind{
	kindMalformed, kindMediaType, kindTooLarge, kindTooSlow, kindInvalid, kindKeyReused, kindInProgress, kindUnauthorized,
	kindNoDoor, kindOrigin, kindHost, kindNotFound, kindRemoved, kindMethod, kindPending, kindSettled, kindNotApproved, kindClaimed,
	kindLapsed, kindNotExternal, kindOtherFormat, kindLimited, kindUnavailable, kindInternal,
}

// problems is the path under which the kinds are served.
const problems = "/v1/problems/"

// A problem is why a request was not answered as it wished. It never holds
// arguments or a credential.
type problem struct {
	kind   kind
	detail string
	faults []wireFault
	header http.Header
	more   map[string]any // members of its kind
}

func (p *problem) Error() string { return p.kind.name + ": " + p.detail }

func refuse(k kind, format string, args ...any) *problem {
	return &problem{kind: k, detail: fmt.Sprintf(format, args...)}
}

func (p *problem) with(key string, value any) *problem {
	if p.more == nil {
		p.more = map[string]any{}
	}
	p.more[key] = value
	return p
}

func (p *problem) set(key, value string) *problem {
	if p.header == nil {
		p.header = http.Header{}
	}
	p.header.Set(key, value)
	return p
}

// again says after which time the request may be sent once more.
func (p *problem) again(after time.Duration) *problem {
	return p.set("Retry-After", strconv.Itoa(int((after+time.Second-1)/time.Second)))
}

type wireFault struct {
	At      string `json:"at"`
	Problem string `json:"problem"`
}

// answer is the problem as it is sent.
func (p *problem) answer() answer {
	doc := map[string]any{"type": problems + p.kind.name, "title": p.kind.title, "status": p.kind.status}
	detail := p.detail
	if p.faults != nil {
		doc["errors"] = p.faults
		detail = cmp.Or(detail, strings.TrimSpace(p.faults[0].At+" "+p.faults[0].Problem)) // many clients show only this
	}
	if detail != "" {
		doc["detail"] = detail
	}
	maps.Copy(doc, p.more)
	body, err := encode(doc)
	if err != nil {
		body = []byte(`{"type":"` + problems + kindInternal.name + `","title":"` + kindInternal.title + `","status":500}`)
		p = &problem{kind: kindInternal}
	}
	return answer{status: p.kind.status, header: p.header, media: "application/problem+json", body: body}
}

// aboutKind serves a type of problem.
func aboutKind(name string) (answer, error) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return answer{}, refuse(kindNotFound, "")
	}
	k := kinds[i]
	return reply(http.StatusOK, map[string]any{"type": problems + k.name, "title": k.title, "status": k.status, "help": k.help})
}

// An answer is what is sent, as a whole: nothing is written before it is built.
type answer struct {
	status int
	header http.Header
	media  string
	body   []byte
}

func reply(status int, doc any) (answer, error) {
	body, err := encode(doc)
	if err != nil {
		return answer{}, err
	}
	return answer{status: status, media: "application/json", body: body}, nil
}

func (a answer) set(key, value string) answer {
	if a.header == nil {
		a.header = http.Header{}
	}
	a.header.Set(key, value)
	return a
}

// write sends the answer. One that would be empty where its status has a body is
// sent as a problem: clients take an empty 200 for a yes.
func (a answer) write(w http.ResponseWriter) {
	if len(a.body) == 0 && a.status != http.StatusNotModified && a.status != http.StatusNoContent {
		a = refuse(kindInternal, "the answer is empty").answer()
	}
	h := w.Header()
	maps.Copy(h, a.header)
	h.Set("X-Content-Type-Options", "nosniff")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	if len(a.body) > 0 {
		h.Set("Content-Type", a.media)
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // nobody is left to tell of an error
}
