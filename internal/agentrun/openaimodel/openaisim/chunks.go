package openaisim

import "encoding/json"

// How many characters one delta carries. Arguments are cut with no regard for
// JSON, in the middle of a word or of an escape, as the real server does.
const (
	textPiece = 12
	argsPiece = 9
)

type chunk struct {
	ID                string          `json:"id"`
	Object            string          `json:"object"`
	Created           int64           `json:"created"`
	Model             string          `json:"model"`
	ServiceTier       string          `json:"service_tier"`
	SystemFingerprint string          `json:"system_fingerprint"`
	Choices           []chunkChoice   `json:"choices"`
	Usage             json.RawMessage `json:"usage,omitempty"`
}

type chunkChoice struct {
	Index        int     `json:"index"`
	Delta        delta   `json:"delta"`
	Logprobs     any     `json:"logprobs"`
	FinishReason *string `json:"finish_reason"`
}

type delta struct {
	Role      string          `json:"role,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`
	Refusal   json.RawMessage `json:"refusal,omitempty"`
	ToolCalls []callDelta     `json:"tool_calls,omitempty"`
}

type callDelta struct {
	Index    int          `json:"index"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function callFunction `json:"function"`
}

var null = json.RawMessage("null")

// chunks returns the answer as the documents of a stream, without the [DONE]
// that ends it.
func (a answer) chunks(withUsage bool) ([][]byte, error) {
	var out [][]byte
	for _, c := range a.choices() {
		doc := a.chunk([]chunkChoice{c})
		if withUsage {
			doc.Usage = null
		}
		b, err := json.Marshal(doc)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	if !withUsage {
		return out, nil
	}
	doc := a.chunk([]chunkChoice{})
	counted, err := json.Marshal(a.usage)
	if err != nil {
		return nil, err
	}
	doc.Usage = counted
	b, err := json.Marshal(doc)
	return append(out, b), err
}

func (a answer) chunk(choices []chunkChoice) chunk {
	return chunk{
		ID: a.id, Object: "chat.completion.chunk", Created: created, Model: ModelName,
		ServiceTier: "default", SystemFingerprint: ModelName, Choices: choices,
	}
}

// choices returns, in order: the role, the text in pieces, the calls, the
// finish reason.
func (a answer) choices() []chunkChoice {
	if a.noChoices {
		return nil
	}
	role := delta{Role: "assistant", Content: json.RawMessage(`""`), Refusal: null}
	if a.text == "" && len(a.calls) > 0 {
		role.Content = null
	}
	out := []chunkChoice{{Delta: role}}
	for _, piece := range pieces(a.text, textPiece) {
		out = append(out, chunkChoice{Delta: delta{Content: quote(piece)}})
	}
	for _, c := range callDeltas(a.calls) {
		out = append(out, chunkChoice{Delta: delta{ToolCalls: []callDelta{c}}})
	}
	return append(out, chunkChoice{FinishReason: &a.finish})
}

// callDeltas deals the calls out in rounds, as parallel calls come: first each
// one's id and name, then a piece of each one's arguments in turn.
func callDeltas(calls []Call) []callDelta {
	var out []callDelta
	args := make([][]string, len(calls))
	rounds := 0
	for i, call := range calls {
		out = append(out, callDelta{Index: i, ID: call.ID, Type: "function", Function: callFunction{Name: call.Name}})
		args[i] = pieces(call.Args, argsPiece)
		rounds = max(rounds, len(args[i]))
	}
	for round := range rounds {
		for i := range calls {
			if round < len(args[i]) {
				out = append(out, callDelta{Index: i, Function: callFunction{Arguments: args[i][round]}})
			}
		}
	}
	return out
}

// pieces cuts s into parts of size runes.
func pieces(s string, size int) []string {
	var out []string
	for runes := []rune(s); len(runes) > 0; {
		n := min(size, len(runes))
		out = append(out, string(runes[:n]))
		runes = runes[n:]
	}
	return out
}

// quote returns s as a JSON string.
func quote(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // unreachable: every string has a JSON form
	}
	return b
}
