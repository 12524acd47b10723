package form

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// editInput is the action_id of every input of a form.
const editInput = "value"

// entered is the state of one input of a submitted form.
type entered struct {
	Value    string `json:"value"`
	Date     string `json:"selected_date"`
	Selected struct {
		Value string `json:"value"`
	} `json:"selected_option"`
	Chosen []struct {
		Value string `json:"value"`
	} `json:"selected_options"`
}

// States are the inputs of a submitted form, by block_id and action_id.
type States map[string]map[string]entered

// Read returns the arguments with the values that were entered. All other values
// keep their bytes. Problems are by the key of their field. known is false if
// the inputs are those of another form.
func (f EditForm) Read(in States) (args []byte, problems map[string]string, known bool) {
	args, problems = f.Args, map[string]string{}
	for _, x := range f.Fields {
		state, ok := in[x.Key()][editInput]
		if !ok {
			return nil, nil, false
		}
		value, touched, problem := x.read(state)
		switch {
		case problem != "":
			problems[x.Key()] = problem
		case touched:
			args = setAt(args, x.Path, value)
		}
	}
	return args, problems, true
}

// read returns the JSON that was entered, nil to leave the value out.
func (x field) read(in entered) (value []byte, touched bool, problem string) {
	text := in.Value
	switch x.input {
	case inputChoice:
		return x.chosen(in.Selected.Value)
	case inputDate:
		text = in.Date
	case inputText, inputNumber, inputWhole, inputJSON, inputSecret:
	}
	if normalizeLines(text) == normalizeLines(x.initial) {
		return nil, false, ""
	}
	if trimmed := strings.TrimSpace(text); x.input != inputText && x.input != inputSecret {
		text = trimmed
	}
	switch {
	case text == "" && !x.required:
		return nil, x.present, ""
	case text == "" && x.input != inputText:
		return nil, false, needed
	}
	switch x.input {
	case inputNumber:
		if !isNumber(text) {
			return nil, false, needsNumber
		}
		return []byte(text), true, ""
	case inputWhole:
		if !isWhole(text) {
			return nil, false, needsWhole
		}
		return []byte(text), true, ""
	case inputDate:
		if _, err := time.Parse(time.DateOnly, text); err != nil {
			return nil, false, needsDate
		}
	case inputJSON:
		if !json.Valid([]byte(text)) {
			return nil, false, badJSON + syntaxProblem(text) + "."
		}
		return []byte(text), true, ""
	case inputSecret:
		if !x.asJSON {
			break
		}
		if !json.Valid([]byte(text)) {
			return nil, false, needsJSON
		}
		return []byte(text), true, ""
	case inputText, inputChoice:
	}
	return jsonText(text), true, ""
}

func (x field) chosen(value string) ([]byte, bool, string) {
	i, err := strconv.Atoi(value)
	switch {
	case value == x.initial:
		return nil, false, ""
	case err != nil || i < 0 || i >= len(x.options):
		return nil, false, needsChoice
	}
	return x.options[i].raw, true, ""
}

// normalizeLines writes the ends of lines as Go does: an input may change them.
func normalizeLines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// syntaxProblem says in which line a text stops being JSON, without quoting it. Where
// no value of JSON can begin, people wrote a text as it is: then it says what is missing.
func syntaxProblem(s string) string {
	var v json.RawMessage
	syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal([]byte(s), &v))
	if !ok {
		return badJSONMore
	}
	before := s[:min(int(syntax.Offset), len(s))]
	said := badJSONLine + blockkit.Number(strings.Count(before, "\n")+1)
	if !strings.ContainsAny(s[:1], "{[\"") {
		said += badJSONText
	}
	return said
}

var (
	numberForm = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	wholeForm  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
)

func isNumber(s string) bool { return numberForm.MatchString(s) }

func isWhole(s string) bool { return wholeForm.MatchString(s) }

// Place assigns each error of the arguments to its input, by the key of the
// field. An error of no input is assigned to the first one.
func (f EditForm) Place(wrong []*agentrun.ArgumentError) map[string]string {
	problems := map[string]string{}
	for _, e := range wrong {
		best, length := f.Fields[0], -1
		for _, x := range f.Fields {
			pointer := pointerTo(x.Path)
			if inside := e.Pointer == pointer || strings.HasPrefix(e.Pointer, pointer+"/"); inside && len(pointer) > length {
				best, length = x, len(pointer)
			}
		}
		words := blockkit.Sentence(e.Message)
		if length < 0 && e.Pointer != "" {
			words = blockkit.Sentence(blockkit.Brief(e.Pointer, 80) + ": " + e.Message)
		}
		if before := problems[best.Key()]; before != "" {
			words = before + " " + words
		}
		problems[best.Key()] = blockkit.Clip(words, 1000)
	}
	return problems
}
