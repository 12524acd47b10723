package summary_test

import (
	"encoding/json"
	"fmt"

	"github.com/countersign/countersign/internal/summary"
)

func ExampleOf() {
	const template = `Refund {money args.cents "EUR"} to {args.customer or "nobody"}`
	fmt.Println(summary.Of(template, "issue_refund", json.RawMessage(`{"cents": 12900, "customer": "Acme"}`), nil))

	// What does not fit, as after an edit, and a call without a template.
	fmt.Println(summary.Of(template, "issue_refund", json.RawMessage(`{"cents": "a lot"}`), nil))
	fmt.Println(summary.Of("", "deleteFile", json.RawMessage(`{"path": "a.txt", "token": "s3cret"}`), []string{"/token"}))
	// Output:
	// Refund 129.00 EUR to Acme
	// Issue refund (cents: "a lot")
	// Delete file (path: "a.txt")
}

func ExampleCheck() {
	schema := json.RawMessage(`{"type": "object", "properties": {"cents": {"type": "integer"}}}`)
	fmt.Println(summary.Check(`Refund {money args.cent "EUR"}`, schema, nil))
	fmt.Println(summary.Check(`Refund {money args.cents "EUR"}`, schema, nil))
	// Output:
	// column 15: args.cent: there is no such argument; args has cents
	// column 15: args.cents: a call may leave it out; add or "text" before the }, or use {if args.cents "text"}
}
