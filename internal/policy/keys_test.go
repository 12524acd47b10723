package policy

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/strictyaml"
)

const (
	keyHead = "groups: {sre: S0SRE00001, security: S0SECUR001, war-room: C0WARROOM1, ops: C0OPS00001}\n" +
		"people: {alice: U0ALICE001, bob: U0BOB00001, carol: U0CAROL001}\n" +
		"managers: {alice: carol}\n" +
		"roles: {lead: {people: [bob], groups: [security], channels: [ops]}}\n" +
		"calendars: {office: {zone: Europe/Berlin, days: [mon, tue], from: \"09:00\", to: \"17:00\", holidays: [\"2026-03-10\"]}}\n"
	keyDefault = "default: {why: default, quorums: [{name: d, from: {groups: [sre]}}]}\n"
	// What nothing uses is refused.
	keyUses = "  - {name: uses, mode: shadow, tools: [list_files], ask: {quorums: [{name: u, from: {groups: [sre], roles: [lead]}}], hours: office}}\n"
	keyAsk  = "why: x, quorums: [{name: a, from: {groups: [sre]}}]"
)

// A key is changed, and nothing else: the rulings must change.
func keyCases() map[string][2]string {
	rule := func(before, after string) [2]string {
		doc := func(s string) string {
			return keyHead + keyDefault + "rules:\n  - {" + s + "}\n"
		}
		return [2]string{doc(before), doc(after)}
	}
	deny := "name: r, tools: [delete_file], deny: no"
	ask := func(more string) [2]string {
		return rule("name: r, tools: [delete_file], ask: {"+keyAsk+"}", "name: r, tools: [delete_file], ask: {"+keyAsk+more+"}")
	}
	quorums := func(before, after string) [2]string {
		return rule("name: r, tools: [delete_file], ask: {quorums: ["+before+"]}", "name: r, tools: [delete_file], ask: {quorums: ["+after+"]}")
	}
	from := func(f string) [2]string {
		return quorums("{name: a, from: {groups: [sre]}}", "{name: a, from: {groups: [sre], "+f+"}}")
	}
	veto := func(before, after string) [2]string {
		return rule("name: r, tools: [delete_file], ask: {"+keyAsk+", veto: ["+before+"]}", "name: r, tools: [delete_file], ask: {"+keyAsk+", veto: ["+after+"]}")
	}
	escalate := func(before, after string) [2]string {
		two := "why: x, quorums: [{name: a, from: {groups: [sre]}}, {name: b, from: {groups: [sre]}}]"
		return rule("name: r, tools: [delete_file], ask: {"+two+", escalate: ["+before+"]}", "name: r, tools: [delete_file], ask: {"+two+", escalate: ["+after+"]}")
	}
	head := func(old, changed string) [2]string {
		doc := keyHead + keyDefault + "rules:\n" +
			"  - {name: r, tools: [delete_file], ask: {quorums: [{name: a, from: {groups: [sre], people: [alice], roles: [manager, lead]}}], within: 20h, hours: office}}\n"
		if !strings.Contains(doc, old) {
			panic("no such text: " + old)
		}
		return [2]string{doc, strings.Replace(doc, old, changed, 1)}
	}
	example := func(e, changed string) [2]string {
		doc := func(s string) string {
			return keyHead + keyDefault + "rules:\n  - {name: r, tools: [delete_file], agents: [ops], channels: [war-room], requesters: {groups: [sre]}, deny: no, " +
				"when: 'requester.id != \"U0BOB00001\" && args.path == \"/a\" && gate == \"raised\" && now.getHours() == 10 && run.steps == 2 && run.executed[tool] == 1 && run.failed[tool] == 1 && run.denied[tool] == 1 && today.executed[tool] == 3 && call.cwd + call.repository + call.branch + call.server == \"/srv acme main db\"'}\n" +
				"  - {name: a, tools: [list_files], allow: true}\nexamples:\n  - {" + s + "}\n"
		}
		all := "name: n, call: {tool: delete_file, args: {path: /a}, cwd: \"/srv \", repository: \"acme \", branch: \"main \", server: db}, gate: raised, agent: ops, requester: alice, groups: [sre], channel: war-room, at: \"2026-03-02T10:00:00Z\", " +
			"so_far: {steps: 2, executed: {delete_file: 1}, failed: {delete_file: 1}, denied: {delete_file: 1}}, today: {executed: {delete_file: 3}}, expect: {deny: r}"
		if !strings.Contains(all, e) {
			panic("no such text: " + e)
		}
		return [2]string{doc(all), doc(strings.Replace(all, e, changed, 1))}
	}
	todays := func(zone string) [2]string {
		doc := func(zone string) string {
			return keyHead + keyDefault + "zone: " + zone + "\nrules:\n  - {name: r, tools: [delete_file], when: 'today.executed[tool] > 0', deny: no}\n"
		}
		return [2]string{doc("Europe/Berlin"), doc(zone)}
	}
	const (
		log  = "{run: git log, flags: [-s], values: {-n: {is: [\"5\"]}}, operands: [{is: [a, b]}], max: 2}"
		grep = "{run: grep, operands: [{is: [x]}], piped: true}"
		both = "other_args: [run_in_background], forms: [" + log + ", " + grep + "]"
	)
	shell := func(before, after string) [2]string {
		return rule("name: r, tools: [Bash], command: {"+before+"}, allow: true", "name: r, tools: [Bash], command: {"+after+"}, allow: true")
	}
	shellWith := func(old, changed string) [2]string {
		all := both + ", cwd: {under: [/srv]}"
		if !strings.Contains(all, old) {
			panic("no such text: " + old)
		}
		return shell(all, strings.Replace(all, old, changed, 1))
	}
	plain := keyHead + keyDefault + "rules:\n  - {" + deny + "}\n"
	return map[string][2]string{
		"fileForm.zone":      todays("America/New_York"),
		"fileForm.mode":      {plain, plain + "mode: shadow\n"},
		"fileForm.groups":    head("sre: S0SRE00001", "sre: S0SRE00002"),
		"fileForm.people":    head("alice: U0ALICE001", "alice: U0ALICE002"),
		"fileForm.managers":  head("alice: carol", "alice: bob"),
		"fileForm.roles":     head("people: [bob]", "people: [carol]"),
		"fileForm.calendars": head("09:00", "10:00"),
		"fileForm.default":   {plain, strings.Replace(plain, "why: default", "why: other", 1)},
		"fileForm.rules":     {keyHead + keyDefault, plain},
		"fileForm.examples":  example("{deny: r}", "{ask: default}"),

		"roleForm.people":       head("people: [bob], ", ""),
		"roleForm.groups":       head("groups: [security], ", ""),
		"roleForm.channels":     head(", channels: [ops]", ""),
		"calendarForm.zone":     head("Europe/Berlin", "America/New_York"),
		"calendarForm.days":     head("[mon, tue]", "[tue, wed]"),
		"calendarForm.from":     head("09:00", "09:30"),
		"calendarForm.to":       head("17:00", "16:30"),
		"calendarForm.holidays": head("2026-03-10", "2026-03-03"),

		"ruleForm.name":       rule("name: r, tools: [delete_file], ask: {why: x}", "name: s, tools: [delete_file], ask: {why: x}"),
		"ruleForm.mode":       rule(deny, deny+", mode: shadow"),
		"ruleForm.tools":      rule(deny, "name: r, tools: [refund], deny: no"),
		"ruleForm.agents":     rule("name: r, deny: no", "name: r, agents: [billing], deny: no"),
		"ruleForm.channels":   rule(deny, deny+", channels: [ops]"),
		"ruleForm.requesters": rule(deny, deny+", requesters: {people: [bob]}"),
		"ruleForm.when":       rule(deny, deny+", when: args.path == '/b'"),
		"ruleForm.command":    rule("name: r, tools: [Bash], allow: true", "name: r, tools: [Bash], command: {forms: [{run: ls}]}, allow: true"),
		"ruleForm.summary":    rule("name: r, tools: [delete_file], ask: {why: x}", "name: r, tools: [delete_file], summary: 'Delete {args.path}', ask: {why: x}"),
		"ruleForm.check":      rule("name: r, tools: [read_secret], allow: true", "name: r, tools: [read_secret], check: fraud, allow: true"),
		"ruleForm.deny":       rule(deny, "name: r, tools: [delete_file], deny: never"),
		"ruleForm.allow":      rule("name: r, tools: [read_secret], ask: {why: x}", "name: r, tools: [read_secret], allow: true"),
		"ruleForm.ask":        rule("name: r, tools: [read_secret], allow: true", "name: r, tools: [read_secret], ask: {why: x}"),

		"commandForm.argument":   shellWith("other_args", "argument: description, other_args"),
		"commandForm.other_args": shellWith("run_in_background", "description"),
		"commandForm.cwd":        shellWith(", cwd: {under: [/srv]}", ", cwd: {under: [/opt]}"),
		"commandForm.forms":      shellWith(", "+grep, ""),
		"commandForm.runs":       rule("name: r, tools: [Bash], command: {runs: [mv]}, deny: no", "name: r, tools: [Bash], command: {runs: [rm]}, deny: no"),
		"cwdForm.argument":       shellWith("{under", "{argument: description, under"),
		"cwdForm.under":          shellWith("/srv", "/opt"),
		"programForm.run":        shellWith("git log", "git show"),
		"programForm.flags":      shellWith("[-s]", "[-t]"),
		"programForm.values":     shellWith("-n:", "-m:"),
		"programForm.operands":   shellWith("operands: [{is: [x]}], ", ""),
		"programForm.min":        shellWith("operands: [{is: [x]}]", "operands: [{is: [x]}], min: 2, max: 2"),
		"programForm.max":        shellWith(", max: 2", ""),
		"programForm.piped":      shellWith(", piped: true", ""),
		"valueForm.is":           shellWith("is: [a, b]", "is: [a, c]"),
		"valueForm.under":        shell(strings.Replace(both, "is: [a, b]", "under: [.]", 1)+", cwd: {under: [/srv]}", strings.Replace(both, "is: [a, b]", "under: [c]", 1)+", cwd: {under: [/srv]}"),
		"valueForm.matches":      shellWith("is: [a, b]", "matches: \"a\""),

		"requesterForm.people": rule(deny+", requesters: {people: [bob]}", deny+", requesters: {people: [bob, alice]}"),
		"requesterForm.groups": rule(deny+", requesters: {people: [bob]}", deny+", requesters: {people: [bob], groups: [security]}"),

		"askForm.why":                      rule("name: r, tools: [delete_file], ask: {why: x}", "name: r, tools: [delete_file], ask: {why: y}"),
		"askForm.severity":                 ask(", severity: irreversible"),
		"askForm.quorums":                  quorums("{name: a, from: {groups: [sre]}}", "{name: a, from: {groups: [sre]}}, {name: b, from: {groups: [security]}}"),
		"askForm.denials":                  ask(", denials: 2"),
		"askForm.veto":                     ask(", veto: [{name: v, from: {groups: [security]}}]"),
		"askForm.within":                   ask(", within: 1h"),
		"askForm.claim_within":             ask(", claim_within: 5m"),
		"askForm.hours":                    ask(", hours: office"),
		"askForm.remind":                   ask(", remind: [1h]"),
		"askForm.escalate":                 ask(", escalate: [{after: 1h, channel: ops}]"),
		"askForm.requester_may_approve":    ask(", requester_may_approve: true"),
		"askForm.editor_may_approve":       ask(", editor_may_approve: true"),
		"askForm.participants_may_approve": ask(", participants_may_approve: true"),
		"askForm.delegates":                ask(", delegates: true"),
		"askForm.reason":                   ask(", reason: required"),
		"askForm.dm":                       ask(", dm: true"),
		"askForm.fragile": rule("name: r, tools: [delete_file], ask: {quorums: [{name: a, from: {people: [bob]}}]}",
			"name: r, tools: [delete_file], ask: {quorums: [{name: a, from: {people: [bob]}}], fragile: true}"),

		"quorumForm.name":  quorums("{name: a, from: {groups: [sre]}}", "{name: b, from: {groups: [sre]}}"),
		"quorumForm.need":  quorums("{name: a, from: {groups: [sre]}}", "{name: a, need: 2, from: {groups: [sre]}}"),
		"quorumForm.from":  quorums("{name: a, from: {groups: [sre]}}", "{name: a, from: {groups: [security]}}"),
		"quorumForm.stage": quorums("{name: a, from: {groups: [sre]}}", "{name: a, from: {groups: [sre]}, stage: 2}"),
		"quorumForm.any": quorums("{name: a, from: {groups: [sre]}}, {name: b, from: {groups: [security]}}",
			"{any: [{name: a, from: {groups: [sre]}}, {name: b, from: {groups: [security]}}]}"),
		"optionForm.name": quorums("{any: [{name: a, from: {groups: [sre]}}, {name: b, from: {groups: [security]}}]}", "{any: [{name: a, from: {groups: [sre]}}, {name: c, from: {groups: [security]}}]}"),
		"optionForm.need": quorums("{any: [{name: a, from: {groups: [sre]}}, {name: b, from: {groups: [security]}}]}", "{any: [{name: a, from: {groups: [sre]}}, {name: b, need: 2, from: {groups: [security]}}]}"),
		"optionForm.from": quorums("{any: [{name: a, from: {groups: [sre]}}, {name: b, from: {groups: [security]}}]}", "{any: [{name: a, from: {groups: [sre]}}, {name: b, from: {channels: [ops]}}]}"),
		"optionForm.all": quorums("{any: [{name: a, from: {groups: [sre]}}, {name: b, from: {groups: [security]}}]}",
			"{any: [{name: a, from: {groups: [sre]}}, {all: [{name: b, from: {groups: [security]}}, {name: c, from: {channels: [ops]}}]}]}"),
		"plainQuorum.name": veto("{name: v, from: {groups: [security]}}", "{name: w, from: {groups: [security]}}"),
		"plainQuorum.need": veto("{name: v, from: {groups: [security]}}", "{name: v, need: 2, from: {groups: [security]}}"),
		"plainQuorum.from": veto("{name: v, from: {groups: [security]}}", "{name: v, from: {people: [bob]}}"),

		"fromForm.people":   from("people: [bob]"),
		"fromForm.groups":   quorums("{name: a, from: {groups: [sre]}}", "{name: a, from: {groups: [sre, security]}}"),
		"fromForm.roles":    from("roles: [manager]"),
		"fromForm.channels": from("channels: [ops]"),
		"fromForm.channel": rule("name: r, tools: [delete_file], channels: [war-room], ask: {quorums: [{name: a, from: {groups: [sre]}}]}",
			"name: r, tools: [delete_file], channels: [war-room], ask: {quorums: [{name: a, from: {groups: [sre], channel: here}}]}"),

		"escalateForm.after":   escalate("{after: 1h, channel: ops}", "{after: 2h, channel: ops}"),
		"escalateForm.quorum":  escalate("{after: 1h, quorum: a, add: {groups: [security]}}", "{after: 1h, quorum: b, add: {groups: [security]}}"),
		"escalateForm.add":     escalate("{after: 1h, quorum: a, add: {groups: [security]}}", "{after: 1h, quorum: a, add: {people: [bob]}}"),
		"escalateForm.channel": escalate("{after: 1h, channel: ops}", "{after: 1h, channel: war-room}"),

		"exampleForm.name":      example("name: n, ", ""),
		"exampleForm.call":      example("tool: delete_file, args: {path: /a}", "tool: list_files"),
		"exampleForm.gate":      example("gate: raised", "gate: declared"),
		"exampleForm.agent":     example("agent: ops", "agent: billing"),
		"exampleForm.requester": example("requester: alice", "requester: bob"),
		"exampleForm.groups":    example("groups: [sre]", "groups: [security]"),
		"exampleForm.channel":   example("channel: war-room", "channel: ops"),
		"exampleForm.at":        example("T10:00", "T11:00"),
		"exampleForm.so_far":    example("steps: 2", "steps: 3"),
		"exampleForm.expect":    example("{deny: r}", "{deny: other}"),
		"exampleForm.today":     example("today: {executed: {delete_file: 3}}", "today: {executed: {list_files: 3}}"),
		"exampleForm.check": {
			keyHead + keyDefault + "rules:\n  - {name: a, tools: [list_files], check: fraud, allow: true}\nexamples:\n  - {name: n, call: {tool: list_files, args: {path: /a}}, check: ask, expect: {ask: default}}\n",
			keyHead + keyDefault + "rules:\n  - {name: a, tools: [list_files], check: fraud, allow: true}\nexamples:\n  - {name: n, call: {tool: list_files, args: {path: /a}}, check: deny, expect: {ask: default}}\n",
		},
		"todayForm.executed":  example("executed: {delete_file: 3}", "executed: {delete_file: 2}"),
		"callForm.tool":       example("tool: delete_file", "tool: list_files"),
		"callForm.args":       example("path: /a", "path: /b"),
		"callForm.cwd":        example("/srv", "/etc"),
		"callForm.repository": example("acme", "other"),
		"callForm.branch":     example("branch: \"main \"", "branch: dev"),
		"callForm.server":     example("server: db", "server: other"),
		"soFarForm.steps":     example("steps: 2", "steps: 1"),
		"soFarForm.executed":  example("executed: {delete_file: 1}", "executed: {delete_file: 2}"),
		"soFarForm.failed":    example("failed: {delete_file: 1}", "failed: {delete_file: 2}"),
		"soFarForm.denied":    example("denied: {delete_file: 1}", "denied: {list_files: 1}"),
		"expectForm.deny":     example("{deny: r}", "{deny: x}"),
		"expectForm.allow":    example("{deny: r}", "{allow: r}"),
		"expectForm.ask":      example("{deny: r}", "{ask: r}"),
	}
}

