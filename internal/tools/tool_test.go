package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/tools"
)

type transfer struct {
	To     string `json:"to" jsonschema:"who gets it"`
	Cents  int64  `json:"cents"`
	Note   string `json:"note,omitempty"`
	Secret struct {
		PIN string `json:"p/n" countersign:"writeOnly"`
	} `json:"secret"`
}

func call(args string) agentrun.Call {
	return agentrun.Call{ToolCall: approvals.ToolCall{ID: "c", Name: "transfer", Args: json.RawMessage(args)}}
}

func echo(_ context.Context, _ agentrun.Call, in transfer) (transfer, error) { return in, nil }

func newTransfer(t *testing.T) agentrun.Tool {
	t.Helper()
	tool, err := tools.New(tools.Spec[transfer]{
		Name: "transfer", Description: "Moves money.", Approval: tools.When,
		ApproveWhen: func(_ context.Context, _ agentrun.Call, in transfer) (bool, error) { return in.Cents > 100, nil },
		Check: func(_ context.Context, _ agentrun.Call, in transfer) error {
			if in.To == "" {
				return errors.New("to must name somebody")
			}
			return nil
		},
	}, echo)
	require.NoError(t, err)
	return tool
}

func TestTheSchemaIsDerivedFromTheStruct(t *testing.T) {
	s := newTransfer(t).Spec()
	require.JSONEq(t, `{
		"type": "object", "additionalProperties": false, "required": ["to", "cents", "secret"],
		"properties": {
			"to": {"type": "string", "description": "who gets it"},
			"cents": {"type": "integer"},
			"note": {"type": "string"},
			"secret": {"type": "object", "additionalProperties": false, "required": ["p/n"],
				"properties": {"p/n": {"type": "string", "writeOnly": true}}}
		}}`, string(s.Schema))
	require.Equal(t, []string{"/secret/p~1n"}, s.WriteOnly)
	require.EqualValues(t, tools.When, s.Asks())
}

