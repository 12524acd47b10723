package policy_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/shellcmd"
)

// What cannot be read may run what a rule looks for. A deny that passed over it
// would be avoided by writing the command otherwise, and an ask would leave it to
// the rules behind it; so all that the policy can ask for is needed.
func TestWhatMayRunASoughtProgramIsAskedOfEverybody(t *testing.T) {
	const rules = `
rules:
  - {name: %s, tools: [Bash], command: {runs: [rm, git push]}, %s}
  - {name: security, tools: [other], ask: {why: Other., quorums: [{name: security, from: {groups: [security]}}]}}
  - {name: rest, tools: [Bash], allow: true}
`
	for kind, effect := range map[policy.Kind]string{
		policy.KindDeny: "deny: Not from here.",
		policy.KindAsk:  "ask: {why: It is published., quorums: [{name: leads, from: {people: [carol]}}], fragile: true}",
	} {
		p := parse(t, fmt.Sprintf(rules, "sought", effect), policy.Options{})
		for command, want := range map[string]policy.Outcome{
			"ls": policy.Unmatched, "git status && ls": policy.Unmatched, "make": policy.Unmatched,
			"rm x": policy.Decided, "ls; /bin/rm x": policy.Decided, "git -C /x push": policy.Decided, "sudo rm x": policy.Decided,
			"sh -c x": policy.Broken, "python3 -c x": policy.Broken, "ls | perl": policy.Broken, "awk x": policy.Broken, "test -v 'a[$(rm x)]'": policy.Broken,
			"python3 x.py": policy.Unmatched, "python -m pytest": policy.Unmatched, "printf x": policy.Unmatched, "xargs": policy.Broken, "$X": policy.Broken, "ls > x": policy.Broken, "for x in a; do ls; done": policy.Broken, "": policy.Broken,
			"'rm' x": policy.Broken, "\\rm x": policy.Broken, "X=1 rm x": policy.Broken, "eval 'r''m x'": policy.Broken, "r{m,x}": policy.Broken, "ls \u202ex": policy.Broken,
		} {
			q := bash(t, command, "/")
			require.Equal(t, want, p.Explain(t.Context(), q).Steps[0].Outcome, "%s: %s", kind, command)
			r, err := p.Rule(t.Context(), q)
			require.NoError(t, err)
			switch ask, asks := r.(approvals.Ask); {
			case want == policy.Unmatched:
				require.Equal(t, approvals.Permit{}, unnamed(r), command)
			case want == policy.Broken:
				require.True(t, asks, command)
				require.GreaterOrEqual(t, len(ask.Requirement.Quorums), 2, "every quorum of the file")
				require.Contains(t, ask.Why, "The rule sought could not be judged for this call: what its command runs cannot be read from it.")
			case kind == policy.KindDeny:
				require.Equal(t, approvals.Refuse{Reason: "Not from here."}, unnamed(r), command)
			default:
				require.Equal(t, "leads", ask.Requirement.Quorums[0].Name)
			}
		}
		for _, args := range []string{`{}`, `{"command":1}`, `{"command":"ls","command":"rm x"}`} {
			require.Equal(t, policy.Broken, p.Explain(t.Context(), call("Bash", args)).Steps[0].Outcome, args)
		}
	}
}

// The other parts of a rule still decide: one that does not match for another
// reason is not in the way of commands that cannot be read.
func TestACommandIsOnePartOfItsRule(t *testing.T) {
	p := parse(t, `
rules:
  - {name: pushes, tools: [Bash], command: {runs: [git push]}, when: run.steps > 3, deny: Too late.}
  - {name: reads, tools: [Bash], command: {forms: [{run: ls}]}, when: args.timeout < 10, allow: true}
  - {name: lists, tools: [Bash], command: {forms: [{run: ls}, {run: id}]}, ask: {why: It looks., severity: low}}
`, policy.Options{})
	for _, c := range []struct {
		command string
		timeout any
		by      string
	}{
		{"$X", 1, "default"}, {"ls", 1, "reads"}, {"ls", 20, "lists"}, {"id", "x", "lists"}, {"ls; $X", 1, "default"}, {"git push", 1, "default"},
	} {
		e := p.Explain(t.Context(), bash(t, c.command, "/", "timeout", c.timeout))
		require.Contains(t, e.By, c.by+"@", "%s: %s", c.command, e.Text())
	}
	late := bash(t, "$X", "/")
	late.SoFar.Steps = 4
	require.Equal(t, policy.Broken, p.Explain(t.Context(), late).Steps[0].Outcome)
	require.Equal(t, approvals.SeverityLow, asked(t, p, bash(t, "id", "/")).Severity)
	require.Equal(t, policy.Broken, p.Explain(t.Context(), bash(t, "ls", "/", "timeout", "x")).Steps[1].Outcome, "its condition cannot be evaluated")
}