// observe is everything that a policy does for some calls, in words.
func observe(t *testing.T, doc string) string {
	t.Helper()
	tools, err := ReadTools("../../examples/company/tools.json")
	require.NoError(t, err)
	tools = append(tools, shellTool())
	roster, err := ReadRoster("../../examples/company/roster.yaml")
	require.NoError(t, err)
	doc = strings.Replace(doc+strings.Repeat("rules:\n", 1-min(1, strings.Count(doc, "rules:\n"))), "rules:\n", "rules:\n"+keyUses, 1)
	var said []string
	o := Options{Tools: tools, Directory: inRoster{roster}, Ledger: ledgerAt(time.Date(2026, 3, 1, 23, 30, 0, 0, time.UTC)), Shadow: func(_ context.Context, r ShadowRuling) { said = append(said, fmt.Sprint("shadow ", short(r.Rule))) }}
	if strings.Contains(doc, "people: [bob]}}]") && strings.Contains(doc, "name: a, from: {people") {
		o.Roster = roster
		o.Roster.Groups["C0OPS00001"] = []approvals.UserID{"U0BOB00001"}
	}
	p, err := Parse("key.yaml", []byte(doc), o)
	if err != nil {
		return err.Error()
	}
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	for _, q := range []approvals.Proposal{
		{Agent: "ops", Call: approvals.ToolCall{Name: "delete_file", Args: []byte(`{"path":"/a"}`)}, Requester: "U0ALICE001", Channel: "C0WARROOM1", At: at},
		{Agent: "ops", Call: approvals.ToolCall{Name: "Bash", Args: []byte(`{"command":"git log -s -n 5 a b | grep x","cwd":"/srv","run_in_background":true}`)}, Requester: "U0ALICE001", At: at},
		{Agent: "ops", Call: approvals.ToolCall{Name: "Bash", Args: []byte(`{"command":"rm x"}`)}, Requester: "U0ALICE001", At: at},
		{Agent: "ops", Call: approvals.ToolCall{Name: "delete_file", Args: []byte(`{"path":"/a"}`)}, Requester: "U0CAROL001", Channel: "C0WARROOM1", At: at},
		{Agent: "ops", Call: approvals.ToolCall{Name: "read_secret", Args: []byte(`{"name":"k"}`)}, Requester: "U0ALICE001", Channel: "C0OPS00001", At: at},
		{Agent: "ops", Call: approvals.ToolCall{Name: "restart_service", Args: []byte(`{"service":"api"}`)}, Requester: "U0ALICE001", At: at},
		{Agent: "billing", Call: approvals.ToolCall{Name: "refund", Args: []byte(`{"order":"1","amount":1,"currency":"EUR"}`)}, Requester: "U0ALICE001", At: at},
	} {
		r, err := p.Rule(t.Context(), q)
		require.NoError(t, err)
		said = append(said, p.names.ruling(r, byOf(r))...)
		if ask, ok := r.(approvals.Ask); ok {
			said = append(said, fmt.Sprintf("%+v", ask.Requirement))
		}
	}
	return strings.Join(said, "\n")
}

