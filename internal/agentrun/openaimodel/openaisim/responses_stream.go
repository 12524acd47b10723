package openaisim

import (
	"encoding/json"
	"net/http"
)

type response struct {
	ID                string        `json:"id"`
	Object            string        `json:"object"`
	CreatedAt         int64         `json:"created_at"`
	Status            string        `json:"status"`
	Error             any           `json:"error"`
	IncompleteDetails *incomplete   `json:"incomplete_details"`
	Instructions      *string       `json:"instructions"`
	Model             string        `json:"model"`
	Output            []outputItem  `json:"output"`
	ParallelToolCalls bool          `json:"parallel_tool_calls"`
	PreviousID        *string       `json:"previous_response_id"`
	Store             bool          `json:"store"`
	Text              textFormat    `json:"text"`
	ToolChoice        string        `json:"tool_choice"`
	Tools             []echoedTool  `json:"tools"`
	Usage             responseUsage `json:"usage"`
}

type incomplete struct {
	Reason string `json:"reason"`
}

type textFormat struct {
	Format map[string]string `json:"format"`
}

type echoedTool struct {
	Type         string          `json:"type"`
	Name         string          `json:"name,omitempty"`
	Parameters   json.RawMessage `json:"parameters,omitempty"`
	ServerLabel  string          `json:"server_label,omitempty"`
	AllowedTools []string        `json:"allowed_tools,omitempty"`
}

type responseUsage struct {
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
	TotalTokens  int `json:"total_tokens"`
}

// An outputItem is one of the output. Its type says which fields it has.
type outputItem struct {
	Type              string       `json:"type"`
	ID                string       `json:"id"`
	Status            string       `json:"status,omitempty"`
	Role              string       `json:"role,omitempty"`
	Content           []outputText `json:"content,omitempty"`
	Summary           *[]any       `json:"summary,omitempty"`
	EncryptedContent  string       `json:"encrypted_content,omitempty"`
	CallID            string       `json:"call_id,omitempty"`
	Name              string       `json:"name,omitempty"`
	Arguments         *string      `json:"arguments,omitempty"`
	ServerLabel       string       `json:"server_label,omitempty"`
	Tools             []any        `json:"tools,omitempty"`
	ApprovalRequestID *string      `json:"approval_request_id,omitempty"`
	Output            *string      `json:"output,omitempty"`
	Error             *string      `json:"error,omitempty"`
}

type outputText struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations"`
}

// result is what a call of the provider gave.
func (i outputItem) result() string {
	switch {
	case i.Error != nil:
		return "Error: " + *i.Error
	case i.Output != nil:
		return *i.Output
	}
	return ""
}

// A responseEvent is one of a stream.
type responseEvent struct {
	Type           string      `json:"type"`
	SequenceNumber int         `json:"sequence_number"`
	Response       *response   `json:"response,omitempty"`
	OutputIndex    *int        `json:"output_index,omitempty"`
	ItemID         string      `json:"item_id,omitempty"`
	Item           *outputItem `json:"item,omitempty"`
	ContentIndex   *int        `json:"content_index,omitempty"`
	Delta          *string     `json:"delta,omitempty"`
	Text           *string     `json:"text,omitempty"`
	Arguments      *string     `json:"arguments,omitempty"`
	Code           *string     `json:"code,omitempty"`
	Message        string      `json:"message,omitempty"`
	Param          *string     `json:"param,omitempty"`
}

// events returns the response as the events of a stream.
func (a response) events() ([][]byte, error) {
	begun := a
	begun.Status, begun.Output, begun.IncompleteDetails, begun.Usage = "in_progress", []outputItem{}, nil, responseUsage{}
	all := []responseEvent{{Type: "response.created", Response: &begun}, {Type: "response.in_progress", Response: &begun}}
	for i, item := range a.Output {
		all = append(all, item.events(i)...)
	}
	all = append(all, responseEvent{Type: "response." + a.Status, Response: &a})
	var out [][]byte
	for n, e := range all {
		e.SequenceNumber = n
		b, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// events are those of one item.
func (i outputItem) events(index int) []responseEvent {
	begun := i
	begun.Content, begun.Output, begun.Error, begun.Status = nil, nil, nil, "in_progress"
	all := []responseEvent{{Type: "response.output_item.added", OutputIndex: &index, Item: &begun}}
	add := func(kind string, change func(*responseEvent)) {
		e := responseEvent{Type: kind, OutputIndex: &index, ItemID: i.ID}
		change(&e)
		all = append(all, e)
	}
	nothing := func(*responseEvent) {}
	switch i.Type {
	case "message":
		zero, text := 0, i.Content[0].Text
		for _, piece := range pieces(text, textPiece) {
			add("response.output_text.delta", func(e *responseEvent) { e.ContentIndex, e.Delta = &zero, &piece })
		}
		add("response.output_text.done", func(e *responseEvent) { e.ContentIndex, e.Text = &zero, &text })
	case "function_call":
		for _, piece := range pieces(*i.Arguments, argsPiece) {
			add("response.function_call_arguments.delta", func(e *responseEvent) { e.Delta = &piece })
		}
		add("response.function_call_arguments.done", func(e *responseEvent) { e.Arguments = i.Arguments })
	case "mcp_call":
		add("response.mcp_call.in_progress", nothing)
		add("response.mcp_call_arguments.done", func(e *responseEvent) { e.Arguments = i.Arguments })
		add("response.mcp_call."+i.Status, nothing)
	case "mcp_list_tools":
		add("response.mcp_list_tools.in_progress", nothing)
		add("response.mcp_list_tools.completed", nothing)
	}
	return append(all, responseEvent{Type: "response.output_item.done", OutputIndex: &index, Item: &i})
}

// deliverResponse sends the response, whole or streamed, or as much of it as the
// fault lets through.
func deliverResponse(w http.ResponseWriter, r *http.Request, request responsesRequest, a response, f Fault) {
	switch f.Kind {
	case HungUp:
		panic(http.ErrAbortHandler)
	case WrongContentType:
		writePage(w, http.StatusOK)
		return
	default:
	}
	if !request.Stream {
		body, err := json.Marshal(a)
		if err != nil {
			panic(err) // unreachable: a response always has a JSON form
		}
		writeWhole(w, r, body, f)
		return
	}
	events, err := a.events()
	if err != nil {
		panic(err) // unreachable: a response always has a JSON form
	}
	deliverStream(w, r, events, f, sendErrorEvent)
}

func sendErrorEvent(w http.ResponseWriter) {
	code := "server_error"
	b, err := json.Marshal(responseEvent{Type: "error", Code: &code, Message: "Scripted: the server had an error."})
	if err != nil {
		panic(err) // unreachable: an event always has a JSON form
	}
	send(w, b)
}
