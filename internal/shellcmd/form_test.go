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

// What stands behind a program that is not known is read as if it stood alone: its flags,
// refspecs, versions, dashes and shortened subcommands.
func TestWhatAnArgumentNamesIsReadLikeACommand(t *testing.T) {
	s := shellcmd.Sought{{"rm", "-rf"}, {"git", "push", "--force"}, {"git", "tag"}, {"pip", "install"}, {"npm", "publish"}}
	for _, program := range []string{
		"rm -fr x", "rm -r -f x", "rm --recursive --force x", "/bin/rm -rfv x", "git push -f", "git push origin +main", "git push --mirror",
		"git-tag x", "/usr/lib/git-core/git-push -f", "git git-tag", "pip3 install x", "pip3.12 install x", "npm pub", "npm.cmd publish",
	} {
		for _, by := range []string{"rlwrap %", "pkexec %", "poetry run %", "watchmedo shell-command '%'"} {
			require.Equal(t, shellcmd.May, s.In(read(t, strings.ReplaceAll(by, "%", program))), "%s of %s", by, program)
		}
	}
	for _, program := range []string{
		"rlwrap rm -r x", "rlwrap git push origin main", "poetry run pip3 list", "rlwrap npm test", "gh pr create --title 'git push'", "poetry run git log -f", "npx eslint -f x rm",
	} {
		require.Equal(t, shellcmd.Absent, s.In(read(t, program)), program)
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
		"echo 'syscmd(x)' | m4", "m4", "echo '!x' | dc", "echo '!x' | ftp", "echo '!x' | sftp h", "lftp", "echo 'exec x' | wish8.6", "echo '!x' | telnet", "echo x | irb3.1", "jshell",
		"make --eval x", "make SHELL=x", "make 'ARGS=a; r\"\"m x'", "git rebase -x x", "git rebase --exec x", "git submodule foreach x", "git bisect run x", "git clone ext::x",
		"git filter-branch --tree-filter x", "git difftool -x y", "git config alias.x " + spelled, "git config core.pager x", "git config filter.a.clean x", "git clone -c core.fsmonitor=x a",
		"sg root -c x", "rlwrap bash", "pkexec sh", "fakeroot -- sh", "poetry run python -c x", "uv run bash -c x", "mise exec -- sh -c x", "direnv exec . perl -e x", "bundle exec ruby -e x",
		"ip netns exec n sh", "npx -c x", "npm exec --call x", "nix-shell --run x", "entr -s x", "hyperfine x", "watchexec x", "nodemon -x y", "mosh h -- x", "rsh h x", "sshpass -p x ssh h y",
		"vagrant ssh -c x", "gcloud compute ssh h --command x", "adb shell x", "wsl x", "ansible all -m shell -a x", "socat a SYSTEM:x", "nc -e x h", "ncat --sh-exec x h",
		"xterm -e x", "man -P x ls", "pdflatex --shell-escape x", "fzf --preview x", "svn diff --diff-cmd x", "hg --config alias.x=y x", "apt-get -o A::Pre-Invoke::=x update", "rpm --eval '%(x)'",
		"tcpdump -z x -w f", "rename 's/a/x/e' f", "mongosh --eval x", "elixir -e x", "julia -e x", "pypy3 -c x", "R -e x", "nu -c x", "rbash -c x", "bash5 -c x", "zsh-5.9 -c x", "deno eval x",
		"jruby -e x", "jython -c x", "bpython -c x", "ghci-9.4 -e x", "kotlin -e x", "clj -e x", "octave-cli --eval x", "rake -e x", "rake --execute-print x", "crystal eval x", "bash-static -c x",
		"clisp -x x", "pry --exec x", "rake --exec x", "mlr --prepipe x cat a", "mlr tee -p x a", "echo x | jruby", "echo x | jython3", "echo x | ghci", "octave-cli", "echo x | pry",
		`mlr -n put 'end{print | "r"."m x", 1}'`, "mlr -n put 'end{system(x)}'", "mlr put -f a b",
	} {
		require.Equal(t, shellcmd.May, s.In(read(t, program)), program)
	}
	for _, program := range []string{
		"vim a", "vi +12 a", "sed -n 5p a", "sed -i s/a/b/g a", "sed 's/e/f/' a", "sed -n '/start/,/end/p' a", "sed -e 1d a", "psql -c 'select 1'", "psql -l", "mysql -e 'show tables'", "sqlite3 a 'select 1'",
		"make test ARGS=-v", "make -C x all", "git rebase main", "git rebase -i main", "git submodule update --init", "git commit -m '!x'", "git config user.name x", "git clone https://h/x", "git checkout -b x",
		"gh pr view 12 -c", "gh pr view --comments", "npm test", "npm run build", "go build ./cmd", "golangci-lint run ./cmd", "cp -r x ./cmd", "python -m pytest -x", "man ls", "cargo build", "shellcheck install.sh",
		"npm run view", "poetry run pytest", "uv run python x.py", "grep -rn bash .", "cat /bin/sh", "apt-get update", "fzf -m", "rename s/a/b/ f", "nc h 80", "hg log", "svn diff", "xterm",
		"m4 a.m4", "sftp h", "telnet h 80", "rake test", "crystal build a.cr", "mlr --icsv put 'x > 1 || y > 2' a.csv", "mlr --icsv sort a.csv", "clj a.clj", "ghci a.hs",
	} {
		require.Equal(t, shellcmd.Absent, s.In(read(t, program)), program)
	}
}

