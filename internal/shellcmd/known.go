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
	systemd-run at batch crontab busybox toybox screen tmux expect docker podman kubectl
	docker-compose podman-compose nerdctl crictl oc pee mispipe niceload sem env_parallel debconf
	sg newgrp entr hyperfine watchexec nodemon concurrently sbatch mosh rsh autossh sshpass wsl ansible salt
	cmd schtasks mshta cscript wscript`)

// looking are the subcommands of launchers that run nothing.
var looking = map[string]map[string]bool{
	"kubectl": setOf(`get describe logs top version explain api-resources api-versions`),
	"docker":  setOf(`ps images logs inspect version info stats top port history`),
	"podman":  setOf(`ps images logs inspect version info stats top port history`),
}

// looksOnly reports whether a launcher runs nothing: its first word says so, and no
// configuration is named, which could say what to run.
func looksOnly(c Command) bool {
	return len(c.Argv) > 1 && looking[baseName(c.Argv[0])][c.Argv[1]] &&
		!slices.ContainsFunc(c.Argv, func(w string) bool { return strings.HasPrefix(w, "--kube") })
}

// shells run a text that they are given as an argument, read, or send to another
// machine. So does a program that is told to start one.
var shells = setOf(`sh bash rbash dash zsh ksh lksh mksh ash yash posh osh fish csh tcsh xonsh nu elvish pwsh powershell ssh
	rksh rmksh rzsh sash ysh git-shell`)

// reads run what they read.
var reads = setOf(`python pypy ipython node nodejs ts-node tsx deno bun perl ruby php lua luajit tclsh rscript r julia octave elixir ghc ocaml
	groovy scala guile racket sbcl swift gnuplot osascript ed ex vi vim nvim psql mysql mariadb sqlite duckdb m4
	dc ftp sftp lftp telnet irb erb jshell wish iex erl mongo mongosh sqlplus sqlcmd usql pgcli mycli litecli clojure clj ghci runghc runhaskell kotlin octave-cli gforth csi gosh
	ecl clisp janet fennel newlisp matlab jython micropython graalpy bpython hy sage jruby truffleruby mruby pry`)

// interpreters run programs that they are given as a text or a file, or have a
// way out to a shell.
var interpreters = setOf(`python python2 python3 node deno bun perl ruby php lua luajit tclsh rscript osascript java jshell scala
	awk gawk mawk nawk sed ed ex vi vim nvim view emacs nano pico less more most man
	psql mysql mariadb sqlite3 mongosh redis-cli ftp sftp telnet nc ncat socat
	make gmake cmake ninja npm npx yarn pnpm pnpx uv uvx pipx pip pip3 cargo rake bundle gradle mvn ant just task tox nox`)

// hands are what a word of a program looks like that makes it run a text: in a shell, or
// in a language that can start programs. The names are without a version.
var hands = patterns(
	`ipython qjs gjs tclsh wish rscript r julia octave elixir iex erl ocaml groovy scala clojure bb guile racket
		sbcl raku gnuplot osascript ghci runghc runhaskell kotlin octave-cli gforth csi gosh clj ecl janet fennel
		newlisp electron matlab`, `^(-[A-Za-z0-9]*[ceErp]|--?eval|--?print|--?run|--?exec|eval$)`,
	`python pypy jython micropython graalpy bpython hy sage`, `^-[bBdEhiIOPqRsStuvVx0-9]*c|^(-[A-Za-z]*m)?(timeit|i?pdb)$`,
	`node nodejs ts-node tsx`, `^-[A-Za-z]*[ep]|^--?(eval|print)|(?i:data:)`,
	`deno bun`, `^-[A-Za-z]*[ep]|^--?(eval|print)|^(eval|exec|repl)$|(?i:data:)`,
	`npm npx pnpm`, `^(-[A-Za-z]*c|--c(all?)?(=|$)|--ca$|--shell-mode|explore$|scripts[.\[])|(^|\s)--(node-options|import|require|loader|experimental-loader)\b(?s:.*)(?i:data:)`,
	`uv`, `^-$`,
	`yarn`, `^exec$`,
	`perl`, `^-(\S*\s+-)*[a-zA-HJ-Z0-9]*[eEMmd]`,
	`clisp`, `^-[A-Za-z0-9]*[cx]`,
	`ruby jruby truffleruby mruby`, `^-[a-qs-zA-HJ-Z0-9]*e`,
	`pry`, `^(-[A-Za-z]*e|--e)`,
	`php php-cgi phpdbg`, `^-[abeg-suv-yA-Z0-9]*[rBRE]|^--?(run|process)|(?i:data:)`,
	`lua luajit texlua`, `^-e`,
	`rake`, `^(-[A-Za-z]*[eEp]|--e)`,
	`crystal`, `^eval$`,
	`mlr`, `\b(system|exec)\b|(^|[^|])\|([^|]|$)|^(-[fps]|--prepipe)`,
	`ghc swift`, `^(-e|--run)`,
	`vi vim nvim view ex rvim gvim vimdiff vim.basic vim.tiny vim.nox vim.gtk editor`, `^(\+[^0-9]|-[A-Za-z]*[cSs]|--cmd|--remote)`,
	`emacs emacsclient`, `^--?(ev|ex|func|lo|sc|ba|[felQx]$)`,
	`psql pgcli`, `(?is)\\!|\\.*[|\x60]|\\setenv|\bprogram\b|^\||^-[^\s|]*\||^(-[AaEeHlnqSstwWxX10]*f|--fi)`,
	`mysql mariadb mycli`, `(?i)\\!|\bsystem\b|\bsource\b|\\\.|--pager`,
	`sqlite3 sqlite litecli duckdb`, `(?im)^\s*\.(sh(e|\b)|sy|ex?c|ww|o(\b|[nu])|i(\b|m)|r|lo)|\bedit\b|\bload_extension\b|^--?(cmd|init)`,
	`make gmake`, `(?s)^(--ev|-[abdehijklnpqrstvwBLRS]*E)|^-([A-Za-z]*f-)?$|=-$|/(dev|proc)/.*(stdin|fd/)|^\.?SHELL(FLAGS)?[:+?!]*=|=.*[;&|$\x60"'\\*?\[{]`,
	`just`, `^(-c|--command|--shell)`,
	`tar gtar bsdtar`, `^-[ABDEGHJ-SUVWYZac-eg-z]*[IF]`,
	`rsync`, `^-[A-Za-z0-9]*e`,
	`curl`, `^-[0-9#aBfgGiIjJklLMnNOpqRsSvVZ]*K`,
	`wget`, `^-[46bcdEFhHKkLmnNpqrSvVxz]*e`,
	`scp sftp ssh-copy-id sshfs`, `^-[0-9ABCOTafnpqrsvR]*[SoD]`,
	`fd fdfind`, `^(-[01aFgHiIlLpqsu]*[xX]|--exec)`,
	`git`, `^ext::`,
	`socat`, `(?i)(^|!!)\s*(exec|system|shell)[:,]`,
	`nc ncat netcat nc.traditional`, `^(-[A-Za-z]*[ce]$|--(sh-|lua-)?exec)`,
	`man`, `^(-[A-Za-z]*[PH]|--(pa|ht))`,
	`tex pdftex latex pdflatex xelatex lualatex latexmk`, `^--?(shell-escape|enable-write18|e$)`,
	`fzf sk`, `^--(preview|bind)`,
	`ack ag bat delta`, `^--pager`,
	`pandoc`, `^(-[FL]|--(lua-)?filter)`,
	`svn`, `^--(diff|diff3|merge|editor)-cmd|^--config-option`,
	`hg`, `^--config`,
	`apt apt-get aptitude`, `^(-[a-su-zA-Z]*[oc]|--option|--config-file)`,
	`dpkg`, `^--(pre|post)-invoke|^--status-logger`,
	`dpkg-architecture`, `^(-c|--command)`,
	`gcc cc c++ g++ c89 c99 gfortran`, `^--?wrapper`,
	`go`, `^(GOFLAGS|CC|CXX|FC|AR|GCCGO|PKG_CONFIG|GOAUTH|GOCACHEPROG)=`,
	`ed`, `^!`,
	`groff troff nroff pic gpic`, `^-[A-Za-z]*U|^--unsafe`,
	`gs ghostscript ps2pdf`, `%pipe%|^-(sOutputFile=|o)?\s*\||^-dNOSAFER`,
	`rpm rpmbuild`, `^(-[ED]|--(eval|define|pipe))`,
	`cpio`, `^--rsh-command`,
	`tcpdump`, `^-[AbdDefhHIJKlLnNOpqStuUvxX#]*z`,
	`exiftool`, `^-(config|if|p$)`,
	`xterm urxvt konsole gnome-terminal alacritty kitty`, `^(-e|-x|--)`,
	`capsh`, `^--$`,
	`cargo`, `^(--config|-s$)`,
	`nix nix-shell`, `^(-c$|--(run|command))`,
	`rename prename perl-rename`, `[\x60\x22'|;@{]|\(\?|\$[^0-9&]|^(-[A-Za-z]*e)?\s*(s|y|tr)\W(?s:.*)\W[a-z]*e[a-z]*(\s|$)`,
	`mongo mongosh`, `^--eval`,
	`dc`, `!`,
	`puppet`, `^(-e|--execute)`,
	`rails`, `^(r|runner)$`,
	`lf ranger`, `^--?(cmd|command)`,
	`adb`, `^shell$`,
	`vagrant heroku fly flyctl`, `^(-c|-C|--command|run$)`,
)

// scripted are those of the languages that leave to a script all that follows its name.
var scripted = setOf(`python pypy node nodejs ts-node tsx ruby perl php lua luajit`)

// shellWords are the subcommands of git with the word by which each gives a text to a
// shell.
var shellWords = patterns(
	`rebase`, `^(-[A-Za-z]*x|--ex)`,
	`difftool`, `^(-[A-Za-z]*x|--e)`,
	`grep`, `^-[a-dg-ln-zEFGHILPT]*O`,
	`submodule submodule--helper`, `^foreach$`,
	`bisect`, `^run$`,
	`filter-branch`, ``,
	`send-email`, `^--(to|cc|header)-cmd|^--smtp-server|^--sendmail-cmd`,
	`clone init`, `^(-[ac-ik-np-z]*[cu]|--co|--te)`,
	`config`, `(?i)^(!|alias\.|include|core\.(pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy|alternaterefscommand)|pager\.|sequence\.|gpg\.|credential\.|sendemail\.|uploadpack\.|init\.templatedir|interactive\.difffilter|web\.browser|url\.ext|.*\.(cmd|driver|textconv|clean|smudge|process|helper|command|program|external|update|vcs|uploadpack|receivepack)(=|$))`,
)

// patterns maps each of the names to the pattern that follows it.
func patterns(namesAndPattern ...string) map[string]*regexp.Regexp {
	all := map[string]*regexp.Regexp{}
	for pair := range slices.Chunk(namesAndPattern, 2) {
		pattern := regexp.MustCompile(pair[1])
		for name := range strings.FieldsSeq(pair[0]) {
			all[name] = pattern
		}
	}
	return all
}

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
	"go":    {"run", "generate", "tool", "-exec", "-toolexec", "-vettool", "-fixtool", "-ldflags", "-overlay", "-modfile"},
	"gcc":   {"-wrapper", "-B", "-fplugin"},
	"gh":    {"alias", "extension", "codespace"},
}

