package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/doctor"
	"github.com/countersign/countersign/manifests"
)

// The files that `bot init` writes.
const (
	configName = "config.yaml"
	policyName = "policy.yaml"
)

//go:embed init.yaml
var startingConfig string

//go:embed init-policy.yaml
var startingPolicy string

// runInit writes what a new installation begins with. It never overwrites.
func runInit(_ context.Context, in *call) error {
	address := in.flags.String("url", "", "The `URL` at which Slack will reach the bot: https:// and a host, without a path.")
	dir := in.flags.String("dir", ".", "The `DIRECTORY` for the files. It is made if it is not there.")
	if _, err := in.parse(); err != nil {
		return err
	}
	if *address == "" {
		*address = manifests.Example
	} else if err := manifests.CheckAddress(*address); err != nil {
		var problems []error
		for _, p := range config.Problems(err) {
			problems = append(problems, fmt.Errorf("--url: %w", p))
		}
		return errors.Join(problems...)
	}
	if err := writeNew(*dir, map[string]string{configName: startingConfig, policyName: startingPolicy, doctor.ManifestName: manifests.Slack(*address)}); err != nil {
		return err
	}
	replace := ""
	if *address == manifests.Example {
		replace = fmt.Sprintf(replaceWords, manifests.Example)
	}
	config, rules, manifest := filepath.Join(*dir, configName), filepath.Join(*dir, policyName), filepath.Join(*dir, doctor.ManifestName)
	_, err := fmt.Fprintf(in.stdout, initWords, config, rules, manifest, replace, manifest, rules, config, config)
	return err
}

const initWords = `Wrote %s, %s and %s.

Next:
%s  1. Create the Slack app: https://api.slack.com/apps, "Create New App", "From a
     manifest", and paste %s. Install it to the workspace.
  2. In %s, fill in the ids of the approvers. Make the folder
     that the agent works on.
  3. Set SLACK_BOT_TOKEN ("OAuth & Permissions"), SLACK_SIGNING_SECRET ("Basic
     Information"), REDIS_URL and OPENAI_API_KEY.
  4. bot check --config %s --online
  5. bot serve --config %s
     Then verify the Request URL of the app ("Event Subscriptions") and write
     /invite @countersign in a channel.

Every step: docs/deploy.md
`

const replaceWords = `  0. In the manifest, replace %s with the
     address at which Slack will reach the bot.
`

// writeNew writes all of the files, or none if one of them is there.
func writeNew(dir string, files map[string]string) error {
	var problems []error
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil {
			problems = append(problems, fmt.Errorf("%s already exists, and is not overwritten", path))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // nothing in it is secret
		return fmt.Errorf("make the directory: %w", err)
	}
	for _, name := range names {
		// The bot may run as another user, who must be able to read them.
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // see above
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
		_, err = io.WriteString(f, files[name])
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}
