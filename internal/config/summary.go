package config

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml/ast"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/strictyaml"
	"github.com/countersign/countersign/internal/summary"
)

// template reads the form of a summary, and keeps where it is written.
func (f *form) template(at string, n ast.Node) {
	source, _, isText := strictyaml.Words(n)
	if !isText {
		f.wrong(n, at, "must be %s", strictyaml.NotText(n))
		return
	}
	if _, err := summary.Parse(source); err != nil {
		f.wrong(n, at, "%s", err)
		return
	}
	place := n.GetToken().Position
	f.templates[at] = fmt.Sprintf("[%d:%d] ", place.Line, place.Column)
}

func summaryPlace(at, tool string) string { return at + ".tools." + tool + ".summary" }

// checkSummaries compares the summaries of an agent's tools with their schemas:
// those of the tools themselves, and those of the configuration.
func (c Config) checkSummaries(a placed, tools []agentrun.Tool) error {
	var problems []error
	for _, t := range tools {
		s := t.Spec()
		if s.Summary != "" {
			if err := summary.Check(s.Summary, s.Schema, s.WriteOnly); err != nil {
				problems = append(problems, fmt.Errorf("agent %s: the summary of the tool %s: %w", a.Name, s.Name, err))
			}
		}
		if own := string(a.Tools[s.Name].Summary); own != "" {
			if err := summary.Check(own, s.Schema, s.WriteOnly); err != nil {
				at := c.summariesAt[[2]string{a.Name, s.Name}]
				if c.file != "" {
					at = c.file + ": " + at
				}
				problems = append(problems, fmt.Errorf("%s%s: does not fit the tool: %w", at, summaryPlace(a.at, s.Name), err))
			}
		}
	}
	return errors.Join(problems...)
}

// Summaries are the templates of the agent's tools, by their names, where the
// configuration has one.
func (a Agent) Summaries() map[string]string {
	all := map[string]string{}
	for name, t := range a.Tools {
		if t.Summary != "" {
			all[name] = string(t.Summary)
		}
	}
	return all
}
