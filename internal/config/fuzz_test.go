package config

import (
	"bytes"
	"os"
	"testing"

	"github.com/goccy/go-yaml"
)

// What is accepted is what the strict decoder accepts too, and no file is a
// panic.
func FuzzConfig(f *testing.F) {
	starting, err := os.ReadFile("../../cmd/bot/init.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{
		good, string(starting), "a: &a [*a]\n", "? x\n: y\n", "<<: {}\n", "redis: {<<: [*x]}\n",
		"agents: [{name: a, who: &w {users: [U0BOB1]}}, {name: b, who: *w}]\n", "runs:\n  lease: |\n    5s\n", "!!map {}\n", "- \n", "redis:\n  prefix: !!str 5\n",
		"agents:\n  - name: a\n    channels: !x\nruns: {lease: 5s}\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, problems := Decode([]byte(text))
		if len(problems) > 0 {
			return
		}
		var strict Config
		if err := yaml.NewDecoder(bytes.NewReader([]byte(text)), yaml.DisallowUnknownField()).Decode(&strict); err != nil {
			t.Fatalf("accepted, and the strict decoder says: %v\n%s", err, text)
		}
	})
}
