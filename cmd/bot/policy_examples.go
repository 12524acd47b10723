package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/strictyaml"
)

// anExample finds, in a problem with a policy, the example that it is about.
var anExample = regexp.MustCompile(`^(.+?):\d+:\d+: examples\[(\d+)\][^:]*: (?s)(.*)$`)

// policyTest judges the examples of a policy and says of each whether it holds.
func policyTest(ctx context.Context, in *call) error {
	p := newPolicyCommand(in)
	p.takesAgainst()
	if err := p.parse(); err != nil {
		return err
	}
	_, _, path, err := p.load(ctx)
	if path == "" {
		return err
	}
	wrong := map[string][]string{}
	for _, e := range config.Problems(err) {
		m := anExample.FindStringSubmatch(e.Error())
		if m == nil {
			return err // the examples are judged once nothing else is wrong
		}
		key := m[1] + "#" + m[2]
		wrong[key] = append(wrong[key], m[3])
	}
	examples, err := examplesOf(path, p.text)
	if err != nil {
		return err
	}
	for _, e := range examples {
		word := "holds"
		if len(wrong[e.key]) > 0 {
			word = "FAILS"
		}
		if err := p.say("%s  %s\n", word, e.name); err != nil {
			return err
		}
		for _, what := range wrong[e.key] {
			if err := p.say("       %s\n", strings.ReplaceAll(what, "\n", "\n       ")); err != nil {
				return err
			}
		}
	}
	if err := p.say("\n%d of %s\n", len(examples)-len(wrong), counted(len(examples), "example holds", "examples hold")); err != nil {
		return err
	}
	switch len(wrong) {
	case 0:
		return nil
	case 1:
		return errors.New("one example does not hold")
	}
	return fmt.Errorf("%d examples do not hold", len(wrong))
}

type example struct{ key, name string }

// examplesOf lists the examples of the policy, which has been loaded from there: text, or
// the files of a directory.
func examplesOf(path string, text []byte) ([]example, error) {
	if text != nil {
		return examplesIn(path, text)
	}
	files, err := filepath.Glob(filepath.Join(path, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list the policy: %w", err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasPrefix(filepath.Base(f), ".") })
	var all []example
	for _, f := range files {
		text, err := strictyaml.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("read the policy: %w", err)
		}
		some, err := examplesIn(f, text)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func examplesIn(file string, text []byte) (all []example, err error) {
	var form struct {
		Examples []struct{ Name string }
	}
	if err := yaml.Unmarshal(text, &form); err != nil {
		return nil, fmt.Errorf("read the examples of %s: %w", file, err)
	}
	for i, e := range form.Examples {
		all = append(all, example{fmt.Sprintf("%s#%d", file, i), e.Name})
	}
	return all, nil
}