// git takes its settings in front of the subcommand, also behind other flags and their
// values.
func TestAFlagInFrontOfTheSubcommandIsFoundBehindOthers(t *testing.T) {
	s := shellcmd.Sought{{"rm"}}
	for _, by := range []string{"-C .", "-C a -C b", "--git-dir .git", "--work-tree . --no-pager", "--git-dir=.git", "--namespace x", "--shallow-file f"} {
		for _, program := range []string{"-c alias.x='!r\"\"m' x", "-p log", "--paginate log", "--config-env alias.x=E x", "--exec-path=/x log"} {
			require.Equal(t, shellcmd.May, s.In(read(t, "git "+by+" "+program)), "%s %s", by, program)
		}
		for _, program := range []string{"log -c -p", "switch -c x", "commit -c HEAD", "diff -p"} {
			require.Equal(t, shellcmd.Absent, s.In(read(t, "git "+by+" "+program)), "%s %s", by, program)
		}
	}
	require.Equal(t, shellcmd.May, s.In(read(t, "git merge-index -o rm -a")))
}

// A flag may stand in one word with others or be shortened, and a language has its own
// flags: what one takes for a text is the name of a file to another.
func TestATextIsToldFromAFileByTheProgramThatTakesIt(t *testing.T) {
	s := shellcmd.Sought{{"rm"}, {"git", "push"}}
	for _, program := range []string{
		"git rebase -ix x main", "git difftool -yx y", "git difftool --e y", "git clone -u x a b", "git clone -qu x a b", "git clone --conf a=b x", "git grep -nOx a",
		"git config pager.log x", "git config interactive.diffFilter x", "git config url.ext::x.insteadOf y", "git config core.alternateRefsCommand x",
		"tar -xI x -f a", "tar xIf x a", "rsync -ae x a b", "curl -sK x", "fdfind -Hx x", "wget -qe x", "scp -qS x a b",
		"make --eva=x", "make -sE x", `make 'CC=r""m x'`, "echo x | make -f -", "just --command x", "vim -nc x", "vim.basic -c x", "emacs --ev x", "man -aP x ls",
		"psql -o '|x'", `psql -c '\g (format=csv) |x'`, "psql -c '\\set a `x`'", "sqlite3 a .sy", "sqlite3 a '.she x'", `sqlite3 a "select edit('','x')"`,
		"perl -0777ne x a", "perl '-MPOSIX;x' a", "ruby -W0e x", "php -B x", "php -R x", "bun exec x", "node --import data:x", "node inspect -e x", "python -m timeit x", "python x -m y; python -mtimeit x",
		"npm explore a -- x", "npm pkg set scripts.x=y", "yarn exec x", "lldb-15 x", "rename 's/a/b/e' f", "rename 'do \"x\"' f",
	} {
		require.Equal(t, shellcmd.May, s.In(read(t, program)), program)
	}
	for _, program := range []string{
		"tar -cf site.tar Images", "tar cf out.tar Files", "cp out.tar Files", "rsync -av out.tar Files", "curl -s x | tar -xz -C /opt/node", "cat x | gpg --dearmor -o /usr/share/keyrings/mongo", "cat a | tee php",
		"cat x | bat -l ruby", "cat x | pygmentize -l python", "gh pr create --title x --body '| a | b |'", "gh pr comment 1 --body '!important'", "glab mr view '!12'", "npm test -- --grep='metadata: x'",
		"npx jest --testNamePattern='metadata: x'", "make -C src/fd/ all", "make build/fd/foo.o",
		"python -m pip install -r requirements.txt", "python -m pip install -e .", "python x.py -c conf", "python -mpytest -rs", "python -mhttp.server", "python -Wignore x.py", "python3 -E x.py",
		"python3 manage.py runserver -e", "python --version", "node server.js -p 3000", "node -r dotenv/config x.js", "node --test", "npm test -- --runInBand", "npm i -E x", "npx -p typescript tsc",
		"pnpm -r build", "npm run e2e -- -p chromium", "npm ci --prefer-offline", "ruby -Itest test/x.rb", "ruby -Ilib -rjson x.rb", "perl -Ilib x.pl", "perl -c x.pl", "php -dmemory_limit=-1 x.php",
		"php artisan migrate -r", "swift build -c release", "man bash", "man rm", "cd sh", "rename s/a/b/ file", "make VERSION=1.2.3 all", "make -CSERVER -j4 GOFLAGS=-p=2",
		`psql -c "select a||b from t"`, `psql -c '\dt'`, "psql -Upgf -hdf1 -dconf", "sqlite3 a .schema", "sqlite3 a .show", "sqlite3 a 'select t.output from t'", `git commit -am "Old"`, "git log -p", "git clone -b x --depth 1 https://h/x",
		"git config --get user.email", "git rebase --empty=drop main", "git rebase -Xours main", "vim -R a", "vim -p a b", "tar czf LICENSE.tgz LICENSE", "tar -xzf a -C FOO", "rsync -avz --delete a b",
		"curl -sSL -XPOST https://h", "curl -HKey:a https://h", "wget -qO- https://h", "fd -etxt", "deno run -A x.ts", "bun test",
	} {
		require.Equal(t, shellcmd.Absent, s.In(read(t, program)), program)
	}
}

