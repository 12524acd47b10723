// Package doctor says everything that is wrong with an installation, at once:
// in its files and its environment, and with [Options.Online] in Slack, Redis
// and the model provider too. It writes nothing anywhere, and no finding quotes
// a secret.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

// Options say what is to be looked at.
type Options struct {
	Path    string
	Extra   config.ToolsFor // the tools that the program adds to those of the configuration
	Environ []string
	Data    string // the folder of a private Redis; empty if there is none
	Address string // under which Slack reaches the bot; empty if it is not said
	Online  bool
	HTTP    http.RoundTripper
	Now     func() time.Time
	// Accepted returns the configuration with the accepted tools of its MCP
	// servers, and those tools.
	Accepted func(ctx context.Context, c config.Config, e config.Environment) (config.Config, mcptool.Pins, error)
	Rules    Deciders
}

// A Mark is what a look at one thing gave.
type Mark string

// The marks.
const (
	IsFine     Mark = "ok"
	IsWarning  Mark = "warning"
	IsProblem  Mark = "problem"
	NotChecked Mark = "could not check"
)

// A Finding is one thing that was looked at.
type Finding struct {
	Mark   Mark
	Text   string
	Advice string // what to do about it
	Passes bool   // of a problem: it can end without another configuration of the bot or of Redis
}

// findings are what was found so far.
type findings struct{ all []Finding }

// A checker collects findings. It holds what later checks need of earlier ones,
// and checks itself what needs nothing but the files and the environment; what
// has more to hold is a type of its own: addresses, slackCheck, modelCheck.
type checker struct {
	Options
	findings

	config  config.Config
	judging policy.Options // what the policy is read against
	policy  *policy.Policy // nil if it could not be read
	env     config.Environment
	pins    *mcptool.Pins   // nil: not known
	said    map[string]bool // agents of which it was said who is asked about their tools
}

// Check looks at everything, in the order in which it is set up.
func Check(ctx context.Context, o Options) []Finding {
	c := &checker{Options: o}
	c.env, _ = config.ReadEnvironment(o.Environ) // what is wrong with it is said in its turn
	c.env.Data = o.Data
	c.checkFile()
	c.acceptTools(ctx)
	c.checkTools()
	c.checkPolicy()
	c.checkEnvironment(ctx)
	c.checkData(ctx)
	c.checkWebhooks()
	c.checkHTTPTools()
	addresses{c}.check()
	if o.Online {
		c.checkSlack(ctx)
		c.checkSocket(ctx)
		addresses{c}.checkRunning(ctx)
		c.checkRedis(ctx)
		c.checkServers(ctx)
		modelCheck{checker: c}.check(ctx)
	}
	return c.scrubbed()
}

func (f *findings) fine(format string, args ...any) {
	f.all = append(f.all, Finding{Mark: IsFine, Text: fmt.Sprintf(format, args...)})
}

// warn is for what the bot can run with and people hardly want.
func (f *findings) warn(advice, format string, args ...any) {
	f.all = append(f.all, Finding{Mark: IsWarning, Text: fmt.Sprintf(format, args...), Advice: advice})
}

// problem is for what the bot does not start or work with. One that several checks find is
// said once.
func (f *findings) problem(advice, format string, args ...any) {
	f.once(Finding{Mark: IsProblem, Text: fmt.Sprintf(format, args...), Advice: advice})
}

// passing is a problem that can end by itself, such as a replica that is away.
func (f *findings) passing(advice, format string, args ...any) {
	f.once(Finding{Mark: IsProblem, Text: fmt.Sprintf(format, args...), Advice: advice, Passes: true})
}

func (f *findings) once(p Finding) {
	if !slices.Contains(f.all, p) {
		f.all = append(f.all, p)
	}
}

func (f *findings) unknown(advice, format string, args ...any) {
	f.all = append(f.all, Finding{Mark: NotChecked, Text: fmt.Sprintf(format, args...), Advice: advice})
}

// scrubbed returns the findings without any secret, should an error have
// quoted one.
func (c *checker) scrubbed() []Finding {
	var pairs []string
	for _, s := range c.env.Secrets() {
		pairs = append(pairs, s, "[redacted]")
	}
	clean := strings.NewReplacer(pairs...)
	for i, f := range c.all {
		c.all[i].Text, c.all[i].Advice = clean.Replace(f.Text), clean.Replace(f.Advice)
	}
	return c.all
}

// Report writes the findings for people. With problems it is an error.
func Report(w io.Writer, findings []Finding) error {
	count := map[Mark]int{}
	var out strings.Builder
	for _, f := range findings {
		count[f.Mark]++
		fmt.Fprintf(&out, "%-15s  %s\n", f.Mark, strings.ReplaceAll(f.Text, "\n", "\n"+indent))
		if f.Advice != "" {
			fmt.Fprintf(&out, "%s-> %s\n", indent, f.Advice)
		}
	}
	fmt.Fprintf(&out, "\n%d ok, %s, %d could not be checked, %d wrong\n", count[IsFine],
		counted(count[IsWarning], "warning", "warnings"), count[NotChecked], count[IsProblem])
	if _, err := io.WriteString(w, approvals.Visible(out.String())); err != nil { // it quotes files
		return fmt.Errorf("print: %w", err)
	}
	switch n := count[IsProblem]; n {
	case 0:
		return nil
	case 1:
		return errors.New("there is a problem")
	default:
		return fmt.Errorf("there are %d problems", n)
	}
}

const indent = "                 "

// Timeout bounds one request to another system.
const Timeout = 10 * time.Second