// texts are programs that run nothing that their arguments name, unless by one of
// escapes or running.
var texts = setOf(`echo grep egrep fgrep rg ls cat head tail wc sort uniq cut tr diff cmp file stat du df basename dirname
	realpath readlink pwd date id whoami tree touch mkdir rmdir chmod chown true false which find git go gofmt jq man cd`)

// running are further words by which a program runs what others of its words
// name.
var running = map[string][]string{"git": {"rebase", "am", "credential", "hook", "maintenance", "for-each-repo", "merge-index"}}

// leading are flags that do so in front of the subcommand only.
var leading = map[string][]string{
	"git": {"-c", "--config-env", "--exec-path", "-p", "--paginate"},
}

// valued are flags in front of the subcommand that have their value in the next word.
var valued = map[string][]string{
	"git": {"-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--attr-source", "--shallow-file"},
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
	case launchers[name], shells[name]:
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
		if runsBy(name, w, leads(name, words[:i+1])) {
			all = append(all, name+" can run other programs through "+strings.TrimSuffix(w, "="))
		}
	}
	return all
}

// isSubcommand reports whether a word ends the flags in front of it.
func isSubcommand(w string) bool { return !strings.HasPrefix(w, "-") }

// leads reports whether all the words are flags in front of the subcommand, or their
// values.
func leads(name string, words []string) bool {
	for i, w := range words {
		if isSubcommand(w) && (i == 0 || !slices.Contains(valued[name], words[i-1])) {
			return false
		}
	}
	return true
}