// Programs that were seen to run a text in a shell, or a program that they name, by an
// argument that looks like a file or by a flag in another spelling.
func TestAnArgumentThatWasSeenToRunAProgramIsFound(t *testing.T) {
	s := shellcmd.Sought{{"rm"}}
	for _, program := range []string{
		"go build --toolexec=rm ./...", "go build --toolexec x ./...", "go fix -fixtool=rm ./...", "go env -w GOFLAGS=-toolexec=x", "go env -w GOAUTH=x",
		"ed '!x'", "ed -s '!x' f", "socat 'PIPE!!SYSTEM:x' -", "sftp -oProxyCommand=x h", "sftp -D x", "scp -OoProxyCommand=x f h:b", "scp -sD x f h:b", "ssh-copy-id -foProxyCommand=x h",
		"dpkg --pre-invoke=x -i a", "dpkg --post-invoke x -i a", "apt-get -qqyo A::Pre-Invoke::=x update", "dpkg-architecture -c x", "gcc -wrapper sh,-c,x a.c", "c++ -wrapper sh,-c,x a.c",
		"gs -sDEVICE=ps2write '-sOutputFile=|x' a", "gs -o '%pipe%x' a", "pee x", "mispipe x true", "niceload x", "debconf x", "echo x | erb", "echo x | mongosh", "echo x | sqlplus /nolog", "echo x | poetry run python", "echo x | uv run python3.12 -", "echo x | uv run -", "echo x | rlwrap -a node", "echo x | npx tsx",
		"npm test --node-options=--import=data:text/javascript,x", "npm --node-options '-r fs --import=data:,x' test", "gh alias set x '!r\"\"m'", "gh alias set --shell x y", "git submodule--helper foreach x", "docker-compose run x",
		"perl '-w -ex'", "perl '-n -e' x f", "node --import 'DATA:text/javascript,x' f", "tcpdump -nz x -w f", "printf x | make -f /proc/self/fd/0", "printf x | groff -U", "printf x | troff -abU", "pic -U a", "tar cbIf 20 x a f", "tar Icf x a f", "bsdtar cFf x a f", "nc.traditional -c x h 1", "editor +x f", "pod2html '|x'", "debconf-set-selections 'x|'", "pl2pm f ' | x'",
		"python3.13t -c x", "python3.7m -c x", "python3-dbg -c x", "perl5.36-x86_64-linux-gnu -e x", "php-cgi -r x", "php8.2 -r x", "texlua -e x", "x86_64-linux-gnu-gcc-12 -wrapper sh,-c,x a.c",
		"rksh93 -c x", "rmksh -c x", "mksh-static -c x", "bash-static -c x", "ysh -c x", "pwsh-preview -c x", "echo x | python3.13t",
	} {
		require.Equal(t, shellcmd.May, s.In(read(t, program)), program)
	}
	for _, program := range []string{
		"go build -o x ./...", "go env GOFLAGS", "go env -w GOPROXY=direct", "ed a", "sftp -P 22 h", "sftp -b a h", "scp -rpq a h:b", "scp -P22 a h:b", "dpkg -i a.deb", "dpkg --print-architecture",
		"apt-get install -y --no-install-recommends a", "apt-get -y -t stable-backports install a", "gcc -Wall -o a a.c", "gs -sDEVICE=pdfwrite -o a.pdf a.ps", "perl -w x.pl", "perl --version", "tcpdump -n -i eth0",
		"column -t -s '|' a", "groff -man -Tutf8 a.1", "npm run data:import", "npm test --node-options=--max-old-space-size=4096", "gh pr list -s open", "ps aux | grep node", "cat a | tee b", "poetry run python x.py", "uv run python x.py", "ls | wc -l", "tar cf a LICENSE configFile", "tar -cf a tarFiles", "tar cbf 20 a FILES", "paste -d '|' a b", "yq '.a | .b' c.yaml", "dpkg-architecture -qDEB_HOST_ARCH", "ssh-copy-id -i key.pub h", "python3.13t x.py", "gcc-12 -c a.c",
	} {
		require.Equal(t, shellcmd.Absent, s.In(read(t, program)), program)
	}
	require.Equal(t, shellcmd.Runs, shellcmd.Sought{{"python"}}.In(read(t, "python3.13t x.py")))
	require.Equal(t, shellcmd.Absent, shellcmd.Sought{{"npd"}, {"gid"}}.In(read(t, "npm id; git id")))
}

