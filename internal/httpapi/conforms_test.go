package httpapi_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/httpapi"
)

// spec is the document that the API serves.
var spec = sync.OnceValue(func() *openapi3.T {
	raw, err := httpapi.Document()
	if err != nil {
		panic(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		panic(err)
	}
	return doc
})

// seen are the operations with their statuses that a test has got.
var (
	seenMu sync.Mutex
	seen   = map[string]bool{}
)

var variable = regexp.MustCompile(`\{[^}]+\}`)

// route finds the operation of a request in the document.
func route(q *http.Request) (*routers.Route, map[string]string) {
	for path, item := range spec().Paths.Map() {
		pattern := regexp.MustCompile("^" + variable.ReplaceAllString(path, "([^/]+)") + "$")
		values := pattern.FindStringSubmatch(q.URL.EscapedPath())
		operation := item.GetOperation(q.Method)
		if values == nil || operation == nil {
			continue
		}
		params := map[string]string{}
		for i, name := range variable.FindAllString(path, -1) {
			params[strings.Trim(name, "{}")], _ = url.PathUnescape(values[i+1])
		}
		return &routers.Route{Spec: spec(), Path: path, PathItem: item, Method: q.Method, Operation: operation}, params
	}
	return nil, nil
}

// conforms checks a request and its answer against the document. A request that
// was taken must be one that the document permits, and every answer must be.
func conforms(t *testing.T, q *http.Request, body string, got exchange) {
	t.Helper()
	at, params := route(q)
	if at == nil {
		require.Contains(t, []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusMisdirectedRequest, http.StatusNoContent, http.StatusForbidden}, got.status, "%s %s is not in the document", q.Method, q.URL.Path)
		return
	}
	again := q.Clone(context.WithoutCancel(t.Context()))
	again.Body = io.NopCloser(strings.NewReader(body))
	input := &openapi3filter.RequestValidationInput{Request: again, PathParams: params, Route: at, Options: &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, MultiError: true,
	}}
	if got.status < 400 {
		require.NoError(t, openapi3filter.ValidateRequest(t.Context(), input), "the request that was taken")
	}
	if got.status == http.StatusMisdirectedRequest || got.status == http.StatusForbidden && strings.Contains(string(got.body), "origin") {
		return // before any operation
	}
	require.NoError(t, openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: got.status, Header: got.header, Body: io.NopCloser(bytes.NewReader(got.body)), Options: input.Options,
	}), "%s %s: %d %s", q.Method, q.URL.Path, got.status, got.body)
	documented := at.Operation.Responses.Value(strconv.Itoa(got.status)).Value.Headers
	for _, name := range []string{"ETag", "Location", "Preference-Applied", "Retry-After", "WWW-Authenticate"} {
		if got.header.Get(name) != "" {
			require.Contains(t, documented, name, "%s %s: %d", q.Method, q.URL.Path, got.status)
		}
	}
	seenMu.Lock()
	defer seenMu.Unlock()
	seen[fmt.Sprintf("%s %d", at.Operation.OperationID, got.status)] = true
}

// unseen is what no test got, in a run of all tests.
func unseen() []string {
	for _, name := range []string{"test.run", "test.skip", "test.bench", "test.fuzz", "test.list"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return nil
		}
	}
	var missing []string
	for _, item := range spec().Paths.Map() {
		for _, operation := range item.Operations() {
			for status := range operation.Responses.Map() {
				if !seen[operation.OperationID+" "+status] {
					missing = append(missing, operation.OperationID+" "+status)
				}
			}
		}
	}
	slices.Sort(missing)
	return missing
}

func TestTheDocumentIsValid(t *testing.T) {
	require.NoError(t, spec().Validate(t.Context()))
	require.True(t, strings.HasPrefix(spec().OpenAPI, "3.1."))
}

// Every schema is part of an operation: nothing in the document is only words.
func TestEverySchemaIsUsed(t *testing.T) {
	raw, err := httpapi.Document()
	require.NoError(t, err)
	for name := range spec().Components.Schemas {
		if name != "Event" { // of the data of a stream, which has no schema in OpenAPI
			require.Contains(t, string(raw), `"#/components/schemas/`+name+`"`)
		}
	}
}

func TestTheRoutesAreThoseOfTheDocument(t *testing.T) {
	w := newWorld(t)
	documented := map[string][]string{}
	for path, item := range spec().Paths.Map() {
		for method := range item.Operations() {
			documented[path] = append(documented[path], method)
		}
		slices.Sort(documented[path])
	}
	routes := w.api.Routes()
	for _, methods := range routes {
		slices.Sort(methods)
	}
	require.Equal(t, documented, routes)
}
