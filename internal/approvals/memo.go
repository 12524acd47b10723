package approvals

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// DecodeMemo reads a memo, a JSON document that an adapter keeps beside a run or a
// batch and that has its schema in the field "v". A memo of another schema, an
// unknown field and anything behind the document are [ErrUnreadable]: what was
// written by a newer version is never read in part.
func DecodeMemo(data []byte, schema int, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: more than one value", ErrUnreadable)
	}
	var head struct {
		Schema int `json:"v"`
	}
	if err := json.Unmarshal(data, &head); err != nil || head.Schema != schema {
		return fmt.Errorf("%w: version %d", ErrUnreadable, head.Schema)
	}
	return nil
}
