package shellcmd

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// builtins change what the commands after them mean, or run a text as a program,
// so no form may list them. cd is permitted by [Permitted.Directories].
var builtins = setOf(`. source eval exec command builtin alias unalias set unset shopt setopt unsetopt hash rehash
	enable disable export readonly declare typeset local integer float let read mapfile readarray getopts trap
	bind complete compgen compopt fc history cd pushd popd dirs chdir umask emulate autoload zmodload zle functions
	noglob nocorrect - coproc vared sched zcompile private getln pushln r jobs wait ulimit limit unlimit
	unfunction unhash bindkey zparseopts zregexparse zstyle zformat`)

// evaluating take a text among their arguments for arithmetic, in zsh and in part
// in bash, and arithmetic may run programs: test -v 'a[$(rm x)]'.
var evaluating = setOf(`test printf print exit return break continue shift logout bye`)

// Forbidden says why no form may list a program, or nothing if one may.
func Forbidden(program string) string {
	switch {
	case program == "cd":
		return "list directories under cwd instead: then cd to one of them is permitted"
	case builtins[program]:
		return "the shell itself runs it, and what comes after it may mean something else then"
	case evaluating[program]:
		return "the shell itself runs it, and zsh may run programs that its arguments contain"
	case reserved[program]:
		return "it is a word that a shell reserves"
	}
	return ""
}

// launchers run the programs that their arguments, or what they read, name.
var launchers = setOf(`env sudo doas su runuser nohup nice ionice chrt taskset setsid timeout stdbuf unbuffer time
	xargs parallel watch script strace ltrace gdb lldb valgrind perf chroot unshare nsenter flock setarch
	systemd-run at batch crontab busybox toybox screen tmux expect ssh docker podman kubectl
	sh bash dash zsh ksh mksh ash fish csh tcsh pwsh powershell cmd`)

// interpreters run programs that they are given as a text or a file, or have a
// way out to a shell.
var interpreters = setOf(`python python2 python3 node deno bun perl ruby php lua luajit tclsh rscript osascript java jshell scala
	awk gawk mawk nawk sed ed ex vi vim nvim view emacs nano pico less more most man
	psql mysql mariadb sqlite3 mongosh redis-cli ftp sftp telnet nc ncat socat
	make gmake cmake ninja npm npx yarn pnpm pnpx uv uvx pipx pip pip3 cargo rake bundle gradle mvn ant just task tox nox`)

// inline run a text among their arguments, by a flag such as -c or -e.
var inline = setOf(`python python2 python3 node deno bun perl ruby php lua luajit tclsh rscript osascript`)

var inlineFlag = regexp.MustCompile(`^(-[A-Za-z]*[ceErp]|--?eval|--?print|--?run|--?exec)`)

// subcommands are those whose first operand says what they do.
var subcommands = setOf(`git go docker podman kubectl helm terraform npm yarn pnpm bun deno cargo pip pip3 uv gh glab aws gcloud az
	apt apt-get brew dnf yum systemctl`)

// escapes are the flags and subcommands with which a program runs others.
var escapes = map[string][]string{
	"find":  {"-exec", "-execdir", "-ok", "-okdir"},
	"fd":    {"-x", "-X", "--exec", "--exec-batch"},
	"rg":    {"--pre", "--hostname-bin"},
	"git":   {"--upload-pack", "--receive-pack", "--ext-diff", "--textconv", "-O", "--open-files-in-pager", "--exec", "--extcmd", "bisect", "filter-branch", "submodule", "config", "difftool", "mergetool", "daemon"},
	"tar":   {"--to-command", "-I", "--use-compress-program", "--checkpoint-action", "-F", "--info-script", "--new-volume-script", "--rsh-command", "--rmt-command"},
	"rsync": {"-e", "--rsh", "--rsync-path"},
	"scp":   {"-S", "-o"},
	"curl":  {"-K", "--config"},
	"wget":  {"--use-askpass", "--config", "-e", "--execute"},
	"sort":  {"--compress-program"},
	"split": {"--filter"},
	"zip":   {"-T", "-TT", "--unzip-command"},
	"go":    {"run", "generate", "tool", "-exec", "-toolexec", "-vettool", "-ldflags", "-overlay", "-modfile"},
	"gcc":   {"-wrapper", "-B", "-fplugin"},
	"gh":    {"alias", "extension", "codespace"},
}

