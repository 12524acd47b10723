package policy_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

const shop = "/home/ann/src/shop"

func shellPolicy(tb testing.TB) *policy.Policy {
	tb.Helper()
	src, err := os.ReadFile("testdata/shell.yaml")
	require.NoError(tb, err)
	p, err := policy.Parse("shell.yaml", src, policy.Options{})
	require.NoError(tb, err)
	return p
}

// bash is a call of Claude Code's tool, with more arguments by name and value.
func bash(tb testing.TB, command, cwd string, more ...any) approvals.Proposal {
	tb.Helper()
	args := map[string]any{"command": command, "cwd": cwd, "description": "what the agent says of it"}
	for i := 0; i < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	raw, err := json.Marshal(args)
	require.NoError(tb, err)
	return call("Bash", string(raw))
}

// ruled is how a call is ruled, and why its first rule did not match.
func ruled(tb testing.TB, p *policy.Policy, q approvals.Proposal) (approvals.Ruling, string) {
	tb.Helper()
	r, err := p.Rule(tb.Context(), q)
	require.NoError(tb, err)
	return r, p.Explain(tb.Context(), q).Steps[0].Why
}

func TestHonestCommandsOfAListRunWithoutApproval(t *testing.T) {
	p := shellPolicy(t)
	for _, command := range []string{
		"git status", "git status --short", "  git  status  -s ;", "git status\n",
		"git log", "git log --oneline -20", "git log -n 5", "git log -p main", "git log --stat main..feature/x",
		"git log --since=2026-01-01 --format='%h %s'", `git log --format="%h %s"`, "git log --format=oneline HEAD",
		"git diff", "git diff --stat", "git diff --cached -- src/a.go", "git diff main", "git diff -- src docs/x.md ./README.md",
		"git show 0a1b2c3", "git commit -m 'fix: a bug; and $HOME stays text'", "git commit -m \"größer als 日本\"",
		"git commit -m 'a line\n\nand another `one`'", "git push origin feature/login-2",
		"ls", "ls -la src", "ls -l . src/", "cat README.md", "cat -- a.txt b/c.txt", "cat /usr/share/doc/go/README", "cat -",
		"grep -rn 'func (c \\*Cart)' src", `grep -n "a b" x.txt y.txt`, "grep TODO", "head -n 3 a.txt", "head -20 a.txt",
		"go test ./...", "go test -race -run TestX ./internal/cart/", "go test -run='^TestX$' -count=1 ./... -v", "go vet ./...",
		"find . -type f -name '*.go'", "find src -name x.go", "tar -tf x.tar", "echo done: 3 files", "./scripts/check.sh", "/usr/bin/id -u",
		"git status && git diff --stat", "go vet ./... && go test ./... || echo failed", "git log --oneline -20 | head -n 5",
		"git log -p | grep -i TODO | wc -l", "git status; ls; echo done", "git status\nls\n", "ls |\nwc -l", "ls &&\n  git status",
		"cd /srv/shop && go test ./...", "cd /home/bob/src/shop/web && ls", "cat a | sort -u",
	} {
		r, why := ruled(t, p, bash(t, command, shop))
		require.Equal(t, approvals.Permit{}, unnamed(r), "%s: %s", command, why)
	}
	r, why := ruled(t, p, bash(t, "ls", "/srv/shop/web", "timeout", 1000))
	require.Equal(t, approvals.Permit{}, unnamed(r), why)
}

