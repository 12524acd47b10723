package manifests_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// tool runs a program that make deps installs, and returns what it says.
func tool(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath(name)
	require.NoError(t, err, "install it with make deps")
	said, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	return string(said), err
}

func TestTheAlertsFireWhenTheyShould(t *testing.T) {
	for _, args := range [][]string{
		{"check", "rules", "prometheus/rules.yaml"}, {"check", "config", "prometheus/prometheus.yaml"}, {"test", "rules", "prometheus/rules_test.yaml"},
	} {
		said, err := tool(t, "promtool", args...)
		require.NoError(t, err, "%s", said)
	}
}

type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type ruleGroup struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

type ruleFile struct {
	Groups []ruleGroup `json:"groups"`
}

func alerts(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile("prometheus/rules.yaml")
	require.NoError(t, err)
	var f ruleFile
	require.NoError(t, yaml.UnmarshalStrict(text, &f))
	require.Len(t, f.Groups, 1)
	return f.Groups[0].Rules
}

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/operate.md")
	require.NoError(t, err)
	return string(text)
}

// Whoever is woken by an alert finds on one page what it means and what to do.
func TestEveryAlertIsExplained(t *testing.T) {
	text, tested := page(t), ""
	if b, err := os.ReadFile("prometheus/rules_test.yaml"); err == nil {
		tested = string(b)
	}
	for _, a := range alerts(t) {
		require.Regexp(t, "(?m)^\\| `"+a.Alert+"` \\| .{20,} \\| .{20,} \\|$", text, a.Alert)
		require.Contains(t, tested, `alertname="`+a.Alert+`"`, "it is shown to fire")
		require.Contains(t, []string{"info", "warning", "critical"}, a.Labels["severity"])
		require.NotEmpty(t, a.Annotations["summary"])
		require.NotEmpty(t, a.Annotations["description"])
	}
}

// queries are the expressions of the dashboard.
func queries(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("grafana/countersign.json")
	require.NoError(t, err)
	var d struct {
		Panels []struct {
			ID          int
			Title       string
			Description string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct{ Expr string }
		}
		Annotations struct{ List []struct{ Expr string } }
	}
	require.NoError(t, json.Unmarshal(text, &d))
	var all []string
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		require.NotEmpty(t, p.Description, p.Title)
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			require.Less(t, x, 24, p.Title)
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], "%s lies on it", p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, q := range p.Targets {
			all = append(all, q.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		all = append(all, a.Expr)
	}
	require.Greater(t, len(all), 15)
	return all
}