func TestARuleOfACommandThatCannotWorkIsRefused(t *testing.T) {
	bashTool := policy.Tool{Agent: "ops", Name: "Bash", Schema: []byte(`{"type":"object","properties":{"command":{"type":"string"},"n":{"type":"integer"}},"additionalProperties":false}`)}
	known := policy.Options{Tools: []policy.Tool{bashTool}}
	for _, c := range []struct {
		rule, says string
		o          policy.Options
	}{
		{"command: {forms: [{run: ls}]}, deny: no", "write runs", known},
		{"command: {runs: [ls]}, allow: true", "an allow has to list forms", known},
		{"command: {runs: [ls], forms: [{run: ls}]}, allow: true", "exactly one of forms and runs", known},
		{"command: {argument: command}, allow: true", "exactly one of forms and runs", known},
		{"command: {runs: [ls], cwd: {under: [/x]}}, deny: no", "which are for forms only", known},
		{"command: {forms: [{flags: [-x]}]}, allow: true", "run: is missing", known},
		{"command: {forms: [{run: eval}]}, allow: true", "eval cannot be permitted", known},
		{"command: {forms: [{run: cd}]}, allow: true", "list directories under cwd instead", known},
		{"command: {forms: [{run: if}]}, allow: true", "would never match", known},
		{"command: {forms: [{run: a=b}]}, allow: true", "would never match", known},
		{"command: {forms: [{run: =ls}]}, allow: true", "would never match", known},
		{"command: {forms: [{run: printf}]}, allow: true", "zsh may run programs that its arguments contain", known},
		{"command: {forms: [{run: ./x}]}, allow: true", "./x depends on where the command runs", known},
		{"command: {forms: [{run: git  log}]}, allow: true", "one space between", known},
		{"command: {forms: [{run: git *}]}, allow: true", "not a program with the words after it", known},
		{"command: {forms: [{run: -x}]}, allow: true", "begin with the program", known},
		{"command: {forms: [{run: ls, flags: [a]}]}, allow: true", "does not begin with a dash", known},
		{"command: {forms: [{run: ls, flags: [-a, -a]}]}, allow: true", "is listed twice", known},
		{"command: {forms: [{run: ls, flags: [-a], values: {-a: {is: [b]}}}]}, allow: true", "a flag has a value or has none", known},
		{"command: {forms: [{run: ls, values: {a: {is: [b]}}}]}, allow: true", "is not a flag", known},
		{"command: {forms: [{run: ls, operands: [{matches: '('}]}]}, allow: true", "is not a regular expression", known},
		{"command: {forms: [{run: ls, operands: [{under: [.]}]}]}, allow: true", "depends on where the command runs; write cwd too", known},
		{"command: {forms: [{run: ls, operands: [{under: [/a/../b]}]}]}, allow: true", "is not a directory that can be listed", known},
		{"command: {cwd: {under: [src]}, forms: [{run: ls}]}, allow: true", "must be absolute", policy.Options{}},
		{"command: {cwd: {argument: dir}, forms: [{run: ls}]}, allow: true", "under: is missing", policy.Options{}},
		{"command: {cwd: {under: [/x]}, forms: [{run: ls}]}, allow: true", `has no argument "cwd"`, known},
		{"command: {argument: cmd, forms: [{run: ls}]}, allow: true", `has no argument "cmd"`, known},
		{"command: {argument: n, forms: [{run: ls}]}, allow: true", "the argument n of the tool Bash of ops is not text", known},
		{"command: {other_args: [x], forms: [{run: ls}]}, allow: true", `has no argument "x"`, known},
		{"command: {forms: [{run: ls, max: 2}]}, allow: true", "no operands that they could count", known},
		{"command: {forms: [{run: ls, operands: [{is: [a]}, {is: [b]}], max: 1}]}, allow: true", "the last of the 2 operands are never used", known},
		{"command: {forms: [{run: ls, operands: [{is: [a]}], min: 2}]}, allow: true", "more than the 1 operands", known},
		{"command: {forms: [{run: ls, flags: [-a]}, {run: ls, flags: [-a]}]}, allow: true", "says the same as a form before it", known},
		{"command: {forms: [{run: ls}]}, allow: true}\n  - {name: again, tools: [Bash], command: {forms: [{run: ls}]}, allow: true", "never decides: r", known},
		{"allow: true}\n  - {name: again, tools: [Bash], command: {forms: [{run: ls}]}, allow: true", "never decides: r", known},
	} {
		_, err := policy.Parse("p.yaml", []byte(head+"rules:\n  - {name: r, tools: [Bash], "+c.rule+"}\n"), c.o)
		require.ErrorContains(t, err, c.says, c.rule)
	}
	_, err := policy.Parse("p.yaml", []byte(head+"rules:\n  - {name: r, command: {forms: [{run: ls}]}, allow: true}\n"), policy.Options{})
	require.ErrorContains(t, err, "name them under tools")
	for _, fine := range []string{
		"command: {forms: [{run: ls}]}, allow: true}\n  - {name: more, tools: [Bash], command: {forms: [{run: ls, flags: [-a]}]}, ask: {why: x}",
		"command: {forms: [{run: git push}]}, allow: true}\n  - {name: no, tools: [Bash], command: {runs: [git push]}, when: run.steps > 3, deny: x",
		"command: {forms: [{run: git push}]}, allow: true}\n  - {name: no, tools: [Bash], mode: shadow, command: {runs: [git push]}, deny: x",
	} {
		_, err := policy.Parse("p.yaml", []byte(head+"rules:\n  - {name: r, tools: [Bash], "+fine+"}\n"), known)
		require.NoError(t, err, fine)
	}
}