// runsBy reports whether the program runs others by this word, which may stand in
// front of the subcommand.
func runsBy(name, word string, first bool) bool {
	flag, _, _ := strings.Cut(word, "=")
	if name == "go" && strings.HasPrefix(flag, "--") {
		flag = flag[1:] // both have one meaning
	}
	return slices.Contains(escapes[name], flag) || first && slices.Contains(leading[name], flag)
}

// written are the words and flags that the form lists, those of Run first.
func (f Form) written() []string {
	keys := slices.Sorted(maps.Keys(f.Values))
	return slices.Concat(f.Run[1:], f.Flags, keys)
}

// isInterpreter also knows versions, such as python3.12.
func isInterpreter(name string) bool { return interpreters[name] || interpreters[unversioned(name)] }

// launcher reports whether a command may run a program that only a text among its
// arguments or the state of the shell names.
func launcher(c Command) bool {
	m := matches{c.Argv, map[*regexp.Regexp]int{}, map[string]bool{}}
	name := baseName(c.Argv[0])
	some := func(is func(w string) bool) bool { return slices.ContainsFunc(c.Argv[1:], is) }
	switch {
	case looksOnly(c):
		return false
	case builtins[c.Argv[0]] && c.Argv[0] != "cd", launchers[name], launchers[unversioned(name)], strings.HasSuffix(name, "awk"):
		return true
	case evaluating[c.Argv[0]]:
		return some(func(w string) bool { return strings.Contains(w, "[") })
	case isReader(c.Argv[0]) && (c.Join == Pipe || len(c.Argv) == 1):
		return true
	case c.Join == Pipe && !texts[name] && startsReader(name, c.Argv[1:]):
		return true
	}
	for i, w := range c.Argv[1:] {
		if !isSubcommand(w) && (runsBy(name, w, leads(name, c.Argv[1:i+1])) || mayRunBy(name, w)) {
			return true
		}
	}
	return m.handsText(c.Argv) || !texts[name] && (m.handsToAnother(c.Argv[1:]) || !written[name] && some(piped.MatchString))
}

