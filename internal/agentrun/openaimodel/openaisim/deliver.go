package openaisim

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// deliver sends the answer, whole or streamed, or as much of it as the fault
// lets through.
func deliver(w http.ResponseWriter, r *http.Request, request chatRequest, a answer, f Fault) {
	switch f.Kind {
	case HungUp:
		panic(http.ErrAbortHandler)
	case WrongContentType:
		writePage(w, http.StatusOK)
		return
	default:
	}
	w.Header().Set("X-Request-Id", "req_"+a.id)
	if !request.Stream {
		deliverWhole(w, r, a, f)
		return
	}
	chunks, err := a.chunks(request.StreamOptions != nil && request.StreamOptions.IncludeUsage)
	if err != nil {
		panic(err) // unreachable: an answer always has a JSON form
	}
	deliverStream(w, r, append(chunks, []byte("[DONE]")), f, sendError)
}

func deliverWhole(w http.ResponseWriter, r *http.Request, a answer, f Fault) {
	body, err := a.whole()
	if err != nil {
		panic(err) // unreachable: an answer always has a JSON form
	}
	writeWhole(w, r, body, f)
}

func writeWhole(w http.ResponseWriter, r *http.Request, body []byte, f Fault) {
	full := len(body)
	switch f.Kind {
	case Stalled:
		giveUp(r)
	case Dropped:
		body = body[:full/2]
	case CutShort, MalformedSSE, ErrorEvent:
		full /= 2
		body = body[:full]
	default:
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(full))
	_, _ = w.Write(body) // a client that left needs no answer
	if len(body) < full {
		hangUp(w)
	}
}

func deliverStream(w http.ResponseWriter, r *http.Request, chunks [][]byte, f Fault, sendError func(http.ResponseWriter)) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache, must-revalidate")
	at := f.After
	if at <= 0 || at >= len(chunks)-1 {
		at = (len(chunks) - 1) / 2
	}
	for _, c := range chunks[:at] {
		send(w, c)
	}
	rest := chunks[at:]
	switch f.Kind {
	case Stalled:
		_ = http.NewResponseController(w).Flush()
		giveUp(r)
	case Dropped:
		hangUp(w)
	case CutShort:
		return
	case ErrorEvent:
		sendError(w)
		return
	case MalformedSSE:
		send(w, rest[0][:len(rest[0])/2])
		rest = rest[1:]
	default:
	}
	for _, c := range rest {
		send(w, c)
	}
}

func sendError(w http.ResponseWriter) {
	b, err := json.Marshal(Fault{Kind: ServerError}.problem())
	if err != nil {
		panic(err) // unreachable: a problem always has a JSON form
	}
	send(w, b)
}

// send writes one event and pushes it out, so that the client sees it come.
func send(w http.ResponseWriter, data []byte) {
	event := append([]byte("data: "), data...)
	if _, err := w.Write(append(event, "\n\n"...)); err != nil {
		return // the client left; the request ends soon
	}
	_ = http.NewResponseController(w).Flush()
}

// hangUp breaks the connection after what was written.
func hangUp(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// giveUp waits until the client does, or until the server stops.
func giveUp(r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}