// An expression over a metric that is not there shows an empty panel, or an alert
// that never fires.
func TestDashboardAndAlertsUseMetricsThatAreThere(t *testing.T) {
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(countersign_\\w+)`").FindAllStringSubmatch(page(t), -1) {
		documented[m[1]] = true
	}
	exprs := queries(t)
	for _, a := range alerts(t) {
		exprs = append(exprs, a.Expr)
	}
	suffix := regexp.MustCompile(`_(bucket|count|sum)$`)
	for _, e := range exprs {
		for _, name := range regexp.MustCompile(`\bcountersign_\w+`).FindAllString(e, -1) {
			require.True(t, documented[name] || documented[suffix.ReplaceAllString(name, "")], "%s in %s", name, e)
		}
	}

	var f ruleFile
	f.Groups = []ruleGroup{{Name: "dashboard"}}
	for _, e := range queries(t) {
		e = strings.NewReplacer("$__rate_interval", "5m", "$job", ".*").Replace(e)
		f.Groups[0].Rules = append(f.Groups[0].Rules, rule{Alert: "Panel", Expr: e, Labels: map[string]string{"expr": e}})
	}
	text, err := yaml.Marshal(f)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "panels.yaml")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	said, err := tool(t, "promtool", "check", "rules", path)
	require.NoError(t, err, "%s", said)
}

// What is measured can be looked at without writing a query, unless a panel of another metric
// says the same.
func TestTheDashboardShowsEveryMetric(t *testing.T) {
	elsewhere := map[string]string{
		"countersign_decisions_total":             "outcomes say more than clicks",
		"countersign_approved_calls_total":        "calls in doubt, and outcomes of tool calls",
		"countersign_tool_call_duration_seconds":  "tools differ by minutes, so that no axis fits all",
		"countersign_due_duration_seconds":        "how late work begins is what people feel",
		"countersign_due_items_total":             "work given up",
		"countersign_slack_call_duration_seconds": "how late work begins, and calls by code",
	}
	shown := strings.Join(queries(t), "\n")
	for _, m := range regexp.MustCompile("(?m)^\\| `(countersign_\\w+)`").FindAllStringSubmatch(page(t), -1) {
		onIt := regexp.MustCompile(`\b` + m[1] + `(_bucket|_count|_sum)?\b`).MatchString(shown)
		require.NotEqual(t, elsewhere[m[1]] != "", onIt, m[1])
	}
}

// A line of seconds and a line of a rate have different axes, or one of them is read as
// the other.
func TestLinesOfOneAxisHaveOneUnit(t *testing.T) {
	text, err := os.ReadFile("grafana/countersign.json")
	require.NoError(t, err)
	var d struct {
		Panels []struct {
			Title       string
			Targets     []struct{ Expr, LegendFormat string }
			FieldConfig struct {
				Defaults  struct{ Unit string }
				Overrides []struct {
					Matcher    struct{ ID, Options string }
					Properties []struct {
						ID    string
						Value any
					}
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &d))
	seconds := 0
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			unit := p.FieldConfig.Defaults.Unit
			for _, o := range p.FieldConfig.Overrides {
				require.Equal(t, "byRegexp", o.Matcher.ID)
				if regexp.MustCompile(strings.Trim(o.Matcher.Options, "/")).MatchString(q.LegendFormat) {
					require.Equal(t, "unit", o.Properties[0].ID)
					unit, _ = o.Properties[0].Value.(string)
				}
			}
			require.Equal(t, strings.HasSuffix(q.LegendFormat, "per second"), unit == "cps", "%s: %s", p.Title, q.LegendFormat)
			if unit == "s" {
				require.Contains(t, q.Expr, "_seconds", p.Title)
				seconds++
			}
		}
	}
	require.Greater(t, seconds, 5)
}

// systemd takes the unit, and it is locked up well.
func TestTheUnitIsOneThatSystemdTakes(t *testing.T) {
	text, err := os.ReadFile("systemd/countersign.service")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "countersign.service")
	here := strings.ReplaceAll(string(text), "/usr/local/bin/bot", "/bin/true") // the program is not installed here
	require.NoError(t, os.WriteFile(path, []byte(here), 0o600))
	said, err := tool(t, "systemd-analyze", "verify", path)
	require.NoError(t, err, "%s", said)
	require.Empty(t, said)
	said, err = tool(t, "systemd-analyze", "security", "--offline=true", "--threshold=20", path) // of 100
	require.NoError(t, err, "%s", said)
	require.Equal(t, 3, strings.Count(string(text), "LoadCredential="))
	for name := range strings.FieldsSeq("slack_bot_token slack_signing_secret openai_api_key") {
		require.Contains(t, string(text), strings.ToUpper(name)+"_FILE=%d/"+name)
	}
}

// What the compose file names is declared in it, its Redis keeps what it acknowledges,
// and an edit of the policy reaches the bot: a mounted file would stay the old one if
// an editor replaces it.
func TestTheComposeFileIsWhole(t *testing.T) {
	text, err := os.ReadFile("compose/compose.yaml")
	require.NoError(t, err)
	type service struct {
		Build       string            `json:"build,omitempty"`
		Image       string            `json:"image,omitempty"`
		Command     []string          `json:"command"`
		Environment map[string]string `json:"environment,omitempty"`
		Secrets     []string          `json:"secrets,omitempty"`
		Volumes     []string          `json:"volumes"`
		Ports       []string          `json:"ports,omitempty"`
		Networks    []string          `json:"networks"`
		DependsOn   []string          `json:"depends_on,omitempty"`
		Restart     string            `json:"restart"`
		StopGrace   string            `json:"stop_grace_period"`
		ReadOnly    bool              `json:"read_only,omitempty"`
		CapDrop     []string          `json:"cap_drop,omitempty"`
		SecurityOpt []string          `json:"security_opt,omitempty"`
	}
	var c struct {
		Name     string             `json:"name"`
		Services map[string]service `json:"services"`
		Networks map[string]struct {
			Internal bool `json:"internal,omitempty"`
		} `json:"networks"`
		Volumes map[string]struct{} `json:"volumes"`
		Secrets map[string]struct {
			File string `json:"file"`
		} `json:"secrets"`
	}
	require.NoError(t, yaml.UnmarshalStrict(text, &c))
	bot, redis := c.Services["countersign"], c.Services["redis"]
	for _, s := range bot.Secrets {
		require.Contains(t, c.Secrets, s)
		require.Equal(t, "/run/secrets/"+s, bot.Environment[strings.ToUpper(s)+"_FILE"])
	}
	require.Len(t, c.Secrets, len(bot.Secrets))
	require.NotEmpty(t, bot.Volumes)
	for _, v := range bot.Volumes {
		from, _, _ := strings.Cut(v, ":")
		require.Empty(t, filepath.Ext(from), "%s: mount its folder", v)
	}
	for _, p := range bot.Ports {
		require.True(t, strings.HasPrefix(p, "127.0.0.1:"), "the bot has no TLS")
	}
	require.Empty(t, redis.Ports)
	require.Equal(t, []string{"back"}, redis.Networks)
	require.True(t, c.Networks["back"].Internal)
	for _, pair := range [][]string{{"--appendonly", "yes"}, {"--appendfsync", "always"}, {"--maxmemory-policy", "noeviction"}} {
		at := slices.Index(redis.Command, pair[0])
		require.Positive(t, at)
		require.Equal(t, pair[1], redis.Command[at+1])
	}
	require.Equal(t, []string{"redis:/data"}, redis.Volumes)
}
