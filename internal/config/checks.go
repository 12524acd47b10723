package config

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/rulecheck"
	"github.com/countersign/countersign/internal/webhook"
)

// Check is a service that rules of the policy can name. It is asked about the calls for
// which such a rule decides.
type Check struct {
	Name      string        `yaml:"name"` // as rules name it
	URL       string        `yaml:"url"`
	Secrets   []string      `yaml:"secrets"`   // the environment variables with its secrets, the newest first
	Timeout   time.Duration `yaml:"timeout"`   // 2s if left out
	Arguments bool          `yaml:"arguments"` // whether it gets the arguments of calls
}

// checkChecks returns what is wrong with the checks, as far as that can be said
// without the environment.
func (c Config) checkChecks(wrong func(format string, args ...any)) {
	sender, _ := c.Webhooks.Sender(func() time.Time { return time.Time{} }) // [Config.checkWebhooks] reports the error
	for i, k := range c.Checks {
		at := fmt.Sprintf("checks[%d]", i)
		if slices.ContainsFunc(c.Checks[:i], func(o Check) bool { return o.Name == k.Name }) {
			wrong("%s.name: another check is already called %q", at, k.Name)
		}
		if t := k.Timeout; t < 0 || t > rulecheck.MaxTimeout {
			wrong("%s.timeout: must be at most %s, but is %s", at, rulecheck.MaxTimeout, t)
		}
		checkEndpoint(at, k.Name, k.URL, k.Secrets, sender, wrong)
	}
}

// CheckNames returns the names of the checks: an empty slice, and not nil, if there are
// none.
func (c Config) CheckNames() []string {
	all := []string{}
	for _, k := range c.Checks {
		all = append(all, k.Name)
	}
	return all
}

// RuleChecks returns the checks by their names, or everything that is wrong with
// their secrets.
func (c Config) RuleChecks(e Environment) (map[string]rulecheck.Check, error) {
	all := map[string]rulecheck.Check{}
	var problems []error
	for i, k := range c.Checks {
		secrets, err := signingSecrets(fmt.Sprintf("checks[%d]", i), k.Secrets, e)
		problems = append(problems, err)
		all[k.Name] = rulecheck.Check{
			Endpoint: webhook.Endpoint{URL: k.URL, Secrets: secrets}, Timeout: k.Timeout, Arguments: k.Arguments,
		}
	}
	return all, errors.Join(problems...)
}
