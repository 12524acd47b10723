package policy

import (
	"context"
	"fmt"
	"testing"

	"cel.dev/cel-go/cel"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// foregone returns a condition and what is known of its outcome: never true, never
// false, or nothing.
func foregone(t require.TestingT, when string) (program cel.Program, never, always bool) {
	env, err := untyped()
	require.NoError(t, err)
	parsed, issues := env.Parse(when)
	require.NoError(t, issues.Err(), when)
	root := folded(env, parsed)
	_, never = impossible(root, true)
	_, always = impossible(root, false)
	program, err = env.Program(parsed)
	require.NoError(t, err)
	return program, never, always
}

func TestContradictions(t *testing.T) {
	const none, never, always = "nothing", "never", "always"
	for when, want := range map[string]string{
		`args.a == "x" && args.a == "y"`:                              never,
		`args.a == "x" && "y" == args.a`:                              never,
		`args.a == "x" && args.b && args.a != "x"`:                    never,
		`args.a == 1 && args.a == "1"`:                                never,
		`args.a == 1 && args.a == 1.0`:                                none,
		`args.a in ["x", "y"] && args.a in ["z"]`:                     never,
		`args.a in ["x", "y"] && args.a in ["y", "z"]`:                none,
		`args.a in ["x", "y"] && !(args.a in ["y"]) && args.a != "x"`: never,

		`args.a == "x" && !args.a.startsWith("x")`:             never,
		`args.a == "xy" && args.a.contains("z")`:               never,
		`args.a > 5 && args.a < 3`:                             never,
		`args.a > 3 && args.a < 5`:                             none,
		`5 < args.a && 3 > args.a`:                             never,
		`args.a >= 5 && args.a <= 5`:                           none,
		`args.a >= 5 && args.a <= 5 && args.a != 5.0`:          never,
		`args.a > 5 && args.a <= 5`:                            never,
		`args.a > 5 && !(args.a > 4)`:                          never,
		`args.a > 5 && args.a > "x"`:                           never,
		`args.a == 4 && args.a > 5`:                            never,
		`args.a > "b" && args.a < "a"`:                         never,
		`args.a.startsWith("ab") && args.a.startsWith("ac")`:   never,
		`args.a.startsWith("ab") && args.a.startsWith("abc")`:  none,
		`args.a.startsWith("abc") && !args.a.startsWith("ab")`: never,
		`args.a.startsWith("ab") && !args.a.startsWith("abc")`: none,
		`args.a.endsWith(".key") && args.a.endsWith(".pem")`:   never,
		`args.a.endsWith(".key") && !args.a.contains("key")`:   never,
		`args.a.startsWith("x") && args.a > 3`:                 never,
		`args.a && !args.a`:                                    never,
		`args.a == true && args.a == false`:                    never,
		`has(args.a) && !has(args.a)`:                          never,
		`!has(args.a) && args.a == 1`:                          never,
		`!has(args.a) && args.a.b == 1`:                        never,
		`!has(args.a) || args.a == 1`:                          none,
		`args.a.matches("^x") && !args.a.matches("^x")`:        never,
		`args.a == "x" && args["a"] == "y"`:                    never,
		`args["a b"] == "x" && args["a b"] == "y"`:             never,
		`!has(args.a) && args["a"] == 1`:                       never,
		`args.a.b == 1 && args["a"]["b"] == 2`:                 never,
		`args["a.b"] == 1 && args.a.b == 2`:                    none,
		`args.l[0] == 1 && args.l[1] == 2`:                     none,
		`args.a == "xy" && args.a.matches("^z")`:               never,
		`args.a in ["xy", "zy"] && args.a.matches("^z")`:       none,
		`!args.a.matches("y") && args.a in ["xy", "zy"]`:       never,
		`args.a.matches("^x") && args.a.matches("^y")`:         none,
		`size(args.a) < 0`:                                     never,
		`args.a.size() < 0`:                                    never,
		`size(args.a) >= 0`:                                    always,
		`size(args.a) < 1`:                                     none,
		`size(args.a) == -1`:                                   never,
		`args.a == args.b && args.a != args.b`:                 never,
		`"x" in args.a && !("x" in args.a)`:                    never,
		`size(args.a) > 5 && size(args.a) == 3`:                never,
		`now < timestamp("2026-01-01T00:00:00Z") && now > timestamp("2027-01-01T00:00:00Z")`:                                   never,
		`now - timestamp("2026-01-01T00:00:00Z") > duration("2h") && now - timestamp("2026-01-01T00:00:00Z") < duration("1h")`: never,
		`now.getHours("UTC") < 6 && now.getHours("Asia/Tokyo") > 20`:                                                           none,
		`(args.a == "x" || args.a == "y") && args.a == "z"`:                                                                    never,
		`(args.a == "x" || args.b == "y") && args.a == "z"`:                                                                    none,
		`args.a > 5 ? args.a < 3 : args.a > 7`:                                                                                 never,
		`args.a > 5 ? args.a < 8 : args.a > 7`:                                                                                 none,
		`args.l.exists(e, e > 5 && e < 3)`:                                                                                     never,
		`args.l.exists(e, e > 5) && args.l.exists(e, e < 3)`:                                                                   none,
		// of an empty list it is true
		`args.l.all(e, e > 5 && e < 3)`:                             none,
		`args.l.all(e, e > 3 || e < 5)`:                             always,
		`args.a == 1 && (args.b == 2 || args.b == 3)`:               none,
		`args.a > 3 || args.a < 5`:                                  always,
		`args.a != "x" || args.a != "y"`:                            always,
		`args.a == "x" || args.a != "x"`:                            always,
		`has(args.a) || !has(args.a)`:                               always,
		`args.?a.orValue("") == "x" && args.?a.orValue("") == "y"`:  never,
		`args.?a.orValue("") == "x" && args.?a.orValue("z") == "y"`: none,
		// CEL rounds
		`args.a == 9007199254740993 && args.a == 9007199254740992.0`: none,
		// not weighed
		`args.a > 9007199254740993 && args.a < 9007199254740992`:   none,
		`args.a == 9007199254740993 && args.a != 9007199254740993`: never,
	} {
		got := none
		switch _, isNever, isAlways := foregone(t, when); {
		case isNever:
			got = never
		case isAlways:
			got = always
		}
		require.Equal(t, want, got, when)
	}
}

// What is called impossible is so: no arguments make such a condition true, or
// false.
func TestNoConditionThatMayHoldIsAContradiction(t *testing.T) {
	refused := 0
	rapid.Check(t, func(rt *rapid.T) {
		when := randomCondition(rt, 3)
		program, never, always := foregone(rt, when)
		if !never && !always {
			return
		}
		refused++
		for range 200 {
			args := randomArguments(rt)
			v, _, err := program.ContextEval(context.Background(), map[string]any{"args": args})
			if err != nil {
				continue
			}
			require.False(rt, never && v.Value() == true, "%s holds for %#v", when, args)
			require.False(rt, always && v.Value() == false, "%s does not hold for %#v", when, args)
		}
	})
	require.Positive(t, refused)
}

func randomCondition(rt *rapid.T, depth int) string {
	if depth > 0 && rapid.IntRange(0, 3).Draw(rt, "combines") > 0 {
		l, r := randomCondition(rt, depth-1), randomCondition(rt, depth-1)
		switch rapid.SampledFrom([]string{"&&", "&&", "&&", "||", "!", "?", "exists", "all"}).Draw(rt, "by") {
		case "||":
			return "(" + l + " || " + r + ")"
		case "!":
			return "!(" + l + ")"
		case "?":
			return "(" + l + " ? " + r + " : " + randomCondition(rt, depth-1) + ")"
		case "exists":
			return "args.l.exists(args, " + l + ")"
		case "all":
			return "args.l.all(e, e == " + randomConstant(rt) + " || " + r + ")"
		}
		return "(" + l + " && " + r + ")"
	}
	term := rapid.SampledFrom([]string{"args.a", "args.b", "args.a", "args.a", "size(args.a)", "args.?a.orValue(1)", `args["a"]`}).Draw(rt, "term")
	switch rapid.IntRange(0, 6).Draw(rt, "atom") {
	case 0:
		return "has(args.a)"
	case 1:
		return term
	case 2:
		return fmt.Sprintf("%s in [%s, %s]", term, randomConstant(rt), randomConstant(rt))
	case 3:
		return fmt.Sprintf("%s.%s(%q)", term, rapid.SampledFrom([]string{"startsWith", "endsWith", "contains", "matches"}).Draw(rt, "text"), randomText(rt))
	case 4:
		op := rapid.SampledFrom([]string{"==", "!=", "<", "<=", ">", ">="}).Draw(rt, "op")
		return fmt.Sprintf("%s %s %s", randomConstant(rt), op, term)
	}
	op := rapid.SampledFrom([]string{"==", "!=", "<", "<=", ">", ">="}).Draw(rt, "op")
	return fmt.Sprintf("%s %s %s", term, op, randomConstant(rt))
}

func randomText(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"", "a", "b", "ab", "ba", "aba", "abb"}).Draw(rt, "words")
}