func isReader(program string) bool {
	name := baseName(program)
	return reads[name] || reads[unversioned(name)]
}

// startsReader reports whether one of the words may name a program that runs what it reads,
// of a command that reads a pipe. Behind a flag it is more often a language or a folder, but
// not of a program that starts others.
func startsReader(name string, words []string) bool {
	for i, w := range words {
		if isReader(w) && !commonWords[w] && (starters[name] || !storing[name] && (i == 0 || isSubcommand(words[i-1]))) {
			return true
		}
	}
	return false
}

var (
	// written are not in Perl, and send texts, in which there are tables.
	written = setOf(`gh glab az aws gcloud`)
	// starters start the program that one of their words names.
	starters = setOf(`npx npm pnpm pnpx yarn bunx uv uvx pipx poetry pipenv pdm hatch rye conda mamba micromamba bundle rlwrap mise asdf nix`)
	// storing write what they read to the files that their words name.
	storing = setOf(`tee tar gtar bsdtar star gpg cpio`)
)

// piped matches the name of a file that Perl, for one, takes for a command to read from or
// to write to.
var piped = regexp.MustCompile(`^\s*\|\s*\w|^[^|]*\w[^|]*\|\s*$`)

// matches are what expressions match among the words of a command. The words are looked at
// again behind each of them that may be a program.
type matches struct {
	words    []string
	last     map[*regexp.Regexp]int // the last word that matches, or -1
	harmless map[string]bool        // scripts of sed
}

// any reports whether one of the words matches, which are the last ones of the command.
func (m matches) any(by *regexp.Regexp, words []string) bool {
	last, known := m.last[by]
	if !known {
		for last = len(m.words) - 1; last >= 0 && !by.MatchString(m.words[last]); last-- {
		}
		m.last[by] = last
	}
	return last >= len(m.words)-len(words)
}

// handsText reports whether a program gets a text to run.
func (m matches) handsText(argv []string) bool {
	name := baseName(argv[0])
	plain := unversioned(name)
	switch {
	case shells[plain]:
		return true
	case plain == "sed" || plain == "gsed":
		return m.sedMayRun(argv[1:])
	case tars[plain]:
		if len(argv) > 1 && undashedFlags.MatchString(argv[1]) {
			return true
		}
	case plain == "gh" || plain == "glab":
		return slices.Contains(argv, "alias") && slices.ContainsFunc(argv, func(w string) bool { return strings.HasPrefix(w, "!") || w == "--shell" })
	}
	like := hands[plain]
	if like == nil {
		like = hands[name]
	}
	if like != nil && scripted[plain] && len(argv) > 1 && isSubcommand(argv[1]) && argv[1] != "inspect" && argv[1] != "debug" {
		return like.MatchString(argv[1])
	}
	if like != nil && m.any(like, argv[1:]) {
		return true
	}
	if name != "git" {
		return false
	}
	for word, by := range shellWords {
		if i := slices.Index(argv, word); i > 0 && (by.String() == "" || m.any(by, argv[i+1:])) {
			return true
		}
	}
	return false
}

// tars are programs of tar.
var tars = setOf(`tar gtar bsdtar star`)

// undashedFlags matches the first word of tar where it is flags without a dash, with one
// that names a program.
var undashedFlags = regexp.MustCompile(`^[A-Za-z]*([IF][A-Za-z]*[a-z]|[a-z][A-Za-z]*[IF])[A-Za-z]*$`)

// handsToAnother is handsText of a program that one of the words may name.
func (m matches) handsToAnother(words []string) bool {
	for i, w := range words {
		if !commonWords[w] && m.handsText(words[i:]) {
			return true
		}
	}
	return false
}

// commonWords are names of programs that are mostly something else among arguments: gh pr
// view -c.
var commonWords = setOf(`view ex r nu fly bat delta`)
