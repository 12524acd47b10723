package state

import (
	"fmt"
	"reflect"
	"sync"
)

const (
	// mostDecoded bounds what is kept decoded, or twice as much: the sum of the lengths of
	// the texts. In memory, a request takes several times its text.
	mostDecoded = 1 << 20
	// longestDecoded is the length of the longest text that is kept. A request of one call
	// has 2 kB.
	longestDecoded = 16 << 10
)

// A decoded caches recently read documents in decoded form. After a decision, the card, the
// Homes and the answer to the agent each read the same document. A document is found by all
// its bytes, so nothing in it can be outdated. Whoever gets one shares what it points to
// with others, and modifies nothing of it. The zero value is ready to use.
type decoded[T any] struct {
	once sync.Once
	clip func(v reflect.Value) // nil: there is nothing to clip

	mu         sync.Mutex
	young, old map[string]T
	size       int // of the texts of young
}

// get returns what decode makes of the document.
func (d *decoded[T]) get(doc []byte, decode func([]byte) (T, error)) (T, error) {
	v, ok := d.find(doc)
	if ok {
		if checksShared {
			checkShared(v, doc, decode)
		}
		return v, nil
	}
	v, err := decode(doc)
	if err == nil && textLength(doc) <= longestDecoded {
		d.once.Do(func() { d.clip = clipOf(reflect.TypeFor[T]()) })
		if d.clip != nil {
			d.clip(reflect.ValueOf(&v).Elem())
		}
		d.keep(string(doc), v)
	}
	return v, err
}

func (d *decoded[T]) find(doc []byte) (T, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v, ok := d.young[string(doc)]; ok {
		return v, true
	}
	v, ok := d.old[string(doc)]
	if ok {
		d.put(string(doc), v)
	}
	return v, ok
}

func (d *decoded[T]) keep(doc string, v T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.put(doc, v)
}

// put keeps one more document. The caller holds mu.
func (d *decoded[T]) put(doc string, v T) {
	length := textLength([]byte(doc))
	if d.young == nil || d.size+length > mostDecoded {
		d.young, d.old, d.size = make(map[string]T), d.young, 0
	}
	d.young[doc] = v
	d.size += length
}

// clipOf returns what takes their spare capacity from all slices in a value of the type, so
// that two who append to the same one do not write to the same place. It is nil if there can
// be none. It does not look into maps: those of stored documents have no slices. The type
// must not contain itself.
func clipOf(t reflect.Type) func(v reflect.Value) {
	switch t.Kind() {
	case reflect.Pointer:
		clip := clipOf(t.Elem())
		if clip == nil {
			return nil
		}
		return func(v reflect.Value) {
			if !v.IsNil() {
				clip(v.Elem())
			}
		}
	case reflect.Slice:
		clip := clipOf(t.Elem())
		return func(v reflect.Value) {
			v.SetCap(v.Len())
			for i := 0; clip != nil && i < v.Len(); i++ {
				clip(v.Index(i))
			}
		}
	case reflect.Struct:
		return clipOfStruct(t)
	default: // it has no slices
		return nil
	}
}

func clipOfStruct(t reflect.Type) func(v reflect.Value) {
	type field struct {
		at   int
		clip func(v reflect.Value)
	}
	var fields []field
	for i := range t.NumField() {
		if clip := clipOf(t.Field(i).Type); clip != nil && t.Field(i).IsExported() {
			fields = append(fields, field{i, clip})
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return func(v reflect.Value) {
		for _, f := range fields {
			f.clip(v.Field(f.at))
		}
	}
}

// checkShared panics if somebody has modified a document that others share. It is for
// tests, see [checksShared].
func checkShared[T any](v T, doc []byte, decode func([]byte) (T, error)) {
	if is, err := decode(doc); err != nil || !reflect.DeepEqual(is, v) {
		panic(fmt.Sprintf("a stored %T that others share was modified", v))
	}
}
