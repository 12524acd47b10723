package uistream

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// decideApproval is POST /api/chat/{id}/approvals/{approval}: one answer, at any
// time, of anybody whom the policy lets decide.
func (s *Server) decideApproval(c caller) error {
	body, err := s.body(c)
	if err != nil {
		return err
	}
	a, faults := readAnswer(body)
	if len(faults) > 0 {
		p := refuse(http.StatusUnprocessableEntity, "The request can't be understood.")
		p.Errors = faults
		return p
	}
	q, err := s.askedFor(c, &a)
	if err != nil {
		return err
	}
	o, err := s.decide(c.r.Context(), c.user, q, a)
	if err != nil {
		return err
	}
	d := o.data(s, c.user)
	if o.refused == nil {
		return c.reply(d)
	}
	p := refuse(http.StatusConflict, o.words)
	refusedPerson := errors.Is(o.refused, approvals.ErrNotEligible) || errors.Is(o.refused, approvals.ErrOwnRequest)
	if e, ok := errors.AsType[*RefusedError](o.refused); ok || refusedPerson {
		if p = refuse(http.StatusForbidden, o.words); ok {
			p.Status = e.Status
		}
	}
	p.About = d
	return p
}

// readApproval is GET /api/chat/{id}/approvals/{approval}: how the call stands,
// for those who may read it.
func (s *Server) readApproval(c caller) error {
	var a answer
	q, err := s.askedFor(c, &a)
	if err != nil {
		return err
	}
	return c.reply(approvalOf(q.batch, q.approval, q.call.Args, c.user, s.c.Now()))
}

// askedFor finds the call that the path names. To a person who may not read it,
// there is none.
func (s *Server) askedFor(c caller, a *answer) (asked, error) {
	a.approval = c.r.PathValue("approval")
	q, err := s.resolve(c.r.Context(), *a, func(run agentrun.Run, b approvals.Batch) (bool, error) {
		if !hasRun(c.r.PathValue("id"), run) {
			return false, nil
		}
		return s.mayRead(c.r.Context(), c.user, b)
	})
	if errors.Is(err, errForged) {
		return q, refuse(http.StatusNotFound, wordsUnknown)
	}
	return q, err
}

// readAnswer reads the body of a decision.
func readAnswer(body []byte) (answer, []fault) {
	var r reader
	var a answer
	var wire map[string]json.RawMessage
	var approved *bool
	if approvals.CheckJSON(body, maxDepth) != nil || !r.into(body, "", "an object", &wire) {
		r.wrong("", "must be a JSON object")
		return a, r.faults
	}
	if !r.into(wire["approved"], "/approved", "true or false", &approved) && len(r.faults) == 0 { // it is missing or null
		r.wrong("/approved", "must be true or false")
	}
	r.into(wire["reason"], "/reason", "a text", &a.reason)
	if len(a.reason) > approvals.MaxReason {
		r.wrong("/reason", "must have at most %d bytes", approvals.MaxReason)
	}
	if a.verdict = approvals.Deny; approved != nil && *approved {
		a.verdict = approvals.Approve
	}
	return a, r.faults
}

// reply sends a document.
func (c caller) reply(doc any) error {
	body, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(body) // nobody is left to tell of an error
	return nil
}
