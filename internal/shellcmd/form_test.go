package shellcmd_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/shellcmd"
)

func read(tb testing.TB, program string) []shellcmd.Command {
	tb.Helper()
	commands, err := shellcmd.Read(program)
	require.NoError(tb, err, program)
	return commands
}

func mismatch(tb testing.TB, f shellcmd.Form, program string) string {
	tb.Helper()
	return shellcmd.Permitted{Forms: []shellcmd.Form{f}}.Mismatch(read(tb, program), "/x")
}

func TestTheZeroFormPermitsNothing(t *testing.T) {
	require.NotEmpty(t, mismatch(t, shellcmd.Form{}, "ls"))
	require.NotEmpty(t, shellcmd.Permitted{}.Mismatch(read(t, "ls"), "/x"))
	require.NotEmpty(t, shellcmd.Permitted{Forms: []shellcmd.Form{{Run: []string{"ls"}}}}.Mismatch(nil, "/x"))
	one := shellcmd.Form{Run: []string{"ls"}, Operands: []shellcmd.Value{{}}, Max: 1}
	require.NotEmpty(t, mismatch(t, one, "ls a"), "an operand of which nothing is said")
	require.Empty(t, mismatch(t, one, "ls"))
	require.NotEmpty(t, mismatch(t, shellcmd.Form{Run: []string{"eval"}, Max: 1, Operands: []shellcmd.Value{{Is: []string{"x"}}}}, "eval x"))
}

func TestAPathIsUnderADirectoryByItsLettersAlone(t *testing.T) {
	for _, c := range []struct {
		dir, path string
		is        bool
	}{
		{".", "a", true},
		{".", "./a/b.c", true},
		{".", ".", true},
		{".", "./", true},
		{".", "a/", true},
		{".", "./...", true},
		{"src", "src", true},
		{"src", "src/a-b+c,d@e", true},
		{"src", "./src/a", true},
		{"/", "/etc", true},
		{"/a", "/a/b", true},
		{"/home/*/x", "/home/ann/x/y", true},
		{"a/.b", "a/.b/c", true},
		{"größer", "größer/日本", true},
		{".", "", false},
		{".", "..", false},
		{".", "/a", false},
		{".", "a/../b", false},
		{".", "a//b", false},
		{".", "a/./b", false},
		{".", "././a", false},
		{".", ".git/x", false},
		{".", "a/.env", false},
		{".", "..a", false},
		{".", "a/....", false},
		{"src", "srcs", false},
		{"src", "s", false},
		{"src", "a/src", false},
		{"/a", "a", false},
		{"/a", "/ab", false},
		{"/a", "//a", false},
		{"/a", "/", false},
		{"/home/*/x", "/home/x", false},
		{"/home/*/x", "/home/a/b/x", false},
		{"/home/*/x", "/home/.a/x", false},
		{"/home/*/x", "/home/../x", false},
		{".", "~/a", false},
		{".", "a*", false},
		{".", "a?", false},
		{".", "a[b]", false},
		{".", "h:a", false},
		{".", "@a", false},
		{".", "+a", false},
		{".", "of=a", false},
		{".", "a b", false},
		{".", "a\nb", false},
		{".", "-a", false},
		{".", "a\\b", false},
		{".", "{a}", false},
		{".", "a%b", false},
	} {
		f := shellcmd.Form{Run: []string{"cat"}, Operands: []shellcmd.Value{{Under: []string{c.dir}}}, Min: 1, Max: 1}
		require.Equal(t, c.is, mismatch(t, f, "cat "+"'"+c.path+"'") == "", "%q under %q", c.path, c.dir)
		require.True(t, shellcmd.IsDirectory(c.dir), c.dir)
	}
	for _, dir := range []string{"", "..", "a/..", "/a//b", "a*", "/a/*b", "~", "a b", "a:b", "-a"} {
		require.False(t, shellcmd.IsDirectory(dir), dir)
	}
}

