package summary

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const emptyText = "(empty)"

// scalar writes a text or a number in at most n characters.
func scalar(v any, n int) (string, bool) {
	switch v := v.(type) {
	case string:
		if v = oneLine(v); v == "" {
			return emptyText, true
		}
		return cut(v, n), true
	case json.Number:
		return cut(v.String(), n), true
	}
	return "", false
}

func (c call) show() (string, bool) {
	v, _ := c.value(0)
	return scalar(v, valueLimit)
}

func (c call) short() (string, bool) {
	v, _ := c.value(0)
	if _, ok := v.(string); !ok {
		return "", false
	}
	return scalar(v, c.args[1].number)
}

func (c call) money() (string, bool)  { return c.moneyIn(true) }
func (c call) amount() (string, bool) { return c.moneyIn(false) }

func (c call) moneyIn(minor bool) (string, bool) {
	v, _ := c.value(0)
	number, ok := v.(json.Number)
	written := number.String()
	if text, isText := v.(string); isText && !minor {
		written, ok = text, json.Valid([]byte(text))
	}
	if !ok {
		return "", false
	}
	currency := c.args[1].text
	if c.args[1].kind == operandPath {
		v, ok := c.value(1)
		if !ok {
			return "", false
		}
		if !given(v) && c.or != nil {
			return *c.or, true
		}
		currency, _ = v.(string)
	}
	d, ok := newDecimal(written)
	if !ok {
		return "", false
	}
	return money(d, currency, minor)
}

func (c call) count() (string, bool) {
	v, _ := c.value(0)
	one, many := c.args[1].text, ""
	if len(c.args) > 2 {
		many = c.args[2].text
	}
	number := ""
	switch v := v.(type) {
	case []any:
		number = strconv.Itoa(len(v))
	case map[string]any:
		number = strconv.Itoa(len(v))
	case json.Number:
		number = v.String()
	}
	d, ok := newDecimal(number)
	if !ok {
		return "", false
	}
	return d.format(0) + " " + plural(d, one, many), true
}

// shownItems is how many items list shows without a number.
const shownItems = 3

func (c call) list() (string, bool) {
	v, _ := c.value(0)
	list, ok := v.([]any)
	if !ok {
		return "", false
	}
	most := shownItems
	if len(c.args) > 1 {
		most = c.args[1].number
	}
	var shown []string
	for _, item := range list[:min(most, len(list))] {
		text, ok := scalar(item, nameLimit)
		if !ok {
			return "", false
		}
		shown = append(shown, text)
	}
	if more := len(list) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("%d more", more))
	}
	return enumeration(shown), true
}

// enumeration joins words as English does.
func enumeration(words []string) string {
	switch n := len(words); n {
	case 0:
		return "(none)"
	case 1:
		return words[0]
	case 2:
		return words[0] + " and " + words[1]
	default:
		return strings.Join(words[:n-1], ", ") + ", and " + words[n-1]
	}
}

const dateLayout = "Jan 2, 2006"

func (c call) date() (string, bool) {
	v, _ := c.value(0)
	text, _ := v.(string)
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.Format(dateLayout), true
	}
	at, err := time.Parse(time.RFC3339, text)
	return at.Format(dateLayout), err == nil
}

func (c call) time() (string, bool) {
	v, _ := c.value(0)
	text, _ := v.(string)
	at, err := time.Parse(time.RFC3339, text)
	layout := dateLayout + ", 15:04"
	if at.Second() != 0 {
		layout += ":05"
	}
	if _, offset := at.Zone(); offset == 0 {
		return at.Format(layout) + " UTC", err == nil
	}
	return at.Format(layout + " -07:00"), err == nil
}

func (c call) bytes() (string, bool) {
	v, _ := c.value(0)
	written := ""
	switch v := v.(type) {
	case string:
		written = strconv.Itoa(len(v))
	case json.Number:
		written = v.String()
	}
	d, ok := newDecimal(written)
	if !ok {
		return "", false
	}
	return size(d)
}

func (c call) choose() (string, bool) {
	v, ok := c.value(0)
	truth, isTruth := v.(bool)
	switch {
	case !ok:
		return "", false
	case isTruth && truth, !isTruth && given(v):
		return c.args[1].text, true
	case len(c.args) > 2:
		return c.args[2].text, true
	}
	return "", true
}

// shownFields is how many arguments fields and the default show.
const shownFields = 3

func (c call) fields() (string, bool) {
	var all []field
	for i, a := range c.args {
		v, ok := c.value(i)
		if !ok {
			return "", false
		}
		all = append(all, field{strings.TrimPrefix(a.path.String(), "args."), v})
	}
	return named(all), true
}

// A field is an argument with its name.
type field struct {
	name  string
	value any
}

// named writes the first fields that say something, in parentheses.
func named(all []field) string {
	var shown []string
	for _, f := range all {
		if len(shown) == shownFields {
			break
		}
		if text, ok := f.text(); ok && given(f.value) {
			shown = append(shown, cut(oneLine(f.name), nameLimit)+": "+text)
		}
	}
	if len(shown) == 0 {
		return ""
	}
	return " (" + strings.Join(shown, ", ") + ")"
}

var inQuotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func (f field) text() (string, bool) {
	switch v := f.value.(type) {
	case string:
		return `"` + cut(inQuotes.Replace(oneLine(v)), valueLimit) + `"`, true
	case bool:
		return strconv.FormatBool(v), true
	case []any:
		d, ok := newDecimal(strconv.Itoa(len(v)))
		return d.format(0) + " " + plural(d, "item", ""), ok
	}
	return scalar(f.value, valueLimit)
}