func randomConstant(rt *rapid.T) string {
	switch rapid.IntRange(0, 3).Draw(rt, "constant") {
	case 0:
		return fmt.Sprintf("%q", randomText(rt))
	case 1:
		return rapid.SampledFrom([]string{"true", "false", "null", "2u", "9007199254740993", "9007199254740992.0", "-1"}).Draw(rt, "odd")
	case 2:
		return rapid.SampledFrom([]string{"1.0", "1.5", "2.0", "3.5"}).Draw(rt, "double")
	}
	return fmt.Sprint(rapid.IntRange(0, 4).Draw(rt, "number"))
}

func randomArguments(rt *rapid.T) map[string]any {
	value := func() any {
		return rapid.SampledFrom([]any{
			int64(-1), int64(0), int64(1), int64(2), int64(3), int64(4), 1.0, 1.25, 1.5, 2.0, 2.5, 3.25, 3.5, 7.0,
			int64(9007199254740993), int64(9007199254740992), 9007199254740992.0, uint64(1 << 63),
			"", "a", "b", "ab", "ba", "aba", "abb", "abab", "bab", "c", true, false, nil,
			[]any{"a"},
			map[string]any{"a": int64(1)},
		}).Draw(rt, "value")
	}
	args := map[string]any{}
	for _, name := range []string{"a", "b"} {
		if rapid.IntRange(0, 9).Draw(rt, "there") > 0 {
			args[name] = value()
		}
	}
	args["l"] = []any{value(), map[string]any{"a": value(), "b": value()}}[:rapid.IntRange(0, 2).Draw(rt, "long")]
	return args
}
