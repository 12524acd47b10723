// Package internal_test holds the architecture: which package may import
// which. A package without a rule fails.
package internal_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/countersign/countersign/"

// may lists, for every package of ours, what it may import of ours. Arrows
// point one way; adapters never import each other, only cmd/bot knows all.
var may = map[string][]string{
	"internal":                                {},
	"internal/approvals":                      {},
	"internal/telemetry":                      {"internal/approvals", "internal/agentrun"},
	"internal/summary":                        {"internal/approvals"},
	"internal/spoof":                          {"internal/approvals"},
	"internal/agentrun":                       {"internal/approvals", "internal/summary"},
	"internal/agentrun/openaimodel":           {"internal/approvals", "internal/agentrun", "internal/plainhttp"},
	"internal/agentrun/openaimodel/openaisim": {},
	"internal/state":                          {"internal/approvals", "internal/agentrun"},
	"internal/intake/intaketest":              {"internal/approvals"},
	"internal/state/statetest":                {"internal/state"},
	"internal/intake":                         {"internal/approvals", "internal/agentrun", "internal/summary"},
	"internal/redisserver":                    {"internal/state"},
	"internal/bearer":                         {"internal/approvals", "internal/intake", "internal/regular"},
	"internal/httpapi":                        {"internal/approvals", "internal/intake", "internal/bearer", "internal/httpapi/format"},
	"internal/httpapi/format":                 {"internal/approvals", "internal/intake"},
	"internal/hook":                           {"internal/regular", "internal/shellcmd/single"},
	"internal/hookserver":                     {"internal/approvals", "internal/intake", "internal/bearer", "internal/door", "internal/hook"},
	"internal/draft":                          {"internal/approvals", "internal/agentrun"},
	"internal/uistream":                       {"internal/approvals", "internal/agentrun", "internal/summary"},
	"internal/door":                           {"internal/approvals", "internal/intake", "internal/bearer"},
	"internal/gateway":                        {"internal/approvals", "internal/agentrun", "internal/intake", "internal/bearer", "internal/door"},
	"internal/slacksim":                       {"internal/slacksim/blockkit", "internal/slacksim/page"},
	"internal/slacksim/blockkit":              {},
	"internal/slacksim/bolt":                  {}, // tests only
	"internal/slacksim/page":                  {},
	"internal/slacksim/page/story":            {},
	"internal/policy":                         {"internal/approvals", "internal/argschema", "internal/shellcmd", "internal/strictyaml", "internal/summary"},
	"internal/receipt":                        {},
	"internal/shellcmd":                       {"internal/approvals"},
	"internal/shellcmd/single":                {},
	"internal/dialguard":                      {},
	"internal/plainhttp":                      {},
	"internal/regular":                        {},
	"internal/plainhttp/plainhttptest":        {},
	"internal/webhook":                        {"internal/dialguard", "internal/plainhttp"},
	"internal/outbox":                         {"internal/approvals", "internal/intake", "internal/webhook"},
	"internal/rulecheck":                      {"internal/approvals", "internal/policy", "internal/webhook"},
	"internal/strictyaml":                     {"internal/approvals"},
	"internal/argschema":                      {},
	"internal/tools":                          {"internal/approvals", "internal/agentrun", "internal/argschema", "internal/summary"},
	"internal/config":                         {"internal/approvals", "internal/agentrun", "internal/policy", "internal/receipt", "internal/redisserver", "internal/regular", "internal/rulecheck", "internal/state", "internal/strictyaml", "internal/summary", "internal/tools", "internal/tools/filetool", "internal/tools/httptool", "internal/tools/mcptool", "internal/webhook", "manifests"},
	"internal/doctor":                         {"internal/approvals", "internal/agentrun", "internal/agentrun/openaimodel", "internal/policy", "internal/redisserver", "internal/regular", "internal/state", "internal/config", "internal/tools/mcptool", "manifests", "internal/plainhttp"},
	"internal/demo":                           {"internal/approvals", "internal/agentrun", "internal/agentrun/openaimodel/openaisim", "internal/slacksim", "internal/state", "internal/tools", "internal/tools/mcpreview", "internal/tools/mcptool", "internal/config", "internal/demo/chat", "manifests"},
	"internal/demo/chat":                      {},
	"internal/bench":                          {"internal/approvals", "internal/agentrun", "internal/agentrun/openaimodel", "internal/agentrun/openaimodel/openaisim", "internal/config", "internal/intake", "internal/redisserver", "internal/slacksim", "internal/state", "internal/tools", "internal/tools/mcptool"},
	"manifests":                               {},
	"internal/tools/filetool":                 {"internal/approvals", "internal/agentrun", "internal/tools"},
	"internal/tools/mcptool":                  {"internal/approvals", "internal/agentrun", "internal/argschema", "internal/tools", "internal/plainhttp"},
	"internal/tools/httptool":                 {"internal/approvals", "internal/agentrun", "internal/argschema", "internal/dialguard", "internal/tools", "internal/plainhttp"},
	"internal/tools/mcpreview":                {"internal/approvals", "internal/tools/mcptool"},
	"internal/tools/mcptool/npm":              {},  // tests only
	"cmd/bot":                                 nil, // everything
}

// rooms are the packages of slackui in their order: each may import those before
// it, and slackui all of them.
var rooms = []string{
	"blockkit", "ref", "slackapi", "memo", "form", "verdict", "card", "directory", "inbound", "respond", "reply", "home", "chats", "delivery", "bulk", "command", "toolcards", "interact",
}

func init() {
	below := []string{"internal/approvals", "internal/agentrun", "internal/summary", "internal/spoof"}
	for _, room := range rooms {
		name := "internal/slackui/" + room
		may[name] = slices.Clone(below)
		below = append(below, name)
	}
	may["internal/slackui"] = below
}

func TestPackagesImportOnlyWhatTheyMay(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", module+"...").Output()
	require.NoError(t, err)
	seen := 0
	for d := json.NewDecoder(strings.NewReader(string(out))); ; seen++ {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		name := strings.TrimPrefix(p.ImportPath, module)
		allowed, known := may[name]
		require.True(t, known, "%s has no rule: say what it may import", name)
		if name == "cmd/bot" {
			continue
		}
		for _, i := range p.Imports {
			if ours, ok := strings.CutPrefix(i, module); ok {
				require.True(t, slices.Contains(allowed, ours), "%s may not import %s", name, ours)
			}
		}
	}
	require.Greater(t, seen, 5, "the packages were not listed")
}

func TestTestLibrariesStayOutOfTheBinary(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"cmd/bot").Output()
	require.NoError(t, err)
	for _, dep := range []string{"github.com/stretchr/testify", "pgregory.net/rapid", "github.com/getkin/kin-openapi", "k8s.io", "sigs.k8s.io", "testing"} {
		require.False(t, slices.ContainsFunc(strings.Fields(string(out)), func(p string) bool {
			return p == dep || strings.HasPrefix(p, dep+"/") && dep != "testing"
		}), "cmd/bot links %s", dep)
	}
}
