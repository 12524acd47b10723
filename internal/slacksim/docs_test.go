package slacksim_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// reference is docs/slacksim.md by its third-level headings.
func reference(t *testing.T) (order []string, sections map[string]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/slacksim.md")
	require.NoError(t, err)
	sections = map[string]string{}
	name := ""
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "## ") {
			name = ""
		}
		if heading, ok := strings.CutPrefix(line, "### "); ok {
			name = strings.TrimSpace(heading)
			order = append(order, name)
		}
		if name != "" {
			sections[name] += line
		}
	}
	return order, sections
}

var (
	tableRow = regexp.MustCompile("(?m)^\\| (`[a-z_`, ]+) \\|")
	quoted   = regexp.MustCompile("`([a-z_]+)`")
)

// documented are the fields in the tables of a section.
func documented(section string) []string {
	var names []string
	for _, row := range tableRow.FindAllStringSubmatch(section, -1) {
		for _, name := range quoted.FindAllStringSubmatch(row[1], -1) {
			names = append(names, name[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// fields are the JSON names of a struct; it reports the structs below it.
func fields(of reflect.Type, below func(reflect.Type)) []string {
	var names []string
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		names = append(names, name)
		inner := f.Type
		for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner.PkgPath() == of.PkgPath() {
			below(inner)
		}
	}
	return names
}

// Every route and field is in the reference, and nothing else is.
func TestReferenceNamesEveryRouteAndField(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	order, sections := reference(t)
	objects := map[string]reflect.Type{}
	var collect func(reflect.Type)
	collect = func(of reflect.Type) {
		if objects[of.Name()] == nil {
			objects[of.Name()] = of
			fields(of, collect)
		}
	}
	var known []string
	for _, route := range w.ControlRoutes() {
		known = append(known, route.Pattern)
		section, ok := sections[route.Pattern]
		require.True(t, ok, "%s is not documented", route.Pattern)
		want := append(fields(route.In, collect), fields(route.Out, collect)...)
		slices.Sort(want)
		require.Equal(t, slices.Compact(want), append([]string(nil), documented(section)...), route.Pattern)
	}
	for name, of := range objects {
		known = append(known, name)
		section, ok := sections[name]
		require.True(t, ok, "%s is not documented", name)
		want := fields(of, collect)
		slices.Sort(want)
		require.Equal(t, want, documented(section), name)
	}
	slices.Sort(known)
	slices.Sort(order)
	require.Equal(t, known, order, "the reference has these sections and no other")
}

var methodName = regexp.MustCompile("`([a-z]+\\.[a-zA-Z0-9.]+)`")

func TestReferenceNamesEveryMethod(t *testing.T) {
	text, err := os.ReadFile("../../docs/slacksim.md")
	require.NoError(t, err)
	_, api, _ := strings.Cut(string(text), "\n## The Web API\n")
	api, _, _ = strings.Cut(api, "`/oauth/")
	var names []string
	for _, m := range methodName.FindAllStringSubmatch(api, -1) {
		names = append(names, m[1])
	}
	require.Equal(t, slacksim.Methods(), names)
}

var testName = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")

func TestReferenceNamesTestsThatAreThere(t *testing.T) {
	text, err := os.ReadFile("../../docs/slacksim.md")
	require.NoError(t, err)
	var sources strings.Builder
	for _, pattern := range []string{"*_test.go", "bolt/*_test.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, f := range files {
			source, err := os.ReadFile(f)
			require.NoError(t, err)
			sources.Write(source)
		}
	}
	named := testName.FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(named), 50)
	for _, m := range named {
		require.Contains(t, sources.String(), "func "+m[1]+"(t *testing.T)")
	}
	for row := 1; row <= 25; row++ {
		require.Contains(t, string(text), fmt.Sprintf("\n| %d | ", row))
	}
}

var exchangeBlock = regexp.MustCompile("(?s)```http\n(GET|POST) (\\S+)\n(?:\n(.*?)\n)?```\n\n```json\n(.*?)\n```")

// The examples of the reference are run one after the other, and answer
// what the reference says.
func TestReferenceExamplesAreTrue(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{Inspect: exampleInspection})
	w.answers(w.exampleApp(t))
	order, sections := reference(t)
	said := &similar{values: map[string]string{}}
	for _, name := range order {
		if !strings.Contains(name, " /sim/") || name == "GET /sim/events" {
			continue
		}
		if name == "POST /sim/stop" {
			said.values["1767000000.000900"] = w.startStream(t)
		}
		m := exchangeBlock.FindStringSubmatch(sections[name])
		require.NotNil(t, m, "%s has no example", name)
		require.True(t, strings.HasPrefix(name, m[1]+" "+strings.Split(m[2], "?")[0]), name)
		req, err := http.NewRequestWithContext(soon(t), m[1], w.url+m[2], strings.NewReader(said.now(m[3])))
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode, "%s: %s", name, body)
		said.check(t, name, decode(t, []byte(m[4])), decode(t, body))
		w.idle(t)
	}
}