// TestNoCommandThatOnlyLooksAllowedRuns: each of these looks like one of the list
// and is another. People are asked, and the explanation says why.
func TestNoCommandThatOnlyLooksAllowedRuns(t *testing.T) {
	p := shellPolicy(t)
	all := []struct{ command, why string }{
		// Flags that the list does not have.
		{"git -c core.pager=./x log", "the flag -c of git is not listed"},
		{"git -C / status", "the flag -C of git is not listed"},
		{"git --exec-path=/tmp status", "the flag --exec-path of git is not listed"},
		{"git --git-dir=/tmp/evil status", "the flag --git-dir of git is not listed"},
		{"git log --output=/etc/passwd", "the flag --output of git log is not listed"},
		{"git diff --ext-diff", "the flag --ext-diff of git diff is not listed"},
		{"git log --format=%x00", "this value of the flag --format= of git log is not listed"},
		{"git log --forma=oneline", "the flag --forma of git log is not listed"},
		{"git log --one", "the flag --one of git log is not listed"},
		{"git log -n -p", "this value of the flag -n of git log is not listed"},
		{"git log -n", "the flag -n of git log has no value"},
		{"git log -n=5", "the flag -n of git log is not listed"},
		{"git log --since 2026-01-01", "the flag --since of git log is not listed"},
		{"git commit -am x", "the flag -a of git commit is not listed"},
		{"git commit --amend -m x", "the flag --amend of git commit is not listed"},
		{"git push --force origin feature/x", "the flag --force of git push is not listed"},
		{"git push -f origin feature/x", "the flag -f of git push is not listed"},
		{"ls -al", "the flag -a of ls is not listed"},
		{"ls -l -aR", "the flag -a of ls is not listed"},
		{"sort --compress-program=./x", "the flag --compress-program of sort is not listed"},
		{"sort -o /etc/passwd", "the flag -o of sort is not listed"},
		{"tar -tf x.tar --to-command=sh", "the flag --to-command of tar is not listed"},
		{"tar -tf x.tar --checkpoint=1 --checkpoint-action=exec=sh", "the flag --checkpoint of tar is not listed"},
		{"find . -exec rm '{}' ';'", "the flag -e of find is not listed"},
		{"find . -name x -delete", "the flag -d of find is not listed"},
		{"find . -fprintf x y", "the flag -f of find is not listed"},
		{"go test -exec ./x ./...", "the flag -e of go test is not listed"},
		{"go test -toolexec=./x ./...", "the flag -t of go test is not listed"},
		{"grep -f /etc/shadow x", "the flag -f of grep is not listed"},
		{"cat -n a", "the flag -n of cat is not listed"},
		{"git 'log' '--output=x'", "the flag --output of git log is not listed"},
		{"git log \"--output=x\"", "the flag --output of git log is not listed"},
		{"git log --out'put=x'", "the flag --output of git log is not listed"},
		{"cat -- -n", "operand 1 of cat is not listed"},
		{"git diff -- --output=x", "operand 1 of git diff is not listed"},
		// Operands that lead elsewhere.
		{"cat /etc/passwd", "operand 1 of cat is not listed"},
		{"cat ../secret", "operand 1 of cat is not listed"},
		{"cat src/../../secret", "operand 1 of cat is not listed"},
		{"cat ./../x", "operand 1 of cat is not listed"},
		{"cat src//x", "operand 1 of cat is not listed"},
		{"cat .env", "operand 1 of cat is not listed"},
		{"cat src/.git/config", "operand 1 of cat is not listed"},
		{"cat /usr/share/doc/../../../etc/passwd", "operand 1 of cat is not listed"},
		{"cat /usr/share/docs/x", "operand 1 of cat is not listed"},
		{"cat '~/x'", "operand 1 of cat is not listed"},
		{"cat ''", "operand 1 of cat is not listed"},
		{"cat a b c d e f", "cat may have 5 operands, and this has 6"},
		{"git diff :/", "operand 1 of git diff is not listed"},
		{"git diff ':(top)'", "operand 1 of git diff is not listed"},
		{"ls '*'", "operand 1 of ls is not listed"},
		{"git push origin main", "operand 2 of git push is not listed"},
		{"git push origin feature/x:main", "operand 2 of git push is not listed"},
		{"git push origin +feature/x", "operand 2 of git push is not listed"},
		{"git push evil feature/x", "operand 1 of git push is not listed"},
		{"git push origin", "git push needs 2 operands, and this has 1"},
		{"go test ./../other/...", "operand 1 of go test is not listed"},
		{"go test example.com/evil", "operand 1 of go test is not listed"},
		{"git show 0a1b2c3:secret", "operand 1 of git show is not listed"},
		{"git show '0a1b2c3\nx'", "operand 1 of git show is not listed"},
		// Programs that are not those of the list.
		{"git", "no form is for this use of git"},
		{"git stash", "no form is for this use of git"},
		{"git statuses", "no form is for this use of git"},
		{"gіt status", "the command has a character outside of quotes that is not ASCII (U+0456)"},
		{"Git status", "no form is for Git"},
		{"./git status", "no form is for ./git"},
		{"/usr/bin/git status", "no form is for /usr/bin/git"},
		{"id -u", "no form is for id"},
		{"scripts/check.sh", "no form is for scripts/check.sh"},
		{"./scripts/../scripts/check.sh", "no form is for ./scripts/../scripts/check.sh"},
		{"'git' status", "the command has the name of a program in quotes"},
		{`g"i"t status`, "the command has the name of a program in quotes"},
		{"env git status", "no form is for env"},
		{"sudo git status", "no form is for sudo"},
		{"command git status", "command is never permitted"},
		{"exec git status", "exec is never permitted"},
		{"eval 'git status'", "eval is never permitted"},
		{". ./x", ". is never permitted"},
		{"alias git=x; git status", "alias is never permitted"},
		{"hash -p /tmp/x git; git status", "hash is never permitted"},
		{"noglob git status", "noglob is never permitted"},
		{"- git status", "- is never permitted"},
		{"xargs git status", "no form is for xargs"},
		{"sh -c 'git status'", "no form is for sh"},
		// Another command beside one of the list.
		{"git status; rm -r .", "no form is for rm"},
		{"git status && curl x", "no form is for curl"},
		{"git status || sh", "no form is for sh"},
		{"git status\nrm x", "no form is for rm"},
		{"git log | sh", "no form is for sh"},
		{"git log | tee x", "no form is for tee"},
		{"git log | cat", "cat may not read what another command writes"},
		{"echo x | git commit -m x", "git commit may not read what another command writes"},
		{"echo x | ./scripts/check.sh", "./scripts/check.sh may not read what another command writes"},
		{"cd / && ls", "cd is permitted only to the absolute path"},
		{"cd .. && ls", "cd is permitted only to the absolute path"},
		{"cd && ls", "cd is permitted only to the absolute path"},
		{"cd - && ls", "cd is permitted only to the absolute path"},
		{"cd -P /srv/shop", "cd is permitted only to the absolute path"},
		{"cd /srv/shop/../x", "cd is permitted only to the absolute path"},
		{"cd /srv/shop | ls", "cd is permitted only to the absolute path"},
		{"cd /home/ann/bob/src/shop", "cd is permitted only to the absolute path"},
		{"pushd /srv/shop", "pushd is never permitted"},
		{"cd /srv/shop/web && ./scripts/check.sh", "a program with a relative path runs only in a directory that is listed"},
		{"./scripts/check.sh; cd /srv/shop/web; ./scripts/check.sh", "a program with a relative path runs only in a directory that is listed"},
		{"test -v 'a[$(rm x)]'", "test is never permitted"},
		{"printf -v PATH /tmp", "printf is never permitted"},
		// What is not plain.
		{"GIT_PAGER=./x git log", "the command sets a variable"},
		{"PATH=/tmp git status", "the command sets a variable"},
		{"LD_PRELOAD=/tmp/x.so ls", "the command sets a variable"},
		{"PAGER=x", "the command sets a variable"},
		{"export GIT_PAGER=x; git log", "the command has more than simple commands"},
		{"git log $(rm x)", "the command has a $ outside of single quotes"},
		{"git log `rm x`", "the command has a backquote"},
		{`git commit -m "$(rm x)"`, "the command has a $ outside of single quotes"},
		{"git commit -m \"`rm x`\"", "the command has a backquote"},
		{"git log $X", "the command has a $ outside of single quotes"},
		{"git log ${X:-y}", "the command has a $ outside of single quotes"},
		{"git log $'\\x2d-output'", "the command has a $ outside of single quotes"},
		{`git log $"x"`, "the command has a $ outside of single quotes"},
		{"ls > /etc/passwd", "the command has a redirect"},
		{"ls 2>x", "the command has a redirect"},
		{"cat < /etc/shadow", "the command has a redirect"},
		{"cat <<E\nx\nE", "the command has a redirect"},
		{"cat <<<x", "the command has a redirect"},
		{"git diff <(rm x)", "the command has a redirect"},
		{"ls >| x", "the command has a redirect"},
		{"git status &", "the command runs something in the background"},
		{"git status & rm x", "the command runs something in the background"},
		{"ls |& wc -l", "the command joins commands by something else"},
		{"ls *", "the command has a glob (*) outside of quotes"},
		{"ls src/?", "the command has a glob (?) outside of quotes"},
		{"ls [a]", "the command has a bracket outside of quotes"},
		{"ls {a,/etc}", "the command has a brace outside of quotes"},
		{"cat ~/x", "the command has a tilde outside of quotes"},
		{"cat =ls", "the command has a word that begins with =, which zsh expands"},
		{"cat \\-n", "the command has a backslash outside of single quotes"},
		{"git sta\\\ntus", "the command has a backslash outside of single quotes"},
		{"ls # rm", "the command has a # outside of quotes"},
		{"! git status", "the command has a ! outside of single quotes"},
		{"git commit -m \"!x\"", "the command has a ! outside of single quotes"},
		{"(git status)", "the command has a parenthesis outside of quotes"},
		{"{ git status; }", "the command has a brace outside of quotes"},
		{"git() { rm x; }; git status", "the command has a parenthesis outside of quotes"},
		{"function git { rm x; }", "the command has a brace outside of quotes"},
		{"if git status; then rm x; fi", "the command has more than simple commands"},
		{"while git status; do rm x; done", "the command has more than simple commands"},
		{"for x in a; do rm x; done", "the command has more than simple commands"},
		{"case a in a) rm x;; esac", "the command has a parenthesis outside of quotes"},
		{"[[ -f x ]] && ls", "the command has a bracket outside of quotes"},
		{"time git status", "the command has more than simple commands"},
		{"coproc git status", "the command"},
		{"repeat 3 git status", "the command has a word that a shell reserves"},
		{"git commit -m 'x", "the command has a quote that does not end"},
		{"git commit -m 'it''s'", "the command has quotes that shells read differently"},
		{"git status\x00; rm x", "U+0000"},
		{"git status\rrm x", "U+000D"},
		{"git status\u2028rm x", "U+2028"},
		{"git commit -m '\u202etxt'", "the command has a character that does not show (U+202E)"},
		{"git commit -m 'a\u200bb'", "the command has a character that does not show (U+200B)"},
		{"git commit -m '\x1b[2J'", "U+001B"},
		{"git\u00a0status", "U+00A0"},
		{"git log \uff0d\uff0doutput=x", "the command has a character outside of quotes that is not ASCII (U+FF0D)"},
		{"git commit -m 'a\xffb'", "the command has a replacement character"},
		{"", "the command is empty"},
		{" \n", "the command is empty"},
		{";", "the command is not a program"},
		{"git status |", "the command is not a program"},
		{"&& git status", "the command is not a program"},
		{"git commit -m '" + strings.Repeat("x", 20_000) + "'", "at most 16384 are read"},
		{strings.Repeat("git status;", 100), "the command has more than 64 commands"},
		{strings.Repeat("(", 10_000), "the command has a parenthesis outside of quotes"},
		{strings.Repeat("$(", 5_000), "the command has a $ outside of single quotes"},
	}
	require.GreaterOrEqual(t, len(all), 100)
	for _, c := range all {
		r, why := ruled(t, p, bash(t, c.command, shop))
		require.IsType(t, approvals.Ask{}, r, c.command)
		require.Contains(t, why, c.why, c.command)
	}
}

