package argschema

import (
	"errors"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// ErrTooMuch says that the arguments are compared with parts of the schema too often. A
// schema that contains itself twice in the same place doubles the work with each level.
var ErrTooMuch = errors.New("the schema asks for too many comparisons of these arguments")

// A judgment compares values with parts of the schema at most maxCompared times, and
// comparedByValue times more for each value in the arguments.
const (
	maxCompared     = 50_000
	comparedByValue = 10
)

// A meter counts the comparisons of one judgment, for which the library has no bound.
type meter struct {
	mu   sync.Mutex // held during a judgment
	left int
}

// run makes a judgment of the instance.
func (m *meter) run(instance any, judge func() error) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = maxCompared + comparedByValue*values(instance)
	defer func() {
		if p := recover(); p == ErrTooMuch { //nolint:errorlint // it is what spend panics with
			err = ErrTooMuch
		} else if p != nil {
			panic(p)
		}
	}()
	return judge()
}

func (m *meter) spend() {
	if m.left--; m.left < 0 {
		panic(ErrTooMuch)
	}
}

// vocabulary has no keywords. It makes every part of a schema count: the library looks at
// the format of a part before it goes into what the part consists of.
func (m *meter) vocabulary() *jsonschema.Vocabulary {
	return &jsonschema.Vocabulary{
		URL: "urn:countersign:meter",
		Compile: func(c *jsonschema.CompilerContext, _ map[string]any) (jsonschema.SchemaExt, error) {
			part := c.Enqueue(nil)
			counted := jsonschema.Format{Validate: func(any) error { m.spend(); return nil }}
			if f := part.Format; f != nil {
				counted = jsonschema.Format{Name: f.Name, Validate: func(v any) error { m.spend(); return f.Validate(v) }}
			}
			part.Format = &counted
			return nil, nil
		},
	}
}

// values is how many values there are in a document.
func values(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += values(e)
		}
	case []any:
		for _, e := range v {
			n += values(e)
		}
	}
	return n
}
