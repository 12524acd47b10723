package receipt_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The verifiers of docs/receipts.md, which share no code with ours, agree with
// every vector.
func TestTheVerifiersOfTheDocumentationAgree(t *testing.T) {
	page, err := os.ReadFile("../../docs/receipts.md")
	require.NoError(t, err)
	vectors, err := filepath.Abs(vectorFile)
	require.NoError(t, err)
	for _, c := range []struct{ language, program, file, rest string }{
		{"js", "node", "verify.mjs", `
import { readFileSync } from "node:fs";
const v = JSON.parse(readFileSync(process.argv[2]));
const at = new Date("2026-11-22T07:31:00Z");
const passes = (receipt, tool, args, now) => { try { return !!check(v.keys, receipt, tool, args, now); } catch { return false; } };
const canonical = (x) => Array.isArray(x) ? x.map(canonical) : x && typeof x === "object" ? Object.fromEntries(Object.keys(x).sort().map((k) => [k, canonical(x[k])])) : x;
for (const { statement: s, receipt } of v.valid) {
  console.log(passes(receipt, s.tool, v.arguments, at), passes(receipt, "other", v.arguments, at), passes(receipt, s.tool, "{}", at), passes(receipt, s.tool, v.arguments, new Date("2030-01-01")));
  if (Buffer.from(receipt.split(".")[1], "base64url").toString() !== JSON.stringify(canonical(s))) throw new Error("not canonical");
}
for (const name of ["no algorithm", "hmac with the public key", "another type", "unknown kid", "changed payload", "key of a stranger", "kid of ours, signed by a stranger", "four parts", "next version", "unknown outcome"]) {
  const { receipt } = v.invalid.find((c) => c.name === name);
  if (passes(receipt, v.valid[0].statement.tool, v.arguments, at)) throw new Error(name);
}
`},
		{"python", "python3", "verify.py", `
import sys
v = json.load(open(sys.argv[1]))
def at(s): return datetime.datetime.fromisoformat(s + "+00:00")
def passes(*a):
    try: return bool(check(v["keys"], *a))
    except Exception: return False
b, t = v["arguments"].encode(), at("2026-11-22T07:31:00")
for c in v["valid"]:
    tool, r = c["statement"]["tool"], c["receipt"]
    print(*[str(x).lower() for x in (passes(r, tool, b, t), passes(r, "other", b, t), passes(r, tool, b"{}", t), passes(r, tool, b, at("2030-01-01T00:00:00")))])
for name in ["no algorithm", "hmac with the public key", "another type", "unknown kid", "changed payload", "key of a stranger", "kid of ours, signed by a stranger", "four parts", "next version", "unknown outcome"]:
    r = next(c["receipt"] for c in v["invalid"] if c["name"] == name)
    assert not passes(r, v["valid"][0]["statement"]["tool"], b, t), name
`},
	} {
		t.Run(c.language, func(t *testing.T) {
			program, err := exec.LookPath(c.program)
			require.NoError(t, err, "the tests need Node.js 20 or later and Python 3: run `make deps`")
			if c.language == "python" {
				require.NoError(t, exec.CommandContext(t.Context(), program, "-c", "import cryptography").Run(), "the tests need the package cryptography of Python: run `make deps`")
			}
			block := regexp.MustCompile("(?s)```" + c.language + "\n(.*?)```").FindSubmatch(page)
			require.NotNil(t, block)
			script := filepath.Join(t.TempDir(), c.file)
			require.NoError(t, os.WriteFile(script, fmt.Append(nil, string(block[1]), c.rest), 0o600))
			out, err := exec.CommandContext(t.Context(), program, script, vectors).CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Equal(t, "true false false false\ntrue false false false\ntrue false false false\n"+strings.Repeat("false false false false\n", 4), string(out))
		})
	}
}