func TestArgumentsAreJudgedBeforeAnybodyIsAsked(t *testing.T) {
	tool := newTransfer(t)
	for name, args := range map[string]string{
		"missing":           `{"to":"bo","secret":{"p/n":"1"}}`,
		"unknown key":       `{"to":"bo","cents":1,"secret":{"p/n":"1"},"x":1}`,
		"key in other case": `{"To":"bo","cents":1,"secret":{"p/n":"1"}}`,
		"not an integer":    `{"to":"bo","cents":1.5,"secret":{"p/n":"1"}}`,
		"string for number": `{"to":"bo","cents":"7","secret":{"p/n":"1"}}`,
		"null":              `{"to":null,"cents":1,"secret":{"p/n":"1"}}`,
		"too large":         `{"to":"bo","cents":9223372036854775808,"secret":{"p/n":"1"}}`,
		"an array":          `[]`,
		"two values":        `{} {}`,
		"not JSON":          `{"to":`,
		"empty":             ``,
		"refused by Check":  `{"to":"","cents":1,"secret":{"p/n":"1"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, tool.Validate(t.Context(), call(args)))
		})
	}
	require.NoError(t, tool.Validate(t.Context(), call(`{"to":"bo","cents":1,"secret":{"p/n":"1"}}`)))
}

// The model reads one sentence; a person who edits reads, for each argument,
// what is wrong with it.
func TestWhatIsWrongIsSaidByArgument(t *testing.T) {
	tool := newTransfer(t)
	type wrong map[string]string // by JSON pointer
	for args, want := range map[string]struct {
		model   string
		editors wrong
	}{
		`{"to":7,"cents":1.5,"secret":{"p/n":"1"}}`: {
			"the arguments do not fit the schema: /cents: got number, want integer; /to: got number, want string",
			wrong{"/to": "got number, want string", "/cents": "got number, want integer"},
		},
		`{"cents":1,"secret":{},"x~y":1}`: {
			"the arguments do not fit the schema: /: additional properties 'x~y' not allowed; /: missing property 'to'; /secret: missing property 'p/n'",
			wrong{"/to": "it is missing", "/secret/p~1n": "it is missing", "/x~0y": "there is no such argument"},
		},
		`[]`: {"the arguments do not fit the schema: /: got array, want object", wrong{"": "got array, want object"}},
		`{"to":"bo","cents":9223372036854775808,"secret":{"p/n":"1"}}`: {
			"the arguments do not fit the schema: json: cannot unmarshal number 9223372036854775808 into Go struct field transfer.cents of type int64",
			wrong{"/cents": "number 9223372036854775808 does not fit into int64"},
		},
	} {
		err := tool.Validate(t.Context(), call(args))
		require.EqualError(t, err, want.model)
		var many interface{ Unwrap() []error }
		require.ErrorAs(t, err, &many)
		got := wrong{}
		for _, e := range many.Unwrap() {
			one, ok := errors.AsType[*agentrun.ArgumentError](e)
			require.True(t, ok)
			got[one.Pointer] = one.Message
		}
		require.Equal(t, want.editors, got)
	}
}

func TestNumbersKeepTheirDigits(t *testing.T) {
	tool := newTransfer(t)
	r, err := tool.Execute(t.Context(), call(`{"to":"bo","cents":9007199254740993,"secret":{"p/n":"1"}}`))
	require.NoError(t, err)
	require.Contains(t, string(r.Value), "9007199254740993")
}

func TestAPredicateDecidesOverValidatedArguments(t *testing.T) {
	ask := newTransfer(t).Spec().NeedsApproval
	for args, want := range map[string]bool{
		`{"to":"bo","cents":100,"secret":{"p/n":"1"}}`: false,
		`{"to":"bo","cents":101,"secret":{"p/n":"1"}}`: true,
	} {
		got, err := ask(t.Context(), call(args))
		require.NoError(t, err)
		require.Equal(t, want, got, args)
	}
	got, err := ask(t.Context(), call(`{`))
	require.Error(t, err)
	require.True(t, got, "what cannot be judged needs approval")
}

func TestAToolThatCannotKeepItsWordIsRefused(t *testing.T) {
	type inList struct {
		Keys []struct {
			Key string `json:"key" countersign:"writeOnly"`
		} `json:"keys"`
	}
	type misspelled struct {
		Key string `json:"key" countersign:"writeonly"`
	}
	type unlisted struct {
		Key string `json:"-" countersign:"writeOnly"`
	}
	_, err := tools.New(tools.Spec[inList]{Name: "x", Approval: tools.Never}, discard[inList])
	require.ErrorContains(t, err, "cannot be hidden")
	_, err = tools.New(tools.Spec[misspelled]{Name: "x", Approval: tools.Never}, discard[misspelled])
	require.ErrorContains(t, err, `only "writeOnly" is`)
	_, err = tools.New(tools.Spec[unlisted]{Name: "x", Approval: tools.Never}, discard[unlisted])
	require.ErrorContains(t, err, "must be an argument")
	_, err = tools.New(tools.Spec[string]{Name: "x", Approval: tools.Never}, discard[string])
	require.ErrorContains(t, err, "a struct")
	for _, name := range []string{"", "two words", "ünder", string(make([]byte, 65))} {
		_, err = tools.New(tools.Spec[struct{}]{Name: name}, discard[struct{}])
		require.ErrorContains(t, err, "a name is", name)
	}
}

func discard[In any](context.Context, agentrun.Call, In) (string, error) { return "", nil }

func TestAToolSaysWhoMustApprove(t *testing.T) {
	ask := func(context.Context, agentrun.Call, struct{}) (bool, error) { return true, nil }
	for approval, kind := range map[tools.Approval]agentrun.Kind{tools.Never: agentrun.KindFunction, tools.Always: agentrun.KindUnapproved} {
		tool, err := tools.New(tools.Spec[struct{}]{Name: "x", Approval: approval}, discard[struct{}])
		require.NoError(t, err)
		require.Equal(t, kind, tool.Spec().Kind)
		require.EqualValues(t, approval, tool.Spec().Asks())
		_, err = tools.New(tools.Spec[struct{}]{Name: "x", Approval: approval, ApproveWhen: ask}, discard[struct{}])
		require.ErrorContains(t, err, "go together", "a condition that would not be asked")
	}
	_, err := tools.New(tools.Spec[struct{}]{Name: "x", Approval: tools.When}, discard[struct{}])
	require.ErrorContains(t, err, "go together")
	for _, unknown := range []tools.Approval{"", "sometimes", "external"} {
		_, err := tools.New(tools.Spec[struct{}]{Name: "x", Approval: unknown}, discard[struct{}])
		require.ErrorContains(t, err, "must be never, when or always")
	}
}

// The summary is compared with the schema that is derived from the struct.
func TestASummaryMustFitTheStruct(t *testing.T) {
	with := func(summary string) (agentrun.Tool, error) {
		return tools.New(tools.Spec[transfer]{Name: "transfer", Approval: tools.Always, Summary: summary}, echo)
	}
	tool, err := with(`Send {money args.cents "EUR"} to {args.to}{if args.note " with a note"}`)
	require.NoError(t, err)
	require.Equal(t, `Send {money args.cents "EUR"} to {args.to}{if args.note " with a note"}`, tool.Spec().Summary)
	for summary, want := range map[string]string{
		"Send {args.amount}":        "tool transfer: Summary: column 7: args.amount: there is no such argument; args has cents, note, secret, to",
		"Send {args.note}":          `tool transfer: Summary: column 7: args.note: a call may leave it out; add or "text" before the }, or use {if args.note "text"}`,
		`With {args.secret["p/n"]}`: "tool transfer: Summary: column 7: args.secret.p/n: it is write-only, or contains something that is, so it can't be shown; leave it out",
		"Send {":                    "tool transfer: Summary: column 6: the { is not closed; add }, or write {{ for a literal brace",
	} {
		_, err := with(summary)
		require.EqualError(t, err, want)
	}
}

func TestAPreviewIsGivenTheArguments(t *testing.T) {
	tool, err := tools.New(tools.Spec[transfer]{
		Name: "transfer", Approval: tools.Always, ChecksPrecondition: true,
		Preview: func(_ context.Context, _ agentrun.Call, in transfer) (agentrun.Preview, error) {
			return agentrun.Preview{Content: in.To}, nil
		},
		PreviewReads: func(in transfer) (string, any) { return "balance", map[string]string{"of": in.To} },
	}, echo)
	require.NoError(t, err)
	p := tool.Spec().Preview
	require.True(t, p.Checks)
	good := call(`{"to":"bo","cents":1,"secret":{"p/n":"1"}}`)
	reads, err := p.Reads(good)
	require.NoError(t, err)
	require.Equal(t, approvals.ToolCall{Name: "balance", Args: json.RawMessage(`{"of":"bo"}`)}, reads)
	got, err := p.Compute(t.Context(), good)
	require.NoError(t, err)
	require.Equal(t, agentrun.Preview{Content: "bo"}, got)

	_, err = p.Reads(call(`{"to":1}`))
	require.Error(t, err)
	_, err = p.Compute(t.Context(), call(`{"to":1}`))
	require.Error(t, err)
}

// Without the call that it amounts to, nobody could say whether it may be made.
func TestAPreviewNamesWhatItReads(t *testing.T) {
	look := func(context.Context, agentrun.Call, transfer) (agentrun.Preview, error) {
		return agentrun.Preview{}, nil
	}
	reads := func(transfer) (string, any) { return "balance", nil }
	for name, s := range map[string]tools.Spec[transfer]{
		"PreviewReads is missing": {Preview: look}, "Preview is missing": {PreviewReads: reads}, "no Preview at all": {ChecksPrecondition: true},
	} {
		s.Name, s.Approval = "transfer", tools.Always
		_, err := tools.New(s, echo)
		require.Error(t, err, name)
	}
}