// startStream streams a message whose ts the reference calls …900.
func (w *workspace) startStream(t *testing.T) string {
	t.Helper()
	answer := w.call(t, "chat.startStream", map[string]any{
		"channel": "C0OPS", "markdown_text": "x", "recipient_user_id": "U0ALICE", "recipient_team_id": "T0COUNTER",
	})
	require.Equal(t, true, answer["ok"], "%v", answer)
	return answer["ts"].(string)
}

// exampleApp is the app of the reference's story.
func (w *workspace) exampleApp(t *testing.T) func(http.ResponseWriter, delivered) {
	t.Helper()
	plain := func(s string) map[string]any { return map[string]any{"type": "plain_text", "text": s} }
	return func(rw http.ResponseWriter, d delivered) {
		var in map[string]any
		if json.Unmarshal(d.body, &in) != nil {
			_ = json.Unmarshal([]byte(formValue(d.body, "payload")), &in)
		}
		event, _ := in["event"].(map[string]any)
		switch kind := fmt.Sprint(in["type"], event["type"]); {
		case d.path == "/commands":
			_, _ = io.WriteString(rw, "Nothing waits.")
		case strings.HasPrefix(kind, "url_verification"):
			_ = json.NewEncoder(rw).Encode(map[string]any{"challenge": in["challenge"]})
		case kind == "event_callbackapp_mention":
			w.call(t, "chat.postMessage", map[string]any{
				"channel": event["channel"], "thread_ts": event["ts"], "text": "May I?",
				"blocks": []any{map[string]any{"type": "actions", "block_id": "decide", "elements": []any{
					map[string]any{"type": "button", "action_id": "deny", "text": plain("Deny")},
					map[string]any{"type": "external_select", "action_id": "service", "min_query_length": 1},
				}}},
			})
		case strings.HasPrefix(kind, "block_suggestion"):
			_ = json.NewEncoder(rw).Encode(map[string]any{"options": []any{map[string]any{"text": plain("web"), "value": "web"}}})
		case strings.HasPrefix(kind, "block_actions"):
			w.call(t, "views.open", map[string]any{"trigger_id": in["trigger_id"], "view": map[string]any{
				"type": "modal", "callback_id": "denial", "private_metadata": dig(t, in, "container", "message_ts"),
				"title": plain("Deny"), "submit": plain("Deny"),
				"blocks": []any{map[string]any{
					"type": "input", "block_id": "reason", "label": plain("Reason"),
					"element": map[string]any{"type": "plain_text_input", "action_id": "text"},
				}},
			}})
		case strings.HasPrefix(kind, "view_submission"):
			_ = json.NewEncoder(rw).Encode(map[string]any{"response_action": "errors", "errors": map[string]any{"reason": "Say more."}})
		}
	}
}

// similar compares what the reference says with what came. Times, ids that
// are assigned and texts of the log differ from run to run; what the
// reference calls them is remembered for later requests.
type similar struct{ values map[string]string }

const elided = "…"

func (s *similar) now(text string) string {
	for said, is := range s.values {
		text = strings.ReplaceAll(text, said, is)
	}
	return text
}

var (
	differing = []string{"block_id", "hash", "at", "now", "url", "request", "response", "X-Slack-Signature"}
	assigned  = regexp.MustCompile(`^(\d{10}\.\d{6}|V[0-9A-Z]{10,})$`)
)

func (s *similar) check(t *testing.T, at string, said, is any) {
	t.Helper()
	switch said := said.(type) {
	case map[string]any:
		got, ok := is.(map[string]any)
		require.True(t, ok, "%s: %v", at, is)
		for name, v := range said {
			if name == elided {
				continue
			}
			require.Contains(t, got, name, at)
			if !slices.Contains(differing, name) || reflect.TypeOf(v) != reflect.TypeOf(got[name]) {
				s.check(t, at+"/"+name, v, got[name])
			}
		}
		for name := range got {
			require.True(t, said[elided] != nil || slices.Contains(keysOf(said), name), "%s: the reference lacks %q", at, name)
		}
	case []any:
		got, ok := is.([]any)
		require.True(t, ok, "%s: %v", at, is)
		if n := len(said); n > 0 && said[n-1] == elided {
			require.GreaterOrEqual(t, len(got), n-1, at)
			said, got = said[:n-1], got[:n-1]
		}
		require.Len(t, got, len(said), at)
		for i := range said {
			s.check(t, fmt.Sprint(at, "/", i), said[i], got[i])
		}
	case string:
		got, ok := is.(string)
		if ok && assigned.MatchString(said) && assigned.MatchString(got) {
			if before := s.values[said]; before != "" {
				require.Equal(t, before, got, "%s: %s", at, said)
			}
			s.values[said] = got
			return
		}
		require.Equal(t, said, is, at)
	default:
		require.Equal(t, said, is, at)
	}
}

func keysOf(m map[string]any) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	return names
}
