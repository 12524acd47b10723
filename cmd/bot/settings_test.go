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
	"github.com/countersign/countersign/internal/policy"
)

// keyTypes are the keys of the configuration with the word for their type, as
// the documentation writes them.
func keyTypes() map[string]string {
	keys := map[string]string{}
	addKeys(keys, "", reflect.TypeFor[config]())
	addKeys(keys, "RULE", reflect.TypeFor[policy.Rule]())
	return keys
}

func addKeys(keys map[string]string, at string, t reflect.Type) {
	for f := range t.Fields() {
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
		case kind == reflect.TypeFor[policy.Rule]():
			keys[place] = "RULE"
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

// rows are the rows of a page's tables whose first cell names settings, each
// by every setting that it names. A name that begins with a dot goes on from
// the first of its row.
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
			if strings.Contains(name, ".") || isName.MatchString(name) {
				require.NotContains(t, found, name, "%s has it twice", page)
				found[name] = cells[1:]
			}
		}
	}
	return found
}

func TestTheSettingsAreThoseOfTheDocumentation(t *testing.T) {
	keys := keyTypes()
	want := slices.Collect(maps.Keys(keys))
	for _, v := range variables {
		want = append(want, v.name)
	}
	slices.Sort(want)
	for _, page := range []string{"README.md", "docs/settings.md"} {
		require.Equal(t, want, slices.Sorted(maps.Keys(rows(t, page))), page)
	}
	documented := rows(t, "docs/settings.md")
	for key, kind := range keys {
		require.Equal(t, kind, strings.Trim(documented[key][0], "`"), key)
		require.Len(t, documented[key], 3, key)
	}
}

func TestTheDefaultsAreThoseOfTheDocumentation(t *testing.T) {
	documented, readme := rows(t, "docs/settings.md"), rows(t, "README.md")
	for _, v := range variables {
		want := "required"
		if !v.required {
			want = "`" + v.preset + "`"
		}
		require.Equal(t, want, documented[v.name][0], v.name)
		require.Equal(t, want, readme[v.name][0], v.name)
	}
	for key, want := range map[string]time.Duration{"agents[].timeout": openaimodel.DefaultTimeout, "RULE.within": policy.DefaultWithin} {
		for _, written := range []string{documented[key][1], readme[key][0]} {
			d, err := time.ParseDuration(written)
			require.NoError(t, err)
			require.Equal(t, want, d, key)
		}
	}
	require.Contains(t, documented["RULE.within"][2], "90 days")
	require.Equal(t, 90*24*time.Hour, policy.MaxWithin)
}

// What the documentation shows as a configuration is one.
func TestTheConfigurationsThatAreShownAreAccepted(t *testing.T) {
	inMarkdown := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	shown := map[string]string{}
	for _, page := range []string{"README.md", "docs/settings.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(page)))
		require.NoError(t, err)
		for _, m := range inMarkdown.FindAllStringSubmatch(string(text), -1) {
			shown[page] = m[1]
		}
	}
	k8s, err := os.ReadFile(filepath.Join("..", "..", "manifests", "k8s", "countersign.yaml"))
	require.NoError(t, err)
	var object struct {
		Kind string            `yaml:"kind"`
		Data map[string]string `yaml:"data"`
	}
	require.NoError(t, yaml.Unmarshal(k8s, &object))
	require.Equal(t, "ConfigMap", object.Kind)
	shown["manifests/k8s"] = object.Data["config.yaml"]
	for place, text := range shown {
		c, err := readConfig(write(t, text))
		require.NoError(t, err, place)
		require.NoError(t, c.check(), place)
	}
	require.Len(t, shown, 3)
}

// Every command and every page that the documentation names is there.
func TestTheDocumentationNamesWhatIsThere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	command := regexp.MustCompile("(?m)(?:`|^)(bot \\w+)")
	for _, page := range []string{"README.md", "CHANGELOG.md", "docs/deploy.md", "docs/settings.md"} {
		path := filepath.Join("..", "..", filepath.FromSlash(page))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(path), filepath.FromSlash(m[1])))
			require.NoError(t, err, page)
		}
		for _, m := range command.FindAllStringSubmatch(string(text), -1) {
			require.Contains(t, usage, m[1], page)
		}
	}
}
