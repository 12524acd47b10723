package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/policy"
)

// runCheck says everything that is wrong with an installation, at once.
func runCheck(ctx context.Context, in *call) error {
	o := checkOptions{Extra: in.extra, Environ: in.environ, HTTP: http.DefaultTransport, Now: time.Now}
	in.flags.StringVar(&o.Path, "config", "", "The configuration `FILE`.")
	in.flags.StringVar(&o.Address, "url", "", "The `URL` at which Slack reaches the bot. With --online, the running bot is asked there.")
	in.flags.BoolVar(&o.Online, "online", false, "Ask Slack, Redis and the model provider too. Nothing is written anywhere; each model is asked for a few tokens.")
	if _, err := in.parse(); err != nil {
		return err
	}
	return report(in.stdout, check(ctx, o))
}

type checkOptions struct {
	Path    string
	Extra   config.ToolsFor // the tools that the program adds to those of the configuration
	Environ []string
	Address string // under which Slack reaches the bot; empty if it is not said
	Online  bool
	HTTP    http.RoundTripper
	Now     func() time.Time
}

// A mark is what a look at one thing gave.
type mark string

const (
	isFine     mark = "ok"
	isWarning  mark = "warning"
	isProblem  mark = "problem"
	notChecked mark = "could not check"
)

// A finding is one thing that was looked at.
type finding struct {
	mark   mark
	text   string
	advice string // what to do about it
}

// findings are what was found so far.
type findings struct{ all []finding }

// checker collects findings. It holds what later looks need of earlier ones.
type checker struct {
	checkOptions
	findings

	config  config.Config
	judging policy.Options // what the policy is read against
	policy  *policy.Policy // nil if it could not be read
	env     config.Environment
}

// check looks at everything, in the order in which it is set up.
func check(ctx context.Context, o checkOptions) []finding {
	c := &checker{checkOptions: o}
	c.env, _ = config.ReadEnvironment(o.Environ) // what is wrong with it is said in its turn
	c.checkFile()
	c.checkTools()
	c.checkPolicy()
	c.checkEnvironment()
	c.checkAddress()
	if o.Online {
		c.checkSlack(ctx)
		c.checkSocket(ctx)
		c.checkRunning(ctx)
		c.checkRedis(ctx)
		c.checkModel(ctx)
	}
	return c.scrubbed()
}

func (f *findings) fine(format string, args ...any) {
	f.all = append(f.all, finding{isFine, fmt.Sprintf(format, args...), ""})
}

// warn is for what the bot can run with and people hardly want.
func (f *findings) warn(advice, format string, args ...any) {
	f.all = append(f.all, finding{isWarning, fmt.Sprintf(format, args...), advice})
}

func (f *findings) problem(advice, format string, args ...any) {
	f.all = append(f.all, finding{isProblem, fmt.Sprintf(format, args...), advice})
}

func (f *findings) unknown(advice, format string, args ...any) {
	f.all = append(f.all, finding{notChecked, fmt.Sprintf(format, args...), advice})
}

// scrubbed returns the findings without any secret, should an error have
// quoted one.
func (c *checker) scrubbed() []finding {
	var pairs []string
	for _, s := range c.env.Secrets() {
		pairs = append(pairs, s, "[redacted]")
	}
	clean := strings.NewReplacer(pairs...)
	for i, f := range c.all {
		c.all[i].text, c.all[i].advice = clean.Replace(f.text), clean.Replace(f.advice)
	}
	return c.all
}

// report writes the findings for people. With problems it is an error.
func report(w io.Writer, findings []finding) error {
	count := map[mark]int{}
	var out strings.Builder
	for _, f := range findings {
		count[f.mark]++
		fmt.Fprintf(&out, "%-15s  %s\n", f.mark, strings.ReplaceAll(f.text, "\n", "\n"+indent))
		if f.advice != "" {
			fmt.Fprintf(&out, "%s-> %s\n", indent, f.advice)
		}
	}
	fmt.Fprintf(&out, "\n%d ok, %s, %d could not be checked, %d wrong\n", count[isFine],
		counted(count[isWarning], "warning", "warnings"), count[notChecked], count[isProblem])
	if _, err := io.WriteString(w, approvals.Visible(out.String())); err != nil { // it quotes files
		return fmt.Errorf("print: %w", err)
	}
	switch n := count[isProblem]; n {
	case 0:
		return nil
	case 1:
		return errors.New("there is a problem")
	default:
		return fmt.Errorf("there are %d problems", n)
	}
}

const indent = "                 "

// patience bounds one question to somebody else.
const patience = 10 * time.Second
