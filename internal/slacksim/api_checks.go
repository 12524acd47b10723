package slacksim

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/countersign/countersign/internal/slacksim/blockkit"
)

// apiTest answers with its arguments, and with an error if it is asked for one.
func apiTest(c *call) (object, *failure) {
	if code := c.str("error"); code != "" {
		f := fail(code)
		f.extra = object{"args": c.values}
		return nil, f
	}
	return object{"args": c.values}, nil
}

// blocksValidate judges blocks, a message or a view by the rules that posting
// it would be judged by.
func blocksValidate(c *call) (object, *failure) {
	var given []string
	for _, name := range []string{"blocks", "message", "view"} {
		if c.has(name) && c.values[name] != "" {
			given = append(given, name)
		}
	}
	if len(given) != 1 {
		return nil, &failure{code: "invalid_arguments", problems: []string{"must provide exactly one of `blocks`, `message` or `view`"}}
	}
	what := given[0]
	v, ok := c.value(what)
	if !ok {
		return nil, &failure{code: "invalid_arguments", problems: []string{"must provide valid JSON [json-pointer:/" + what + "]"}}
	}
	var problems []string
	switch o, isObject := v.(object); {
	case what == "blocks":
		check := blockkit.NewChecker(blockkit.OnMessage)
		check.Blocks(v, "")
		problems = check.Problems()
	case !isObject:
		problems = []string{"must provide an object [json-pointer:]"}
	case what == "message":
		problems = messageProblems(o)
	case o["type"] == string(blockkit.OnHome):
		problems = blockkit.CheckView(blockkit.OnHome, o)
	default:
		problems = blockkit.CheckView(blockkit.OnModal, o)
	}
	if len(problems) == 0 {
		return object{}, nil
	}
	f := fail("invalid_" + what)
	f.extra = object{"errors": pointed(problems)}
	return nil, f
}

// messageProblems are those of the blocks of a message and of its attachments.
func messageProblems(o object) []string {
	check := blockkit.NewChecker(blockkit.OnMessage)
	if list, has := o["blocks"]; has {
		check.Blocks(list, "/blocks")
	}
	attachments, _ := o["attachments"].([]any)
	for i, a := range attachments {
		if inner, ok := a.(object); ok && inner["blocks"] != nil {
			check.Blocks(inner["blocks"], "/attachments/"+strconv.Itoa(i)+"/blocks")
		}
	}
	return check.Problems()
}

var pointer = regexp.MustCompile(`^(.*) \[json-pointer:(?:/view)?([^\]]*)\]$`)

// pointed takes problems apart into what blocks.validate says of each.
func pointed(problems []string) []object {
	var all []object
	for _, p := range problems {
		o := object{"code": "failed_constraint", "message": p, "pointer": ""}
		if m := pointer.FindStringSubmatch(strings.TrimSpace(p)); m != nil {
			o["message"], o["pointer"] = m[1], m[2]
		}
		all = append(all, o)
	}
	return all
}
