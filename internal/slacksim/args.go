package slacksim

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

const maxBody = 4 << 20

// args are the arguments of one Web API call. From forms and queries every
// value is a string; from JSON bodies values have their JSON type.
type args struct {
	values   object
	token    string
	json     bool
	warnings []string
}

// readArgs reads what the app sent. When Slack would refuse the request as
// such, it returns Slack's error.
func readArgs(r *http.Request, acceptsJSON bool) (args, []byte, string) {
	a := args{values: object{}}
	for k, v := range r.URL.Query() {
		a.values[k] = v[0]
	}
	delete(a.values, "token") // tokens in query strings are not accepted
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil || len(body) > maxBody {
		return a, body, "request_timeout"
	}
	problem := ""
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	switch {
	case r.Method == http.MethodGet || len(body) == 0:
	case err == nil && charset != "" && charset != "utf-8" && charset != "iso-8859-1":
		problem = "invalid_charset"
	case err != nil:
		problem = "missing_post_type"
	case kind == "application/json":
		if acceptsJSON {
			problem = a.fromJSON(body, charset)
		}
	case kind == "application/x-www-form-urlencoded":
		a.superfluous(charset)
		problem = a.fromForm(body)
	case kind == "multipart/form-data":
		a.superfluous(charset)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err := r.ParseMultipartForm(maxBody); err != nil { //nolint:gosec // body is limited above
			problem = "invalid_form_data"
			break
		}
		a.merge(r.MultipartForm.Value)
	case kind == "text/plain": // taken, and not read
	default:
		problem = "invalid_post_type"
	}
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		a.token = strings.TrimSpace(token)
	}
	return a, body, problem
}

// fromBasic reads the client's credentials, which OAuth methods take with HTTP
// Basic authentication as well.
func (a *args) fromBasic(r *http.Request) {
	id, secret, ok := r.BasicAuth()
	if ok && !a.has("client_id") && !a.has("client_secret") {
		a.values["client_id"], a.values["client_secret"] = id, secret
	}
}

func (a *args) fromJSON(body []byte, charset string) string {
	if charset == "" {
		a.warnings = append(a.warnings, "missing_charset")
	}
	v, err := decodeJSON(body)
	if err != nil {
		return "invalid_json"
	}
	o, ok := v.(object)
	if !ok {
		return "json_not_object"
	}
	a.json = true
	maps.Copy(a.values, o)
	delete(a.values, "token") // JSON requests carry it in the header
	return ""
}

// superfluous warns of a charset where the type has none.
func (a *args) superfluous(charset string) {
	if charset != "" {
		a.warnings = append(a.warnings, "superfluous_charset")
	}
}

func (a *args) fromForm(body []byte) string {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "invalid_form_data"
	}
	a.merge(form)
	return ""
}

func (a *args) merge(form url.Values) {
	for k, v := range form {
		a.values[k] = v[0]
	}
	if token, ok := a.values["token"].(string); ok {
		a.token = token
		delete(a.values, "token")
	}
}

// has reports whether the argument was given, even if it is empty.
func (a *args) has(name string) bool {
	v, ok := a.values[name]
	return ok && v != nil
}

func (a *args) str(name string) string {
	switch v := a.values[name].(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

func (a *args) bool(name string) bool {
	switch v := a.values[name].(type) {
	case bool:
		return v
	case string:
		return v == "true" || v == "1"
	case json.Number:
		return v == "1"
	}
	return false
}

// value returns an argument that is JSON: as such in JSON bodies, or as a
// string that holds JSON. ok is false when it is neither.
func (a *args) value(name string) (v any, ok bool) {
	v = a.values[name]
	if text, isText := v.(string); isText {
		parsed, err := decodeJSON([]byte(text))
		return parsed, err == nil
	}
	return v, true
}
