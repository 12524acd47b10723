package blockkit_test

import (
	"fmt"

	"github.com/countersign/countersign/internal/slacksim/blockkit"
)

func ExampleChecker() {
	c := blockkit.NewChecker(blockkit.OnMessage)
	c.Blocks([]any{map[string]any{"type": "section"}, map[string]any{"type": "alert"}}, "/blocks")
	for _, p := range c.Problems() {
		fmt.Println(p)
	}
	// Output:
	// must define either `text` or `fields` [json-pointer:/blocks/0/type]
	// unsupported type: alert [json-pointer:/blocks/1/type]
}
