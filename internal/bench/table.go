package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A Table is what was measured of one thing.
type Table struct {
	Name    string   `json:"name"`
	Redis   string   `json:"redis"` // how durable its commits were
	About   string   `json:"about"`
	Columns []string `json:"columns"`
	Rows    []Row    `json:"rows"`
}

// unknown is the value of what cannot be measured on this machine.
const unknown = -1

// A Row has a value for each column. -1 is a value that is not known.
type Row struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
}

func (t Table) print(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s (redis.durability: %s)\n%s\n", t.Name, t.Redis, t.About)
	lines := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	cells := append([]string{""}, t.Columns...)
	_, _ = fmt.Fprintf(lines, "%s\t\n", strings.Join(cells, "\t")) // a Builder takes every write
	widest := 0
	for _, r := range t.Rows {
		widest = max(widest, len(r.Name))
	}
	for _, r := range t.Rows {
		cells := []string{fmt.Sprintf("%-*s", widest, r.Name)}
		for _, v := range r.Values {
			cells = append(cells, shown(v))
		}
		_, _ = fmt.Fprintf(lines, "%s\t\n", strings.Join(cells, "\t")) // as above
	}
	if err := lines.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// shown writes a value with about three digits.
func shown(v float64) string {
	switch {
	case v == unknown:
		return "-"
	case v == float64(int64(v)) || v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// report is everything, for programs.
type report struct {
	Machine Machine `json:"machine"`
	Tables  []Table `json:"tables"`
}

func (r report) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// median returns the middle of the values, each by itself.
func median(rounds [][]float64) []float64 {
	out := make([]float64, len(rounds[0]))
	for i := range out {
		var all []float64
		for _, r := range rounds {
			all = append(all, r[i])
		}
		slices.Sort(all)
		out[i] = all[len(all)/2]
	}
	return out
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

func replicaWords(n int) string {
	if n == 1 {
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", n)
}