func TestAValueMatchesAsAWhole(t *testing.T) {
	re, err := shellcmd.Pattern("a|b")
	require.NoError(t, err)
	f := shellcmd.Form{Run: []string{"x"}, Values: map[string]shellcmd.Value{"-n": {Matches: re}, "--n=": {Matches: re}}}
	for program, is := range map[string]bool{
		"x -n a": true, "x -n b": true, "x --n=a": true, "x -n a --n=b": true,
		"x -n ab": false, "x -n c": false, "x -n 'a\n'": false, "x -na": false, "x -n=a": false, "x --n a": false, "x --n= a": false, "x --n": false, "x -n": false, "x --n=": false,
	} {
		require.Equal(t, is, mismatch(t, f, program) == "", program)
	}
	dash := shellcmd.Form{Run: []string{"x"}, Operands: []shellcmd.Value{{Matches: regexp.MustCompile(".*"), Is: []string{"-", "-y"}}}, Max: 2, Flags: []string{"--"}}
	for program, is := range map[string]bool{"x -": true, "x -y a": true, "x -- -y": true, "x -z": false, "x -- -z": false, "x -- --": false, "x a a a": false} {
		require.Equal(t, is, mismatch(t, dash, program) == "", program)
	}
}

// What is sought is found in any spelling that can be read, and what may hide it
// is said to.
func TestWhatIsSoughtIsFoundOrMayBeThere(t *testing.T) {
	s := shellcmd.Sought{{"rm"}, {"git", "push"}}
	for program, want := range map[string]shellcmd.Found{
		"ls": shellcmd.Absent, "git status": shellcmd.Absent, "echo rm": shellcmd.Absent, "rmdir x": shellcmd.Absent, "git switch -c x": shellcmd.Absent, "cd /x && make": shellcmd.Absent,
		"rm x": shellcmd.Runs, "/bin/rm x": shellcmd.Runs, "RM x": shellcmd.Runs, "./rm": shellcmd.Runs, "rm.exe x": shellcmd.Runs, "ls; rm x": shellcmd.Runs, "ls | rm": shellcmd.Runs,
		"git push": shellcmd.Runs, "git -C /x push --force": shellcmd.Runs, "git -c a=b push": shellcmd.Runs, "sudo rm x": shellcmd.Runs, "env -i A=b /bin/rm x": shellcmd.Runs,
		"find . -exec rm '{}' ';'": shellcmd.Runs, "xargs -n 1 rm": shellcmd.Runs, "command rm x": shellcmd.Runs, "exec git push": shellcmd.Runs, "timeout 5 git push": shellcmd.Runs,
		"sh -c 'rm x'": shellcmd.May, "eval 'rm x'": shellcmd.May, "ls | xargs": shellcmd.May, "sudo -s": shellcmd.May, ". ./x": shellcmd.May, "git -c alias.x=y x": shellcmd.May,
		"find . -exec x '{}' ';'": shellcmd.May, "tar -xf a --to-command=x": shellcmd.May, "alias ls=rm": shellcmd.May, "ssh h reboot": shellcmd.May,
		"tar -xf a --to-com=x": shellcmd.May, "tar -Ix -xf a": shellcmd.May, "rsync -essh a b": shellcmd.May, "git fetch --upload-p=x": shellcmd.May, "Rscript -e x": shellcmd.May,
		"python3.12 -Ic x": shellcmd.May, "perl -pe x y": shellcmd.May, "ls | python": shellcmd.May, "node": shellcmd.May, "gawk x": shellcmd.May, "php -r x": shellcmd.May,
		"python x.py": shellcmd.Absent, "python -m pytest": shellcmd.Absent, "printf %d 1": shellcmd.Absent, "printf %d 'a[1]'": shellcmd.May,
		"sh -c x; rm x": shellcmd.Runs, "rm x; sh -c x": shellcmd.Runs,
	} {
		require.Equal(t, want, s.In(read(t, program)), program)
	}
}