// What else a call says counts too: where it runs, and every other argument.
func TestACommandIsPermittedOnlyWithTheRestOfItsCall(t *testing.T) {
	p := shellPolicy(t)
	for name, q := range map[string]approvals.Proposal{
		"it runs in a directory that is not listed":                                                bash(t, "ls", "/home/ann"),
		"it runs in a directory that is not listed ":                                               bash(t, "ls", "/home/ann/src/shop/../../.ssh"),
		"it runs in a directory that is not listed  ":                                              bash(t, "ls", "home/ann/src/shop"),
		"it runs in a directory that is not listed   ":                                             call("Bash", `{"command":"ls"}`),
		"it runs in a directory that is not listed    ":                                            call("Bash", `{"command":"ls","cwd":["/srv/shop"]}`),
		"the call has an argument that is not listed under other_args":                             bash(t, "ls", shop, "dangerouslyDisableSandbox", true),
		"the call has an argument that is not listed under other_args ":                            bash(t, "ls", shop, "run_in_background", true),
		"the call has an argument that is not listed under other_args  ":                           bash(t, "ls", shop, "Command", "rm x"),
		"a program with a relative path runs only in a directory that is listed, and not below it": bash(t, "./scripts/check.sh", shop+"/web"),
		"the arguments could not be read":                                                          call("Bash", `{"command":"rm x","command":"ls","cwd":"/srv/shop"}`),
		"the argument command is missing, or is not text":                                          call("Bash", `{"cwd":"/srv/shop"}`),
		"the argument command is missing, or is not text ":                                         call("Bash", `{"command":["ls"],"cwd":"/srv/shop"}`),
		"the argument command is missing, or is not text  ":                                        call("Bash", `{"command":null,"cwd":"/srv/shop"}`),
		"the argument command is missing, or is not text   ":                                       call("Bash", `{"Command":"ls","cwd":"/srv/shop"}`),
	} {
		r, why := ruled(t, p, q)
		require.IsType(t, approvals.Ask{}, r, name)
		require.Equal(t, strings.TrimSpace(name), why)
		require.Equal(t, "It runs on a laptop.", r.(approvals.Ask).Why, "it is asked as what no rule matches")
	}
}

func TestExplanationsOfCommandsHoldNoValues(t *testing.T) {
	p := shellPolicy(t)
	for _, command := range []string{
		"git log --password=hunter2", "mysql -phunter2", "git log -phunter2", "git push origin hunter2", "git show hunter2",
		"hunter2hunter2hunter2hunter2hunter2hunter2hunter2 x", "git log $hunter2", "git log -n hunter2",
	} {
		q := bash(t, command, shop)
		require.NotContains(t, p.Explain(t.Context(), q).Text(), "hunter2", command)
	}
}