// A deny can be added at once, whatever forms it outranks.
func TestAFormThatADenyOutranksIsAWarning(t *testing.T) {
	for rules, want := range map[string]string{
		"command: {forms: [{run: ls}, {run: git push}]}, allow: true}\n  - {name: no, tools: [Bash], command: {runs: [git push]}, deny: x": "lists git push, which no (",
		"command: {forms: [{run: ls}, {run: sudo rm}]}, allow: true}\n  - {name: no, command: {runs: [rm]}, tools: [Bash], deny: x":        "lists sudo rm, which no (",
	} {
		p := parse(t, "rules:\n  - {name: r, tools: [Bash], "+rules+"}\n", policy.Options{})
		all := p.Warnings()
		require.NotEmpty(t, all)
		require.Contains(t, all[len(all)-1], want)
	}
}

func TestAFormThatCanRunOtherProgramsIsAWarningWithItsPlace(t *testing.T) {
	p := parse(t, "\nrules:\n  - name: r\n    tools: [Bash]\n    command:\n      forms:\n        - {run: ls}\n        - {run: find, flags: [-exec]}\n        - {run: env}\n    allow: true\n", policy.Options{})
	all := p.Warnings()
	require.Len(t, all, 2)
	require.Regexp(t, `^policy\.yaml:\d+:17: rules\[0\]\.command\.forms\[1\]\.run: find can run other programs through -exec$`, all[0])
	require.Contains(t, all[1], "env runs other programs")
	require.Empty(t, shellPolicy(t).Warnings())
}

// FuzzCommand: whatever the command is, it runs without approval only if it could
// be read, and only with programs that the list has.
func FuzzCommand(f *testing.F) {
	for _, s := range []string{"git status", "git -c x=y log", "ls | wc -l", "cd /srv/shop && ls", "ls; rm x", "cat 'a b'", "git log --format='%h %s'", "go test -run='^X$' ./...", "$(ls)", "git commit -m 'x\n$y'"} {
		f.Add(s)
	}
	p := shellPolicy(f)
	f.Fuzz(func(t *testing.T, command string) {
		r, why := ruled(t, p, bash(t, command, shop))
		if _, runs := r.(approvals.Permit); !runs {
			require.NotEmpty(t, why)
			return
		}
		commands, err := shellcmd.Read(command)
		require.NoError(t, err)
		for _, c := range commands {
			require.Contains(t, []string{"git", "ls", "cat", "grep", "head", "wc", "go", "find", "sort", "tar", "echo", "./scripts/check.sh", "/usr/bin/id", "cd"}, c.Argv[0])
			for _, w := range c.Argv[1:] {
				require.NotContains(t, []string{"-c", "-exec", "--output", "-o", "-delete", "-C"}, w)
			}
		}
	})
}

// A rule that looks at commands leaves the others to the rules behind it.
func TestARuleOnCommandsIsNotTakenForOneOnEveryCall(t *testing.T) {
	shell := policy.Tool{Agent: "ops", Name: "Bash"}
	for _, first := range []string{
		"{name: a, tools: [Bash], command: {runs: [rm]}, deny: No.}",
		"{name: a, tools: [Bash], command: {forms: [{run: ls}]}, allow: true}",
	} {
		p := parse(t, "rules: ["+first+", {name: b, tools: [Bash], ask: {why: Look.}}]\n", policy.Options{Tools: []policy.Tool{shell}})
		all := p.Approvers(shell, "C0WARROOM1")
		require.Len(t, all, 1, first)
		require.Equal(t, "b", all[0].Rule)
	}
}
