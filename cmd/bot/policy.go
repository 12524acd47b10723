package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/doctor"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/strictyaml"
)

// policyCommand is one of the commands for a policy, with the flags that
// several of them have.
type policyCommand struct {
	*call
	args []string
	now  func() time.Time

	config, tools, roster string
	online, json          bool
	askChecks             bool // whether to ask the check of the rule that decides

	text []byte // of the policy that was loaded, or nil if that is a directory
}

func newPolicyCommand(in *call) *policyCommand { return &policyCommand{call: in, now: time.Now} }

// takesAgainst adds the flags that say what a policy is read against.
func (p *policyCommand) takesAgainst() {
	p.takesTools()
	p.flags.BoolVar(&p.online, "online", false, "Ask Slack who is in which group. It needs SLACK_BOT_TOKEN.")
}

// takesTools adds those of them for which no lookup is needed.
func (p *policyCommand) takesTools() {
	p.flags.StringVar(&p.config, "config", "", "The bot's configuration `FILE`: it says which tools there are, and where the policy is if none is named.")
	p.flags.StringVar(&p.tools, "tools", "", "Instead of a configuration, a `FILE` of tools: the result of tools/list of MCP, and beside it agents, which lists for each agent the names of its tools.")
	p.flags.StringVar(&p.roster, "roster", "", "A `FILE` that says who is in which group.")
}

func (p *policyCommand) takesJSON() {
	p.flags.BoolVar(&p.json, "json", false, "Write JSON.")
}

func (p *policyCommand) parse() (err error) {
	p.args, err = p.call.parse()
	return err
}

// against returns what a policy is read against, and the policy that the
// configuration names.
func (p *policyCommand) against(ctx context.Context) (policy.Options, string, error) {
	o := policy.Options{Now: p.now}
	var path string
	switch {
	case p.config != "" && p.tools != "":
		return o, "", p.wrong("--config and --tools both say which tools there are; leave one out")
	case p.config != "":
		c, err := config.Read(p.config)
		if err == nil {
			err = c.Check()
		}
		if err != nil {
			return o, "", err
		}
		e, _ := config.ReadEnvironment(p.environ) // what is missing for serve is not needed here
		if c, _, err = withAccepted(ctx, c, e); err != nil {
			return o, "", err
		}
		sets, err := config.NewToolSets(c, e, p.extra)
		if err != nil {
			return o, "", err
		}
		o, path = config.PolicyOptions(c, sets), c.Policy
		o.Now = p.now
		if p.askChecks {
			checks, err := newChecks(c, e, e.NewLogger(p.stderr), nil)
			if err != nil {
				return o, "", err
			}
			o.AskCheck = checks.Ask
		}
	case p.tools != "":
		tools, err := policy.ReadTools(p.tools)
		if err != nil {
			return o, "", err
		}
		o.Tools = tools
	}
	if p.askChecks && p.config == "" {
		return o, "", p.wrong("--ask-checks needs --config FILE: it says where the checks are")
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
	if len(p.args) > 0 {
		return p.args[0], nil
	}
	if configured == "" {
		return "", p.wrong("POLICY is missing, or --config FILE with a configuration that names one")
	}
	return configured, nil
}

// load reads the policy against all that the flags say.
func (p *policyCommand) load(ctx context.Context) (*policy.Policy, policy.Options, string, error) {
	o, configured, err := p.against(ctx)
	if err != nil {
		return nil, o, "", err
	}
	path, err := p.path(configured)
	if err != nil {
		return nil, o, "", err
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() { // what is a pipe can be read once
		if p.text, err = strictyaml.ReadFile(path); err != nil {
			return nil, o, "", fmt.Errorf("read the policy: %w", err)
		}
	}
	loaded, err := p.judge(path, o)
	if err != nil || !p.online {
		return loaded, o, path, err
	}
	if o.Roster, err = p.fromSlack(ctx, loaded); err != nil {
		return nil, o, path, err
	}
	o.Directory = rosterDirectory{o.Roster}
	loaded, err = p.judge(path, o)
	return loaded, o, path, err
}

// judge reads the policy against o.
func (p *policyCommand) judge(path string, o policy.Options) (*policy.Policy, error) {
	if p.text == nil {
		return policy.Load(path, o)
	}
	return policy.Parse(path, p.text, o)
}

// fromSlack looks up people and group members in Slack.
func (p *policyCommand) fromSlack(ctx context.Context, loaded *policy.Policy) (*policy.Roster, error) {
	api, who, err := askSlack(ctx, p.environ)
	if err != nil {
		return nil, fmt.Errorf("--online: %w", err)
	}
	roster, more, err := doctor.RosterOf(ctx, loaded, doctor.NewSlackLookup(api, who))
	if err != nil {
		return nil, fmt.Errorf("ask Slack: %w", err)
	}
	if more > 0 {
		if _, err := fmt.Fprintf(p.stderr, "%s can approve. They were not looked up, and count as members here.\n", counted(more, "more person", "more people")); err != nil {
			return nil, err
		}
	}
	return roster, nil
}

// askSlack asks Slack who the bot is.
func askSlack(ctx context.Context, environ []string) (*slack.Client, *slack.AuthTestResponse, error) {
	e, _ := config.ReadEnvironment(environ) // only Slack is needed
	if e.SlackToken.Open() == "" {
		return nil, nil, errors.New("SLACK_BOT_TOKEN is not set, so Slack cannot be asked")
	}
	if e.SlackAPIURL == "" {
		return nil, nil, errors.New("SLACK_API_URL is not a URL, so Slack cannot be asked")
	}
	api := slack.New(e.SlackToken.Open(), slack.OptionAPIURL(e.SlackAPIURL),
		slack.OptionHTTPClient(&http.Client{Timeout: doctor.Timeout}))
	who, err := api.AuthTestContext(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("ask Slack who this bot is (auth.test): %w", err)
	}
	return api, who, nil
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
