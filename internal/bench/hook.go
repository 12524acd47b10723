package bench

import (
	"context"
	"errors"
	"fmt"
)

// hooks measures the decision on a call that the policy permits, at the door for
// coding agents.
func (b *bench) hooks(ctx context.Context) (err error) {
	n := max(64, int(b.Length.Seconds()*3000))
	b.said("hook: %d calls, %d rounds", n, b.Rounds)
	r, err := b.replica(ctx, b.configuration(b.fresh()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	floors, err := b.floors(ctx)
	if err != nil {
		return err
	}
	t := Table{
		Name:    "hook",
		About:   "The decision on a call that the policy permits, at POST /v1/hooks/claude-code. Each asks about a new call;\n64 agents ask.",
		Columns: append([]string{"hook / it"}, measured...),
	}
	const one, many, floor = "hook, one at a time", "hook, 64 at a time", nothing + ", 64 at a time"
	rounds := map[string][][]float64{}
	asked := 0
	for range b.Rounds {
		for _, x := range []struct {
			name, addr, want string
			conns, n         int
		}{
			{floor, floors[0].addr, "", connections, n},
			{one, r.addr, "", 1, n / 4},
			{many, r.addr, "", connections, n},
		} {
			if x.name != floor {
				x.addr, x.want = b.agents, `"permissionDecision":"allow"`
			}
			sent := make([]request, x.n)
			for i := range sent {
				asked++
				sent[i] = b.question(asked)
			}
			l := b.load(x.addr, x.conns)
			l.want = x.want
			got, err := b.measure(ctx, l, sent)
			if err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
			rounds[x.name] = append(rounds[x.name], got)
		}
	}
	ours, base := median(rounds[many]), median(rounds[floor])
	for _, name := range []string{many, one, floor} {
		m := median(rounds[name])
		t.Rows = append(t.Rows, Row{name, append([]float64{ours[perSecond] / m[perSecond]}, above(m, base)...)})
	}
	return b.table(t)
}

// question is what Claude Code asks before it runs a program.
func (b *bench) question(n int) request {
	body := fmt.Sprintf(`{"session_id":"s-1","transcript_path":"/home/alice/.claude/projects/app/s-1.jsonl","cwd":"/srv/app","permission_mode":"default",`+
		`"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"go test ./internal/part%d/...","description":"Run the tests"},"tool_use_id":"toolu_%d"}`, n, n)
	return newRequest("/v1/hooks/claude-code", map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + b.token(n%coders)}, []byte(body))
}
