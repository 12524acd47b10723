package main

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun/openaimodel"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/demo"
	"github.com/countersign/countersign/internal/policy"
)

// keyTypes are the keys of the configuration with the word for their type, as
// the documentation writes them.
func keyTypes() map[string]string {
	keys := map[string]string{}
	addKeys(keys, "", reflect.TypeFor[config.Config]())
	return keys
}

func addKeys(keys map[string]string, at string, t reflect.Type) {
	for f := range t.Fields() {
		if !f.IsExported() {
			continue
		}
		place, kind := strings.TrimPrefix(at+"."+f.Tag.Get("yaml"), "."), f.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if kind.Kind() == reflect.Map {
			place, kind = place+".NAME", kind.Elem()
		}
		if kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct {
			place, kind = place+"[]", kind.Elem()
		}
		switch {
		case kind == reflect.TypeFor[config.Approval]():
			keys[place] = "approval"
		case kind == reflect.TypeFor[config.Schema]():
			keys[place] = "JSON Schema"
		case kind == reflect.TypeFor[time.Duration]():
			keys[place] = "duration"
		case kind.Kind() == reflect.Struct:
			addKeys(keys, place, kind)
		case kind.Kind() == reflect.Slice:
			keys[place] = "list"
		case kind.Kind() == reflect.Int:
			keys[place] = "number"
		case kind.Kind() == reflect.Bool:
			keys[place] = "true or false"
		default:
			keys[place] = "text"
		}
	}
}

var (
	inQuotes = regexp.MustCompile("`([^`]+)`")
	isName   = regexp.MustCompile(`^[A-Z]+_[A-Z_]+$`)
)

// rows are the rows of a page's tables whose first cell names settings, each by
// every setting that it names. A name that begins with a dot continues the
// first of its row.
func rows(t *testing.T, page string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(page)))
	require.NoError(t, err)
	found := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| `") || len(cells) < 3 {
			continue
		}
		parent := ""
		for _, m := range inQuotes.FindAllStringSubmatch(cells[0], -1) {
			name := m[1]
			if parent == "" {
				parent = name[:max(strings.LastIndex(name, "."), 0)]
			} else if strings.HasPrefix(name, ".") {
				name = parent + name
			}
			if slices.Contains([]string{"mcp_lock", "policy", "policy_reload"}, name) || strings.Contains(name, ".") || isName.MatchString(name) {
				require.NotContains(t, found, name, "%s has it twice", page)
				found[name] = cells[1:]
			}
		}
	}
	return found
}

func TestTheSettingsAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	keys := keyTypes()
	want := slices.Collect(maps.Keys(keys))
	for _, v := range config.Variables {
		want = append(want, v.Name)
	}
	slices.Sort(want)
	documented := rows(t, "docs/settings.md")
	require.Equal(t, want, slices.Sorted(maps.Keys(documented)))
	for key, kind := range keys {
		require.Equal(t, kind, strings.Trim(documented[key][0], "`"), key)
		require.Len(t, documented[key], 3, key)
	}
}

func TestTheDefaultsAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	documented := rows(t, "docs/settings.md")
	for _, v := range config.Variables {
		want := "`" + v.Preset + "`"
		switch {
		case v.Required:
			want = "required"
		case v.Preset == "":
			want = "none"
		}
		require.Equal(t, want, documented[v.Name][0], v.Name)
	}
	for key, want := range map[string]time.Duration{"agents[].timeout": openaimodel.DefaultTimeout, "policy_reload": defaultReload} {
		d, err := time.ParseDuration(documented[key][1])
		require.NoError(t, err)
		require.Equal(t, want, d, key)
	}
	within := policyRows(t)["ASK.within"]
	require.Equal(t, "that of `default`, or "+strings.TrimSuffix(policy.DefaultWithin.String(), "0m0s"), within[1])
	require.Contains(t, within[2], "90 days")
	require.Equal(t, 90*24*time.Hour, policy.MaxWithin)
}

// What the documentation shows is accepted: configurations, and policies for
// the tools of the configuration beside them.
func TestWhatIsShownIsAccepted(t *testing.T) {
	t.Parallel()
	inMarkdown := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	partInMarkdown := regexp.MustCompile("(?s)```yaml checks\n(.*?)```")
	shown := map[string]string{}
	for _, page := range []string{"README.md", "docs/settings.md", "docs/policy.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(page)))
		require.NoError(t, err)
		for _, m := range inMarkdown.FindAllStringSubmatch(string(text), -1) {
			kind := "policy"
			if strings.Contains(m[1], "agents:\n  - name:") {
				kind = "config"
			}
			shown[page+" "+kind] = m[1]
		}
		for _, m := range partInMarkdown.FindAllStringSubmatch(string(text), -1) {
			shown[page+" part of a config"] = "agents: [{name: ops}]\npolicy: policy.yaml\n" + m[1]
		}
	}
	k8s, err := os.ReadFile(filepath.Join("..", "..", "manifests", "k8s", "countersign.yaml"))
	require.NoError(t, err)
	for document := range strings.SplitSeq(string(k8s), "\n---\n") {
		var object struct {
			Kind string            `yaml:"kind"`
			Data map[string]string `yaml:"data"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(document), &object))
		for name, text := range object.Data {
			require.Equal(t, "ConfigMap", object.Kind)
			shown["k8s "+strings.TrimSuffix(name, ".yaml")] = text
		}
	}
	require.Len(t, shown, 7)
	folder := t.TempDir()
	for place, text := range shown {
		if strings.HasSuffix(place, "config") {
			c, err := config.Read(write(t, text))
			require.NoError(t, err, place)
			require.NoError(t, c.Check(), place)
			continue
		}
		sets, err := config.NewToolSets(config.Config{Agents: []config.Agent{{Name: "ops", Files: folder}}}, config.Environment{}, nil)
		require.NoError(t, err)
		o := config.PolicyOptions(config.Config{Agents: []config.Agent{{Name: "ops"}}}, sets)
		o.Now = time.Now
		_, err = policy.Parse(place, []byte(text), o)
		require.NoError(t, err, place)
	}
}

// documentation lists the pages, relative to the repository.
func documentation(t *testing.T) []string {
	t.Helper()
	root := filepath.Join("..", "..")
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		for _, path := range found {
			page, err := filepath.Rel(root, path)
			require.NoError(t, err)
			pages = append(pages, page)
		}
	}
	return pages
}

// Every command and every page that the documentation names is there.
func TestTheDocumentationNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`(?:\]\(|src(?:set)?=")([^)"#:]+)(?:#[^)]*)?[)"]`)
	named := regexp.MustCompile("(?m)(?:`|^)(bot \\w+)")
	usage := map[string]bool{}
	everyCommand(func(words []string, _ *command) { usage[strings.Join(append([]string{"bot"}, words...), " ")] = true })
	for _, page := range documentation(t) {
		path := filepath.Join("..", "..", filepath.FromSlash(page))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(path), filepath.FromSlash(m[1])))
			require.NoError(t, err, page)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			require.True(t, usage[m[1]], "%s: %s", page, m[1])
		}
	}
}

// A file that people edit says where its keys are explained: those of a policy
// are on the page of the policy.
func TestFilesPointAtThePageOfTheirKeys(t *testing.T) {
	t.Parallel()
	for text, page := range map[string]string{startingConfig: "docs/settings.md", startingPolicy: "docs/policy.md", demo.Policy: "docs/policy.md"} {
		named := regexp.MustCompile(`Every key[^:]*: (docs/\w+\.md)`).FindStringSubmatch(text)
		require.NotNil(t, named)
		require.Equal(t, page, named[1])
	}
}