// A command may name many programs, and what follows each may be long. Some of these took
// a minute when all of it was read again behind each name.
func TestACommandOfManyProgramsIsReadOnce(t *testing.T) {
	s := shellcmd.Sought{{"rm", "-rf"}, {"git", "push", "--force"}}
	for program, text := range map[string]string{
		"psql ": `\a`, "make ": "=a", "sqlite3 ": ".a\n", "git config ": ".=a", "sed -e p ": "s/[^/]*/x/;", "rename ": "s|a", "git push ": "git push;",
	} {
		many := "x " + strings.Repeat(program, 900/strings.Count(program, " ")) + "'" + strings.Repeat(text, 6000/len(text)) + "'"
		commands, err := shellcmd.Read(many)
		require.NoError(t, err)
		require.NotEmpty(t, s.In(commands), program)
	}
}

// The command e of sed needs no space behind it, and the flag e of s may have others
// beside it and any delimiter in front of it.
func TestASedScriptIsReadByItsCommands(t *testing.T) {
	s := shellcmd.Sought{{"rm"}}
	for _, script := range []string{
		`1er""m x`, "e", "1e", "$!e x", "/x/Ie x", `\,x,ex`, "{e x", "1{p}e x", "p;ex", "p\ne", "s/a/b/e", "s/a/b/;1ex", "s/a/x/ew f", "sxaxbxe", "s/a/b/e#c", "s/[[:alpha:]/]/#/e", "s/a/b/2e",
		`s/a/b\/e`, "s/[/]/x/e", "y/a/b/;e", "a x\ne", "#n\ne", ": a\ne", "k", "s/a/b",
	} {
		for _, by := range []string{"sed '%'", "sed -n '%' f", "sed -e p -e '%'", "sed -ne '%'", "sed -e'%'", "sed --expression='%' f", "sed --exp '%' f", "sed p -e '%'", "sed -i '' '%' f", "sed -- '%'", "rlwrap gsed '%'"} {
			require.Equal(t, shellcmd.May, s.In(read(t, strings.ReplaceAll(by, "%", script))), "%s with %s", by, script)
		}
	}
	for _, script := range []string{
		"", "p", "1,20p;30q", "/^#/d; /^$/d", "/a/,/b/{s/x/y/p;d}", `s/([0-9]+)\.([0-9]+)/\2/g;t;d`, "/foo/a bar", `$!N;s/\n/ /`, `:a;N;$!ba;s/\n/ /g`, "s#/usr#/opt#", `\%a%d`, "1~2d", "1!G;h;$!d",
		"s/[^/]*$//", `s/[^\/]*$//`, "s/[]/]/x/", "s/[[:space:]]*$//", "y/abc/xyz/", "$=", "/a/!s/b/c/", "/x/w out", "s_a_b_", "s| e | f |", "s/e/e/", "0,/e/d", "/e/,+3d", "p # e", "i e",
	} {
		require.Equal(t, shellcmd.Absent, s.In(read(t, "sed -i.bak '"+script+"' key.pem src/me")), script)
		require.Equal(t, shellcmd.Absent, s.In(read(t, "sed -nE -e '"+script+"' -e p key.pem")), script)
	}
	for _, program := range []string{"sed -f f", "sed --fil=f", "sed -sf f", "sed --follow-symlinks -i s/a/b/e a"} {
		require.Equal(t, shellcmd.May, s.In(read(t, program)), program)
	}
	require.Equal(t, shellcmd.Absent, s.In(read(t, "sed --follow-symlinks -i s/a/b/ a")))
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

// git has its subcommands as programs too, a version is a part of many names, and some
// programs take the beginning of a subcommand for it.
func TestAProgramIsKnownByItsOtherNames(t *testing.T) {
	s := shellcmd.Sought{{"git", "push"}, {"npm", "publish"}, {"pip", "install"}, {"python3", "x.py"}, {"git", "submodule", "foreach"}}
	for program, want := range map[string]shellcmd.Found{
		"/usr/lib/git-core/git-push origin main": shellcmd.Runs, "git-push": shellcmd.Runs, "env git-push": shellcmd.May,
		"git-submodule foreach x": shellcmd.Runs, "git-rebase -x 'r\"\"m' main": shellcmd.May,
		"pip3 install x": shellcmd.Runs, "/usr/bin/pip3.12 install x": shellcmd.Runs, "python x.py": shellcmd.Runs, "sudo pip3 install x": shellcmd.Runs,
		"npm pub": shellcmd.May, "npm --access public publis": shellcmd.May, "npm.cmd publish": shellcmd.Runs, "NPM.CMD publish": shellcmd.Runs,
		"./npm-v10.2 publish": shellcmd.Runs, "/opt/npm_10.2.1_linux_amd64 publish": shellcmd.Runs, "npm-v10-darwin-arm64 publish": shellcmd.Runs, "npm-view publish": shellcmd.Absent,
		"git-lfs ls-files": shellcmd.Absent, "git-log": shellcmd.Absent, "git p": shellcmd.Absent, "npm test": shellcmd.Absent, "npm run build": shellcmd.Absent,
		"pip3 list": shellcmd.Absent, "python3 y.py": shellcmd.Absent, "pipx list": shellcmd.Absent, "github push": shellcmd.Absent,
	} {
		require.Equal(t, want, s.In(read(t, program)), program)
	}
	require.Equal(t, shellcmd.Absent, shellcmd.Sought{{"7z"}, {"rm"}}.In([]shellcmd.Command{{Argv: []string{"7"}}}))
}

// People look at pods and containers all day, and that runs nothing.
func TestALauncherThatOnlyLooksRunsNothing(t *testing.T) {
	s := shellcmd.Sought{{"kubectl", "delete"}, {"rm"}, {"docker", "push"}}
	for program, want := range map[string]shellcmd.Found{
		"kubectl get pods -n prod": shellcmd.Absent, "kubectl logs -f web": shellcmd.Absent, "docker ps -a": shellcmd.Absent, "podman inspect x": shellcmd.Absent, "docker logs web | tail": shellcmd.Absent,
		"kubectl delete pod x": shellcmd.Runs, "kubectl get pods && kubectl delete pod x": shellcmd.Runs, "docker push x": shellcmd.Runs,
		"kubectl -n prod get pods": shellcmd.May, "kubectl exec web -- x": shellcmd.May, "kubectl get pods --kubeconfig=x": shellcmd.May, "kubectl get pods --kubeconfig x": shellcmd.May, "kubectl x": shellcmd.May, "kubectl edit pod x": shellcmd.May,
		"docker run x": shellcmd.May, "docker -H x ps": shellcmd.May, "docker --config x ps": shellcmd.May, "docker compose ps": shellcmd.May, "docker": shellcmd.May, "sudo docker ps": shellcmd.May, "kubectl get rm": shellcmd.May,
	} {
		require.Equal(t, want, s.In(read(t, program)), program)
	}
}

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
