package httptool

import (
	"encoding/json"
	"net/url"
)

// Target is where a call with these arguments goes.
func Target(t *Tool, args json.RawMessage) (*url.URL, error) {
	u, _, err := t.request(args)
	return u, err
}
