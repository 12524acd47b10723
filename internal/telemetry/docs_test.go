package telemetry

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// labels are those of all metrics of ours that a process can have, by name.
func labels() map[string][]string {
	m := New(Config{Now: time.Now})
	ch := make(chan *prometheus.Desc)
	go func() {
		m.registry.Describe(ch)
		(&backlogCollector{}).Describe(ch)
		close(ch)
	}()
	ours := regexp.MustCompile(`fqName: "(countersign_\w+)".*constLabels: \{(.*)\}, variableLabels: \{([^}]*)\}`)
	all := map[string][]string{}
	for d := range ch {
		if found := ours.FindStringSubmatch(d.String()); found != nil {
			constant := regexp.MustCompile(`(\w+)=`).FindAllStringSubmatch(found[2], -1)
			names := strings.FieldsFunc(found[3], func(r rune) bool { return r == ',' })
			for _, c := range constant {
				names = append(names, c[1])
			}
			slices.Sort(names)
			all[found[1]] = names
		}
	}
	return all
}

// The page for operators lists every metric with its labels, and none that is not there.
func TestEveryMetricIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate.md"))
	require.NoError(t, err)
	listed := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(countersign_\\w+)`[ *]*\\| (.*?) ?\\|").FindAllStringSubmatch(string(page), -1) {
		names := []string{}
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[2], -1) {
			names = append(names, name[1])
		}
		slices.Sort(names)
		listed[row[1]] = names
	}
	actual := labels()
	require.Equal(t, slices.Sorted(maps.Keys(actual)), slices.Sorted(maps.Keys(listed)))
	for name, want := range actual {
		require.ElementsMatch(t, want, listed[name], name)
	}
}

// exprs are the values of all keys expr in a document.
func exprs(doc any) (all []string) {
	switch doc := doc.(type) {
	case map[string]any:
		for key, value := range doc {
			if expr, ok := value.(string); ok && key == "expr" {
				all = append(all, expr)
			}
			all = append(all, exprs(value)...)
		}
	case []any:
		for _, value := range doc {
			all = append(all, exprs(value)...)
		}
	}
	return all
}

// A panel that groups by a label which its metric lacks shows one line without a name,
// and an alert that selects by one never fires.
func TestDashboardAndAlertsUseLabelsThatAreThere(t *testing.T) {
	all, used := labels(), 0
	selector := regexp.MustCompile(`countersign_\w+\{([^}]*)\}`)
	matcher := regexp.MustCompile(`(\w+)(?:=|!)`)
	grouping := regexp.MustCompile(`\b(?:by|on|ignoring) \(([^)]*)\)`)
	for _, file := range []string{"grafana/countersign.json", "prometheus/rules.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "manifests", file))
		require.NoError(t, err)
		var doc any
		require.NoError(t, yaml.Unmarshal(text, &doc))
		for _, expr := range exprs(doc) {
			known := []string{"job", "instance", "le"}
			for _, name := range regexp.MustCompile(`countersign_\w+`).FindAllString(expr, -1) {
				known = append(known, all[regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")]...)
				known = append(known, all[name]...)
			}
			var names []string
			for _, s := range selector.FindAllStringSubmatch(expr, -1) {
				for _, m := range matcher.FindAllStringSubmatch(s[1], -1) {
					names = append(names, m[1])
				}
			}
			for _, by := range grouping.FindAllStringSubmatch(expr, -1) {
				names = append(names, strings.Split(by[1], ", ")...)
			}
			require.Subset(t, known, names, expr)
			used += len(names)
		}
	}
	require.Greater(t, used, 50)
}

// Between two bounds of a histogram Prometheus guesses: with a threshold between them, an
// alert fires although nothing took as long.
func TestThresholdsOfAlertsAreBoundsOfHistograms(t *testing.T) {
	m := New(Config{Now: time.Now})
	require.NoError(t, m.Redis().ProcessPipelineHook(func(context.Context, []redis.Cmder) error { return nil })(t.Context(), nil))
	m.HTTP("slack", http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/slack/events", nil))
	families, err := m.registry.Gather()
	require.NoError(t, err)
	bounds := map[string][]string{}
	for _, f := range families {
		for _, b := range f.Metric[0].GetHistogram().GetBucket() {
			bounds[f.GetName()] = append(bounds[f.GetName()], strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64))
		}
	}
	rules, err := os.ReadFile(filepath.Join("..", "..", "manifests", "prometheus", "rules.yaml"))
	require.NoError(t, err)
	thresholds := regexp.MustCompile(`histogram_quantile\(.*\b(countersign_\w+)_bucket.*\) > ([\d.]+)\n`).FindAllStringSubmatch(string(rules), -1)
	require.Len(t, thresholds, 2)
	for _, x := range thresholds {
		require.Contains(t, bounds[x[1]], x[2], x[1])
	}
}