// shellTool is the tool by which coding agents run commands.
func shellTool() Tool {
	return Tool{Agent: "ops", Name: "Bash", Schema: []byte(`{"type":"object","properties":{"command":{"type":"string"},"cwd":{"type":"string"},
		"description":{"type":"string"},"run_in_background":{"type":"boolean"}},"required":["command"],"additionalProperties":false}`)}
}

// ledgerAt has one deletion, at this time.
type ledgerAt time.Time

func (l ledgerAt) Entries(context.Context, approvals.UserID) ([]approvals.LedgerEntry, error) {
	return []approvals.LedgerEntry{{Key: "k", Tool: "delete_file", At: time.Time(l)}}, nil
}

func TestEveryKeyIsEnforced(t *testing.T) {
	for key, docs := range keyCases() {
		t.Run(key, func(t *testing.T) {
			before, after := observe(t, docs[0]), observe(t, docs[1])
			require.NotEqual(t, before, after, "the key changes nothing")
			refuses := key == "askForm.fragile" || key == "fileForm.examples" || strings.Contains(docs[0], "examples:")
			require.Equal(t, refuses, strings.Contains(before+after, "key.yaml:"), before+after)
		})
	}
}

func TestEveryKeyHasACase(t *testing.T) {
	cases := keyCases()
	keys := map[string]bool{}
	walkForms(reflect.TypeFor[fileForm](), keys)
	for key := range keys {
		require.Contains(t, cases, key, "a key of the file has no case")
	}
	for key := range cases {
		require.True(t, keys[key], "%s is no key of the file", key)
	}
	require.Greater(t, len(keys), 60)
}

func walkForms(of reflect.Type, keys map[string]bool) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if holds, ok := reflect.TypeAssert[interface{ Elem() reflect.Type }](reflect.New(of)); ok {
		walkForms(holds.Elem(), keys)
		return
	}
	if _, leaf := reflect.TypeAssert[strictyaml.Taker](reflect.New(of)); leaf || of.Kind() != reflect.Struct {
		return
	}
	for f := range of.Fields() {
		if tag := f.Tag.Get("yaml"); tag != "" {
			keys[of.Name()+"."+tag] = true
			walkForms(f.Type, keys)
		}
	}
}
