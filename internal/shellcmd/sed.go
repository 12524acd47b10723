package shellcmd

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// sedMayRun reports whether sed may run a text of its arguments as a program: by its
// command e, or by the flag e of its command s. A script that is not understood may, and
// so may one in a file.
func (m matches) sedMayRun(args []string) bool {
	var scripts, operands []string
	for i := 0; i < len(args); i++ {
		w := args[i]
		given := sedScript.FindString(w)
		switch {
		case w == "--":
			operands = append(operands, args[i+1:]...)
			i = len(args)
		case w == "" && i > 0 && args[i-1] == "-i": // BSD: no copy is kept
		case !strings.HasPrefix(w, "-") || w == "-":
			operands = append(operands, w)
		case given != "" && given != w:
			scripts = append(scripts, w[len(given):])
		case given != "" && i+1 < len(args):
			i++
			scripts = append(scripts, args[i])
		case !sedFlag.MatchString(w):
			return true
		}
	}
	if scripts == nil && len(operands) > 0 {
		scripts = operands[:1]
	}
	return slices.ContainsFunc(scripts, func(s string) bool { return !m.isHarmless(s) })
}

func (m matches) isHarmless(script string) bool {
	is, known := m.harmless[script]
	if !known {
		is = sedHarmless.MatchString(script)
		m.harmless[script] = is
	}
	return is
}

var (
	sedScript = regexp.MustCompile(`^(-[nErsuzb]*e|--e[a-z]*=?)`)
	sedFlag   = regexp.MustCompile(`^(-[nErsuzb]*(i.*|l[0-9]*)?|--(fo|[^ef]).*)$`)
)

// sedHarmless matches a script of the commands that run nothing. No command that it
// matches goes over the end of a line, so that each line in which sed may begin a command
// is read as one. A delimiter in brackets is part of the expression; versions of sed that
// take it for the end refuse the script, because the bracket is open.
var sedHarmless = func() *regexp.Regexp {
	const bracket = `\[\^?\]?(?:\[[:.=]\w+[:.=]\]|[^\]\[\\\n]|\\[^\]\n])*\]`
	var addresses, commands []string
	for delimiter := range strings.SplitSeq("/|#,@:!%_+~=", "") {
		d := `\x` + hex.EncodeToString([]byte(delimiter))
		expression := d + `(?:[^\\\n\[` + d + `]|\\[^\n]|` + bracket + `)*` + d
		text := `(?:[^\\\n` + d + `]|\\[^\n])*` + d
		addresses = append(addresses, `\\`+expression+`[IM]*`)
		commands = append(commands, `s`+expression+text+`[gpiImM0-9]*`, `y`+d+text+text)
		if delimiter == "/" {
			addresses = append(addresses, expression+`[IM]*`)
		}
	}
	addresses = append(addresses, `[0-9]+(?:~[0-9]+)?`, `\$`)
	commands = append(commands, `[=dDgGhHnNpPxzF]`, `[lqQL][ \t]*[0-9]*`, `[btT][ \t]*[\w.-]*`, `:[ \t]*[\w.-]+`, `[aicrRwW][^\n]*`)
	address := `(?:` + strings.Join(addresses, "|") + `)`
	command := `(?:` + strings.Join(commands, "|") + `)`
	return regexp.MustCompile(`\A(?:[\s;}]|#[^\n]*|(?:` + address + `\s*(?:,\s*(?:[+~][0-9]+|` + address + `)\s*)?)?[!\s]*(?:\{|` + command + `[ \t]*(?:[;\n}]|#[^\n]*|\z)))*\z`)
}()
