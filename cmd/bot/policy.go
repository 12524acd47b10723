package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

// runPolicy is for whoever writes or reviews a policy. Nothing here changes
// anything.
func runPolicy(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	commands := map[string]func(context.Context, *policyCommand, []string) error{
		"check": policyCheck, "explain": policyExplain, "test": policyTest, "replay": policyReplay, "calls": policyCalls,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		return errors.New("policy takes: check | explain | test | replay | calls; each says with --help what it takes")
	}
	p := &policyCommand{name: args[0], environ: environ, stdout: stdout, now: time.Now}
	p.flags = flag.NewFlagSet("policy "+p.name, flag.ContinueOnError)
	p.flags.SetOutput(stderr)
	p.stderr = stderr
	return commands[p.name](ctx, p, args[1:])
}

// policyCommand is one of them, with the flags that several have.
type policyCommand struct {
	name           string
	flags          *flag.FlagSet
	environ        []string
	stdout, stderr io.Writer
	now            func() time.Time

	config, tools, roster string
	online, json          bool
}

// takesAgainst adds the flags that say what a policy is read against.
func (p *policyCommand) takesAgainst() {
	p.flags.StringVar(&p.config, "config", "", "the bot's configuration `FILE`: the tools of its agents, and its policy if no other is named")
	p.flags.StringVar(&p.tools, "tools", "", "instead of a configuration, a `FILE` of tools: the answer of MCP's tools/list")
	p.flags.StringVar(&p.roster, "roster", "", "a `FILE` that says who is in which group")
	p.flags.BoolVar(&p.online, "online", false, "ask Slack who is in which group (SLACK_BOT_TOKEN)")
}

func (p *policyCommand) takesJSON() {
	p.flags.BoolVar(&p.json, "json", false, "write JSON")
}

func (p *policyCommand) parse(args []string, most int) error {
	if err := p.flags.Parse(args); err != nil {
		return fmt.Errorf("policy %s: %w", p.name, err)
	}
	if p.flags.NArg() > most {
		return fmt.Errorf("policy %s: takes no argument %q", p.name, p.flags.Arg(most))
	}
	return nil
}

// against returns what a policy is read against, and the policy that the
// configuration names.
func (p *policyCommand) against() (policy.Options, string, error) {
	o := policy.Options{Now: p.now}
	var path string
	switch {
	case p.config != "" && p.tools != "":
		return o, "", errors.New("--config and --tools: one of the two says what tools there are")
	case p.config != "":
		c, err := readConfig(p.config)
		if err == nil {
			err = c.check()
		}
		if err != nil {
			return o, "", err
		}
		sets, err := newToolSets(c, nil)
		if err != nil {
			return o, "", err
		}
		o.Tools, path = policyTools(c, sets), c.Policy
	case p.tools != "":
		tools, err := policy.ReadTools(p.tools)
		if err != nil {
			return o, "", err
		}
		o.Tools = tools
	}
	if p.roster != "" {
		r, err := policy.ReadRoster(p.roster)
		if err != nil {
			return o, "", err
		}
		o.Roster, o.Directory = r, rosterDirectory{r}
	}
	return o, path, nil
}

// path is the policy that the argument names, or else the configuration.
func (p *policyCommand) path(configured string) (string, error) {
	if p.flags.NArg() > 0 {
		return p.flags.Arg(0), nil
	}
	if configured == "" {
		return "", fmt.Errorf("policy %s: name a policy, or a configuration that names one (--config FILE)", p.name)
	}
	return configured, nil
}

// load reads the policy against all that the flags say.
func (p *policyCommand) load(ctx context.Context) (*policy.Policy, policy.Options, string, error) {
	o, configured, err := p.against()
	if err != nil {
		return nil, o, "", err
	}
	path, err := p.path(configured)
	if err != nil {
		return nil, o, "", err
	}
	loaded, err := policy.Load(path, o)
	if err != nil || !p.online {
		return loaded, o, path, err
	}
	if o.Roster, err = p.fromSlack(ctx, loaded); err != nil {
		return nil, o, path, err
	}
	o.Directory = rosterDirectory{o.Roster}
	loaded, err = policy.Load(path, o)
	return loaded, o, path, err
}

// fromSlack is who is there, by Slack.
func (p *policyCommand) fromSlack(ctx context.Context, loaded *policy.Policy) (*policy.Roster, error) {
	e, _ := readEnvironment(p.environ) // only Slack is needed
	if e.SlackToken.open() == "" {
		return nil, errors.New("SLACK_BOT_TOKEN: is not set, and --online asks Slack")
	}
	api := slack.New(e.SlackToken.open(), slack.OptionAPIURL(strings.TrimSuffix(e.SlackAPIURL, "/")+"/"),
		slack.OptionHTTPClient(&http.Client{Timeout: patience}))
	who, err := api.AuthTestContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask Slack who this bot is (auth.test): %w", err)
	}
	roster, more, err := rosterOf(ctx, loaded, newSlackLookup(api, who))
	if err != nil {
		return nil, fmt.Errorf("ask Slack %w", err)
	}
	if more > 0 {
		if _, err := fmt.Fprintf(p.stderr, "%d more people may sign, who were not looked up and are taken for members\n", more); err != nil {
			return nil, err
		}
	}
	return roster, nil
}

// say writes for people.
func (p *policyCommand) say(format string, args ...any) error {
	_, err := fmt.Fprintf(p.stdout, format, args...)
	return err
}

// rosterDirectory answers from a snapshot.
type rosterDirectory struct{ roster *policy.Roster }

// GroupsOf implements [policy.Directory].
func (d rosterDirectory) GroupsOf(_ context.Context, user approvals.UserID, of []approvals.GroupID) ([]approvals.GroupID, error) {
	if d.roster.People[user] != policy.Member {
		return nil, nil
	}
	return slices.DeleteFunc(slices.Clone(of), func(g approvals.GroupID) bool {
		return !slices.Contains(d.roster.Groups[g], user)
	}), nil
}
