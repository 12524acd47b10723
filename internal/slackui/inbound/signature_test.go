package inbound

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The worked example of Slack's documentation.
const (
	docSecret    = "8f742231b10e8888abcd99yyyzzz85a5"
	docTimestamp = 1531420618
	docSignature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
	docBody      = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)

func TestSignatures(t *testing.T) {
	stamp := strconv.Itoa(docTimestamp)
	at := func(skew time.Duration) time.Time { return time.Unix(docTimestamp, 0).Add(skew) }
	for name, c := range map[string]struct {
		stamp, signature, body string
		now                    time.Time
		want                   error
	}{
		"Slack's own example":       {stamp, docSignature, docBody, at(0), nil},
		"300 s old":                 {stamp, docSignature, docBody, at(300 * time.Second), nil},
		"301 s old":                 {stamp, docSignature, docBody, at(301 * time.Second), errOldSignature},
		"300 s ahead":               {stamp, docSignature, docBody, at(-300 * time.Second), nil},
		"301 s ahead":               {stamp, docSignature, docBody, at(-301 * time.Second), errOldSignature},
		"a day ahead":               {stamp, docSignature, docBody, at(-24 * time.Hour), errOldSignature},
		"uppercase hex":             {stamp, "v0=" + strings.ToUpper(docSignature[3:]), docBody, at(0), errBadSignature},
		"one byte altered":          {stamp, docSignature, docBody[:len(docBody)-1] + "d", at(0), errBadSignature},
		"a newline more":            {stamp, docSignature, docBody + "\n", at(0), errBadSignature},
		"no body":                   {stamp, docSignature, "", at(0), errBadSignature},
		"short":                     {stamp, docSignature[:20], docBody, at(0), errBadSignature},
		"only the version":          {stamp, "v0=", docBody, at(0), errBadSignature},
		"another version":           {stamp, "v1=" + docSignature[3:], docBody, at(0), errBadSignature},
		"no version":                {stamp, docSignature[3:], docBody, at(0), errBadSignature},
		"no signature":              {stamp, "", docBody, at(0), ErrNoSignature},
		"no timestamp":              {"", docSignature, docBody, at(0), ErrNoSignature},
		"timestamp not a number":    {"yesterday", docSignature, docBody, at(0), ErrNoSignature},
		"timestamp with a sign":     {"+" + stamp, docSignature, docBody, at(0), ErrNoSignature},
		"timestamp too large":       {"99999999999999999999", docSignature, docBody, at(0), ErrNoSignature},
		"timestamp at the far end":  {"9223372036854775807", docSignature, docBody, at(0), errOldSignature},
		"timestamp before all time": {"-9223372036854775808", docSignature, docBody, at(0), errOldSignature},
		"timestamp of another time": {strconv.Itoa(docTimestamp + 1), docSignature, docBody, at(0), errBadSignature},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			h.Set("x-slack-request-timestamp", c.stamp)
			h.Set("X-SLACK-SIGNATURE", c.signature)
			require.ErrorIs(t, verify(docSecret, h, []byte(c.body), c.now), c.want)
		})
	}
}
