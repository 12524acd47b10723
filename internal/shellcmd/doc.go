// Package shellcmd says whether a shell program is one that a list of forms
// permits.
//
// [Read] accepts a program only if it consists wholly of literal simple
// commands: words and quoted texts, joined by &&, ||, |, ; or a line break. It
// refuses everything else: assignments, redirects, expansions, substitutions,
// globs, braces, tildes, escapes, comments, background jobs, functions and
// compound commands. What it accepts has one meaning in every POSIX shell, bash
// and zsh, so the words that a [Form] is compared with are the arguments that the
// programs get. Two readings have to agree: a scan of the characters, which also
// keeps nesting away from the parser, and the parser of mvdan.cc/sh, three times,
// as bash, POSIX and zsh.
//
// A [Form] lists what a command may be: program and subcommand, flags, flags with
// values, operands. Nothing is a pattern unless it is written as one, and nothing
// matches because it is unknown.
//
// [Sought] is the opposite: programs that must be noticed. What cannot be read
// may run one of them, and the caller is told so.
//
// The package cannot see what a name stands for where the command runs: PATH,
// aliases and functions of that shell, what a file holds, where a symbolic link
// leads, or what the program does with its arguments and its configuration. Nor
// does it know shells with another syntax, such as fish, csh and PowerShell.
package shellcmd
