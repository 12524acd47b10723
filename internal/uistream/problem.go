package uistream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A problem is why a request is refused (RFC 9457). Clients show its text.
type problem struct {
	Title  string        `json:"title"`
	Status int           `json:"status"`
	Detail string        `json:"detail,omitempty"`
	Errors []fault       `json:"errors,omitempty"`
	About  *approvalData `json:"approval,omitempty"` // how the call stands
}

func (p *problem) Error() string { return p.Title + ": " + p.Detail }

func refuse(status int, detail string) *problem {
	return &problem{Title: http.StatusText(status), Status: status, Detail: detail}
}

func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="countersign"`)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		h.Set("Retry-After", "5")
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // nobody is left to tell of an error
}

// problemOf is what the person may read of an error. What is not known is logged.
func (s *Server) problemOf(r *http.Request, err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if e, ok := errors.AsType[*RefusedError](err); ok {
		return refuse(e.Status, e.Words)
	}
	_, large := errors.AsType[*http.MaxBytesError](err)
	switch {
	case large:
		return refuse(http.StatusRequestEntityTooLarge, "The chat is too large to be sent. Start a new one, or send only the last message.")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, "The request took too long to arrive.")
	case errors.Is(err, agentrun.ErrQueueFull):
		return refuse(http.StatusTooManyRequests, "Too many messages wait in this chat. Your message was not taken.")
	case errors.Is(err, agentrun.ErrThreadClosed):
		return refuse(http.StatusConflict, "This chat takes no more messages. Start a new one.")
	case errors.Is(err, agentrun.ErrPending):
		return refuse(http.StatusConflict, "Your message was not taken: calls of this chat wait for approval. Approve or deny them first.")
	case errors.Is(err, approvals.ErrNotFound):
		return refuse(http.StatusNotFound, "")
	}
	if r.Context().Err() == nil || !errors.Is(err, context.Canceled) {
		s.c.Log.ErrorContext(r.Context(), "cannot handle a request of a chat", slog.String("route", r.Pattern), slog.Any("err", err))
	}
	if r.Method == http.MethodGet {
		return refuse(http.StatusServiceUnavailable, "The chat can't be read now. Try again in a moment.")
	}
	return refuse(http.StatusServiceUnavailable, "Something went wrong, and it is not known whether your request counts. Send it again.")
}
