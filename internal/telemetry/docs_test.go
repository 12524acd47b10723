package telemetry

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// names are all metrics of ours that a process can have.
func names() []string {
	m := New(Config{Now: time.Now})
	ch := make(chan *prometheus.Desc)
	go func() {
		m.registry.Describe(ch)
		(&backlogCollector{}).Describe(ch)
		close(ch)
	}()
	ours := regexp.MustCompile(`fqName: "(countersign_\w+)"`)
	var all []string
	for d := range ch {
		if found := ours.FindStringSubmatch(d.String()); found != nil {
			all = append(all, found[1])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// The page for operators lists every metric, and none that is not there.
func TestEveryMetricIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate.md"))
	require.NoError(t, err)
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(countersign_\\w+)`").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, row[1])
	}
	slices.Sort(listed)
	require.Equal(t, names(), listed)
}