// texts are programs that run nothing that their arguments name, unless by one of
// escapes or running.
var texts = setOf(`echo grep egrep fgrep rg ls cat head tail wc sort uniq cut tr diff cmp file stat du df basename dirname
	realpath readlink pwd date id whoami tree touch mkdir rmdir chmod chown true false which find git go gofmt jq`)

// running are further words by which a program runs what others of its words
// name.
var running = map[string][]string{"git": {"rebase", "am", "credential", "hook", "maintenance", "for-each-repo"}}

// leading are flags that do so in front of the subcommand only.
var leading = map[string][]string{
	"git": {"-c", "--config-env", "--exec-path", "-p", "--paginate"},
}

// mayRunBy is runsBy for what a command has and no form was written for: with the
// value in the same word, or with a shortened flag.
func mayRunBy(name, word string) bool {
	flag, _, _ := strings.Cut(word, "=")
	return slices.ContainsFunc(escapes[name], func(escape string) bool {
		if strings.HasPrefix(escape, "--") {
			return len(flag) > 3 && strings.HasPrefix(escape, flag)
		}
		return len(escape) == 2 && escape[0] == '-' && strings.HasPrefix(word, escape)
	})
}

// Warnings says what a form lets a command do that its author may not have meant.
func (f Form) Warnings() []string {
	if len(f.Run) == 0 {
		return nil
	}
	var all []string
	name := baseName(f.Run[0])
	switch {
	case launchers[name]:
		all = append(all, name+" runs other programs, and which ones the form does not check by their own forms")
	case isInterpreter(name) && f.Piped:
		all = append(all, name+" can run what it reads, and the form lets it read what another command writes")
	case isInterpreter(name):
		all = append(all, name+" can run programs that its arguments or its files contain")
	}
	if len(f.Run) == 1 && len(f.Operands) > 0 && subcommands[name] {
		all = append(all, "the operands of "+name+" are its subcommands; list a form for each, with the subcommand under run")
	}
	words := f.written()
	for i, w := range words {
		if runsBy(name, w, !slices.ContainsFunc(words[:i+1], isSubcommand)) {
			all = append(all, name+" can run other programs through "+strings.TrimSuffix(w, "="))
		}
	}
	return all
}

// isSubcommand reports whether a word ends the flags in front of it.
func isSubcommand(w string) bool { return !strings.HasPrefix(w, "-") }

// runsBy reports whether the program runs others by this word, which may stand in
// front of the subcommand.
func runsBy(name, word string, first bool) bool {
	flag, _, _ := strings.Cut(word, "=")
	return slices.Contains(escapes[name], flag) || first && slices.Contains(leading[name], flag)
}

// written are the words and flags that the form lists, those of Run first.
func (f Form) written() []string {
	keys := slices.Sorted(maps.Keys(f.Values))
	return slices.Concat(f.Run[1:], f.Flags, keys)
}

// isInterpreter also knows versions, such as python3.12.
func isInterpreter(name string) bool {
	return interpreters[name] || interpreters[strings.TrimRight(name, ".0123456789")]
}

// launcher reports whether a command may run a program that only its arguments
// or the state of the shell name.
func launcher(c Command) bool {
	name := baseName(c.Argv[0])
	some := func(is func(w string) bool) bool { return slices.ContainsFunc(c.Argv[1:], is) }
	switch {
	case builtins[c.Argv[0]] && c.Argv[0] != "cd", launchers[name], strings.HasSuffix(name, "awk"):
		return true
	case evaluating[c.Argv[0]]:
		return some(func(w string) bool { return strings.Contains(w, "[") })
	case inline[strings.TrimRight(name, ".0123456789")] && (c.Join == Pipe || len(c.Argv) == 1 || some(inlineFlag.MatchString)):
		return true
	}
	for i, w := range c.Argv[1:] {
		if !isSubcommand(w) && (runsBy(name, w, !slices.ContainsFunc(c.Argv[1:i+1], isSubcommand)) || mayRunBy(name, w)) {
			return true
		}
	}
	return false
}
