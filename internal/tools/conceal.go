package tools

import (
	"cmp"
	"slices"
	"strings"
)

// shortestSecret is the length from which a value is looked for in text. Shorter
// ones, such as 1 or on, are in ordinary words.
const shortestSecret = 4

// Conceal returns text of an endpoint or a server without the secrets that were sent
// to it, should it hold one of them.
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

// HeaderSecrets are the values of headers, and of those with a scheme, such as
// Bearer, the credential alone.
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
