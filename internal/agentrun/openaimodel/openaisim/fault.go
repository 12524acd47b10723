package openaisim

import (
	"net/http"
	"strings"
)

// A FaultKind is a way in which an answer goes wrong.
type FaultKind string

// Faults that answer with an error, before anything else.
const (
	RateLimited   FaultKind = "rate_limited"   // 429, worth another try
	QuotaExceeded FaultKind = "quota_exceeded" // 429 with code insufficient_quota, not worth one
	Unauthorized  FaultKind = "unauthorized"   // 401 with code invalid_api_key
	ModelNotFound FaultKind = "model_not_found"
	ContextLength FaultKind = "context_length" // 400 with code context_length_exceeded
	ServerError   FaultKind = "server_error"   // 500
	BadGateway    FaultKind = "bad_gateway"    // 502 from a proxy: HTML, no JSON
	Unavailable   FaultKind = "unavailable"    // 503
)

// Faults of the connection and of the bytes on it. An answer that is not
// streamed has no chunks: Dropped breaks it off half way, Stalled never starts
// it, and the others deliver half of its JSON.
const (
	HungUp           FaultKind = "hung_up"            // the connection closes before any answer
	Dropped          FaultKind = "dropped"            // it breaks in the middle
	Stalled          FaultKind = "stalled"            // nothing more comes, until the client gives up
	CutShort         FaultKind = "cut_short"          // the stream ends in good order, but early: no finish_reason, no [DONE]
	MalformedSSE     FaultKind = "malformed_sse"      // one chunk is half a JSON document; the rest follows
	ErrorEvent       FaultKind = "error_event"        // the stream carries an error and ends
	WrongContentType FaultKind = "wrong_content_type" // 200 with an HTML page
)

// Faults of what the model says.
const (
	ContentFiltered FaultKind = "content_filtered"   // half the text, no calls, finish_reason content_filter
	LengthReached   FaultKind = "length_reached"     // text or last arguments cut in half, finish_reason length
	MalformedArgs   FaultKind = "malformed_args"     // the arguments of the last call are not JSON
	UnknownTool     FaultKind = "unknown_tool"       // one more call, of a tool that was not offered
	DuplicateIDs    FaultKind = "duplicate_call_ids" // all calls, two at least, have one id
	Empty           FaultKind = "empty"              // neither text nor calls
	NoChoices       FaultKind = "no_choices"         // an empty list of choices
)

// A Fault makes one answer go wrong on purpose.
type Fault struct {
	Kind FaultKind
	// RetryAfter is sent as that header, word for word, if the fault answers
	// with an error.
	RetryAfter string
	// After is how many chunks of a stream are sent before a fault of the
	// connection strikes; zero means half of them.
	After int
}

// noSuchTool is a name that fits the pattern and is never offered.
const noSuchTool = "scripted_tool_that_does_not_exist"

// problem returns the error that the fault answers with, or nil.
func (f Fault) problem() *problem {
	switch f.Kind {
	case RateLimited:
		return &problem{http.StatusTooManyRequests, "Scripted: too many requests.", "requests", "", "rate_limit_exceeded"}
	case QuotaExceeded:
		return &problem{http.StatusTooManyRequests, "Scripted: the quota is used up.", "insufficient_quota", "", "insufficient_quota"}
	case Unauthorized:
		return &problem{http.StatusUnauthorized, "Scripted: the API key is not valid.", "invalid_request_error", "", "invalid_api_key"}
	case ModelNotFound:
		return &problem{http.StatusNotFound, "Scripted: there is no such model.", "invalid_request_error", "", "model_not_found"}
	case ContextLength:
		return invalid("messages", "context_length_exceeded", "Scripted: the messages are longer than the model's context.")
	case ServerError:
		return &problem{http.StatusInternalServerError, "Scripted: the server had an error.", "server_error", "", ""}
	case BadGateway:
		return &problem{http.StatusBadGateway, "", "", "", ""}
	case Unavailable:
		return &problem{http.StatusServiceUnavailable, "Scripted: the server is overloaded.", "server_error", "", ""}
	default:
		return nil
	}
}

// bend returns the reply as the fault makes the model say it.
func (f Fault) bend(r Reply) (Reply, string) {
	switch f.Kind {
	case ContentFiltered:
		return Reply{Text: half(r.Text)}, "content_filter"
	case LengthReached:
		if last := len(r.Calls) - 1; last >= 0 {
			r.Calls[last].Args = half(r.Calls[last].Args)
			return r, "length"
		}
		r.Text = half(r.Text)
		return r, "length"
	case MalformedArgs:
		if len(r.Calls) == 0 {
			r.Calls = []Call{{Name: noSuchTool}}
		}
		r.Calls[len(r.Calls)-1].Args = `{"path": "reports/`
	case UnknownTool:
		r.Calls = append(r.Calls, Call{Name: noSuchTool, Args: `{}`})
	case DuplicateIDs:
		r.Calls = sameIDs(r.Calls)
	case Empty, NoChoices:
		return Reply{}, "stop"
	default:
	}
	if len(r.Calls) > 0 {
		return r, "tool_calls"
	}
	return r, "stop"
}

func sameIDs(calls []Call) []Call {
	if len(calls) == 0 {
		calls = []Call{{Name: noSuchTool, Args: `{}`}}
	}
	if len(calls) == 1 {
		calls = append(calls, calls[0])
	}
	id := callID()
	for i := range calls {
		calls[i].ID = id
	}
	return calls
}

// half returns the first half of s, by runes.
func half(s string) string {
	runes := []rune(s)
	return strings.TrimSpace(string(runes[:len(runes)/2]))
}