// No list of the programs that run others is complete. What names a program that is
// sought is not known to be harmless, unless it only takes text.
func TestWhatNamesASoughtProgramMayRunIt(t *testing.T) {
	s := shellcmd.Sought{{"rm"}, {"git", "push"}}
	for program, want := range map[string]shellcmd.Found{
		"rlwrap rm x": shellcmd.May, "eatmydata rm x": shellcmd.May, "proxychains4 /bin/rm x": shellcmd.May, "xvfb-run rm x": shellcmd.May,
		"firejail rm x": shellcmd.May, "bwrap --dev-bind / / rm x": shellcmd.May, "/lib64/ld-linux-x86-64.so.2 /bin/rm x": shellcmd.May,
		"start-stop-daemon --start --exec /bin/rm": shellcmd.May, "pkexec RM x": shellcmd.May, "sg root -c 'rm x'": shellcmd.May, "setpriv rm x": shellcmd.May,
		"prlimit rm x": shellcmd.May, "numactl rm x": shellcmd.May, "chronic rm x": shellcmd.May, "fakeroot rm x": shellcmd.May, "ls | entr rm x": shellcmd.Runs,
		"direnv exec . rm x": shellcmd.May, "nix-shell --run 'rm x'": shellcmd.May, "gosu u rm x": shellcmd.May, "tini -- rm x": shellcmd.May,
		"hyperfine 'rm x'": shellcmd.May, "uv run rm x": shellcmd.May, "poetry run git push": shellcmd.May, "bundle exec rm x": shellcmd.May,
		"npm exec -- rm x": shellcmd.May, "npx rm x": shellcmd.May, "pnpm dlx rm x": shellcmd.May, "mise exec -- git push -f": shellcmd.May, "conda run rm x": shellcmd.May,
		"git bisect run rm x": shellcmd.Runs, "git submodule foreach 'rm x'": shellcmd.May, "git rebase -x 'rm x' main": shellcmd.May, "git rebase -x 'git push' main": shellcmd.May,
		"git filter-branch --tree-filter 'rm x'": shellcmd.May, "git difftool -x rm": shellcmd.Runs, "git config alias.x '!rm x'": shellcmd.May, "git fetch 'ext::rm x'": shellcmd.May,
		"tar xIf 'rm x' a": shellcmd.May, "make SHELL=/bin/rm x": shellcmd.Runs, "sed -n '1e rm x' a": shellcmd.May, "vim -c '!rm x'": shellcmd.May, "man -P 'rm x' ls": shellcmd.May,
		"psql -c '\\! rm x'": shellcmd.May, "sqlite3 x '.shell rm x'": shellcmd.May, "apt-get -o x=rm update": shellcmd.May, "gh alias set x '!rm x'": shellcmd.May,
		"cp /bin/rm a && ./a x": shellcmd.May, "ln -s /bin/rm a": shellcmd.May, "wsl rm x": shellcmd.Runs, "socat x EXEC:rm": shellcmd.May, "nc -e rm": shellcmd.Runs,
		"launchctl submit -l x -- rm x": shellcmd.May, "dbus-run-session rm x": shellcmd.May, "i3-msg exec rm": shellcmd.May, "sftp '-oProxyCommand=rm x' h": shellcmd.May,
		"echo rm x": shellcmd.Absent, "grep -rn 'rm -rf' src": shellcmd.Absent, "git commit -m 'rm x'": shellcmd.Absent, "git log --grep 'git push'": shellcmd.Absent,
		"find . -name rm": shellcmd.Absent, "cat rm": shellcmd.Absent, "which rm": shellcmd.Absent, "rmdir farm": shellcmd.Absent, "npx eslint form": shellcmd.Absent,
		"poetry run git status": shellcmd.Absent, "git rebase main": shellcmd.Absent, "git submodule update": shellcmd.Absent,
	} {
		require.Equal(t, want, s.In(read(t, program)), program)
	}
}

