package openaisim

import (
	"encoding/json"
	"net/http"
)

// A problem is an answer that is an error.
type problem struct {
	status                     int
	message, kind, param, code string
}

// invalid returns the problem of a request that the client got wrong.
func invalid(param, code, message string) *problem {
	return &problem{http.StatusBadRequest, message, "invalid_request_error", param, code}
}

// MarshalJSON gives the shape of OpenAI's errors, where param and code are null
// rather than empty.
func (p *problem) MarshalJSON() ([]byte, error) {
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	return json.Marshal(map[string]inner{"error": {p.message, p.kind, orNull(p.param), orNull(p.code)}})
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
