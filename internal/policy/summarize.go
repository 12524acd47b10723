package policy

import "github.com/countersign/countersign/internal/summary"

// readSummary reads the template that says what a call does, for the people who
// are asked. It must fit every tool that the rule is for.
func (b *builder) readSummary(r *rule, f text) {
	switch {
	case !f.Written() || f.Value == "":
		return
	case r.kind == KindDeny || r.kind == KindAllow:
		b.Wrong(f.Mark, "is for approvers, and this rule asks nobody; remove it")
		return
	}
	r.summary = f.Value
	if _, err := summary.Parse(f.Value); err != nil {
		b.Wrong(f.Mark, "%s", err)
		return
	}
	said := map[string]bool{}
	for _, t := range b.concerned(r) {
		err := summary.Check(f.Value, t.Schema, t.WriteOnly)
		if err == nil || said[t.Name+err.Error()] {
			continue
		}
		said[t.Name+err.Error()] = true
		b.Wrong(f.Mark, "does not fit the tool %s: %s", t.Name, err)
	}
}