// A text that a shell or an interpreter runs can spell a program in pieces, so whoever
// hands on such a text may run anything.
func TestWhoHandsATextToAShellMayRunAnything(t *testing.T) {
	s := shellcmd.Sought{{"rm"}, {"git", "push"}}
	const spelled = `'!r""m x'`
	for _, program := range []string{
		"vim -c " + spelled, "vi +" + spelled, "nvim --cmd " + spelled, "emacs --eval x", "ls | ed", "sed 1e a", "sed -i s/a/b/e a", "sed -n '$e r\"\"m'", "sed -f a",
		`psql -c '\! r""m x'`, `psql -c "copy a to program 'x'"`, `mysql -e '\! r""m'`, `sqlite3 a '.shell r""m'`, "duckdb -c '.system x'", "ls | psql", "dc -e '!x'",
		"make --eval x", "make SHELL=x", "make 'ARGS=a; r\"\"m x'", "git rebase -x x", "git rebase --exec x", "git submodule foreach x", "git bisect run x", "git clone ext::x",
		"git filter-branch --tree-filter x", "git difftool -x y", "git config alias.x " + spelled, "git config core.pager x", "git config filter.a.clean x", "git clone -c core.fsmonitor=x a",
		"sg root -c x", "rlwrap bash", "pkexec sh", "fakeroot -- sh", "poetry run python -c x", "uv run bash -c x", "mise exec -- sh -c x", "direnv exec . perl -e x", "bundle exec ruby -e x",
		"ip netns exec n sh", "npx -c x", "npm exec --call x", "nix-shell --run x", "entr -s x", "hyperfine x", "watchexec x", "nodemon -x y", "mosh h -- x", "rsh h x", "sshpass -p x ssh h y",
		"vagrant ssh -c x", "gcloud compute ssh h --command x", "adb shell x", "wsl x", "ansible all -m shell -a x", "socat a SYSTEM:x", "nc -e x h", "ncat --sh-exec x h",
		"xterm -e x", "man -P x ls", "pdflatex --shell-escape x", "fzf --preview x", "svn diff --diff-cmd x", "hg --config alias.x=y x", "apt-get -o A::Pre-Invoke::=x update", "rpm --eval '%(x)'",
		"tcpdump -z x -w f", "rename 's/a/x/e' f", "mongosh --eval x", "elixir -e x", "julia -e x", "pypy3 -c x", "R -e x", "nu -c x", "rbash -c x", "bash5 -c x", "zsh-5.9 -c x", "deno eval x",
	} {
		require.Equal(t, shellcmd.May, s.In(read(t, program)), program)
	}
	for _, program := range []string{
		"vim a", "vi +12 a", "sed -n 5p a", "sed -i s/a/b/g a", "sed 's/e/f/' a", "sed -n '/start/,/end/p' a", "sed -e 1d a", "psql -c 'select 1'", "psql -l", "mysql -e 'show tables'", "sqlite3 a 'select 1'",
		"make test ARGS=-v", "make -C x all", "git rebase main", "git rebase -i main", "git submodule update --init", "git commit -m '!x'", "git config user.name x", "git clone https://h/x", "git checkout -b x",
		"gh pr view 12 -c", "gh pr view --comments", "npm test", "npm run build", "go build ./cmd", "golangci-lint run ./cmd", "cp -r x ./cmd", "python -m pytest -x", "man ls", "cargo build", "shellcheck install.sh",
		"npm run view", "poetry run pytest", "uv run python x.py", "grep -rn bash .", "cat /bin/sh", "apt-get update", "fzf -m", "rename s/a/b/ f", "nc h 80", "hg log", "svn diff", "xterm",
	} {
		require.Equal(t, shellcmd.Absent, s.In(read(t, program)), program)
	}
}

