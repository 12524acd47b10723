package tools

import (
	"cmp"
	"slices"
	"strings"
)

// shortestSecret is the length of the shortest value that is replaced. Shorter ones,
// such as 1 or on, are parts of ordinary words.
const shortestSecret = 4

// Conceal returns a text of an endpoint or a server with every occurrence of the
// secrets that were sent to it replaced by [redacted].
func Conceal(text string, secrets ...string) string {
	var pairs []string
	// The longest first: one secret can begin with another one.
	longest := func(a, b string) int { return cmp.Compare(len(b), len(a)) }
	for _, s := range slices.SortedFunc(slices.Values(secrets), longest) {
		if len(s) >= shortestSecret {
			pairs = append(pairs, s, "[redacted]")
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// HeaderSecrets returns the values of headers. For a value with a scheme, such as
// Bearer, it also returns the credential alone.
func HeaderSecrets(headers map[string]string) []string {
	var all []string
	for _, v := range headers {
		all = append(all, v)
		if _, credential, ok := strings.Cut(v, " "); ok {
			all = append(all, credential)
		}
	}
	return all
}