func TestAFormThatCanRunOtherProgramsIsWarnedOf(t *testing.T) {
	flags := func(run string, flags ...string) shellcmd.Form {
		return shellcmd.Form{Run: words(run), Flags: flags}
	}
	for _, f := range []shellcmd.Form{
		flags("sh"), flags("env"), flags("/usr/bin/env"), flags("xargs"), flags("sudo apt"), flags("find", "-exec"), flags("git", "-c"), flags("git -c log"), flags("git config"),
		flags("make"), flags("npm run"), flags("ssh"), flags("tar", "--to-command"), flags("awk"), flags("sed"), flags("less"), flags("python3.12"), flags("go run"), flags("go test", "-exec"),
		{Run: words("rsync"), Values: map[string]shellcmd.Value{"-e": {}}},
		{Run: words("curl"), Values: map[string]shellcmd.Value{"--config=": {}}},
		{Run: words("tar"), Values: map[string]shellcmd.Value{"--to-command=": {}}},
		{Run: words("psql"), Piped: true},
		{Run: words("git"), Operands: []shellcmd.Value{{Is: words("log")}}},
	} {
		require.NotEmpty(t, f.Warnings(), "%v", f)
	}
	for _, f := range []shellcmd.Form{flags("git status", "-s"), flags("git log", "-p", "-c"), flags("ls", "-la"), flags("go test", "-race"), flags("find", "-type"), flags("tar", "-tf"), {}} {
		require.Empty(t, f.Warnings(), "%v", f)
	}
	for _, name := range []string{"eval", ".", "source", "exec", "command", "alias", "cd", "if", "time", "noglob", "-", "test", "printf", "jobs", "ulimit"} {
		require.NotEmpty(t, shellcmd.Forbidden(name), name)
	}
	require.Empty(t, shellcmd.Forbidden("git"))
}

func words(s string) []string { return regexp.MustCompile(" ").Split(s, -1) }

// A flag can be written in another way, and what is not the flag in its own letters cannot
// be judged.
func TestAFlagInOtherLettersMayBeTheOneThatIsSought(t *testing.T) {
	s := shellcmd.Sought{{"rm", "-rf"}, {"git", "push", "--force"}}
	for program, want := range map[string]shellcmd.Found{
		"rm -rf a": shellcmd.Runs, "git push origin --force": shellcmd.Runs,
		"rm -fr a": shellcmd.May, "rm -r -f a": shellcmd.May, "rm -Rf a": shellcmd.May, "rm -rfv a": shellcmd.May, "ls && rm a -f -r": shellcmd.May,
		"rm --recursive --force a": shellcmd.May, "rm -r --forc a": shellcmd.May,
		"git push -f": shellcmd.May, "git push --forc": shellcmd.May, "git -C a push --force-with-lease": shellcmd.May, "git push -uf a b": shellcmd.May,
		"rm a": shellcmd.Absent, "rm -r a": shellcmd.Absent, "rm -f a": shellcmd.Absent, "rm rf": shellcmd.Absent, "rm -- a": shellcmd.Absent,
		"git push": shellcmd.Absent, "git push -u origin main": shellcmd.Absent, "git fetch --force": shellcmd.Absent, "ls -rf": shellcmd.Absent,
	} {
		commands, err := shellcmd.Read(program)
		require.NoError(t, err)
		require.Equal(t, want, s.In(commands), program)
	}
	require.Equal(t, shellcmd.Absent, shellcmd.Sought{{"cat", "-"}, {"cat", "--"}}.In([]shellcmd.Command{{Argv: []string{"cat", "-n"}}}))
}

func TestWordsOfAPushMayStandForItsFlags(t *testing.T) {
	force, remove := shellcmd.Sought{{"git", "push", "--force"}}, shellcmd.Sought{{"git", "push", "--delete"}}
	for argv, want := range map[string][2]shellcmd.Found{
		"git push origin main":            {shellcmd.Absent, shellcmd.Absent},
		"git push origin main:main":       {shellcmd.Absent, shellcmd.Absent},
		"git push origin :":               {shellcmd.Absent, shellcmd.Absent},
		"git log +main :main":             {shellcmd.Absent, shellcmd.Absent},
		"git push origin +main":           {shellcmd.Runs, shellcmd.Absent},
		"git -C /a push origin +main:old": {shellcmd.Runs, shellcmd.Absent},
		"sudo git push origin +main":      {shellcmd.Runs, shellcmd.May},
		"git push origin :main":           {shellcmd.Absent, shellcmd.Runs},
		"git push origin +:main":          {shellcmd.Runs, shellcmd.Runs},
		"git push --mirror":               {shellcmd.Runs, shellcmd.Runs},
	} {
		c := []shellcmd.Command{{Argv: strings.Fields(argv)}}
		require.Equal(t, want, [2]shellcmd.Found{force.In(c), remove.In(c)}, argv)
	}
}
