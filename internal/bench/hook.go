package bench

import (
	"context"
	"errors"
	"fmt"
)

const hookAbout = `The decision on a call that the policy permits, at POST /v1/hooks/claude-code. Each asks about a new call;
64 agents ask. CPU is less that of "answers 200". The first column is requests per second, in proportion to the row's.`

// hooks measures the decision on a call that the policy permits, at the door for
// coding agents.
func (b *bench) hooks(ctx context.Context) (err error) {
	n := max(atLeast(b, 64, 16), int(b.Length.Seconds()*3000))
	b.said("hook: %d calls, %d rounds", n, b.Rounds)
	var running ends
	defer func() { err = errors.Join(err, running.close()) }()
	r, err := b.replica(ctx, b.configuration(b.fresh()))
	if err != nil {
		return err
	}
	running.after(r.end)
	asked := 0
	questions := func(n int) func(int) ([]request, error) {
		return func(int) ([]request, error) {
			sent := make([]request, n)
			for i := range sent {
				asked++
				sent[i] = b.question(asked)
			}
			return sent, nil
		}
	}
	all, err := b.hookFloors(ctx, &running, questions(n))
	if err != nil {
		return err
	}
	const one, many = "hook, one at a time", "hook, 64 at a time"
	hook := subject{addrs: []string{r.agents}, want: `"permissionDecision":"allow"`}
	for _, x := range []struct {
		name     string
		conns, n int
	}{{one, 1, n / 4}, {many, connections, n}} {
		s := hook
		s.name, s.conns, s.sent = x.name, x.conns, questions(x.n)
		all = append(all, s)
	}
	return b.compared(ctx, Table{Name: "hook", About: hookAbout}, nothing, []versus{{"hook / it", many}}, all)
}

// question is what Claude Code asks before it runs a program.
func (b *bench) question(n int) request {
	body := fmt.Sprintf(`{"session_id":"s-1","transcript_path":"/home/alice/.claude/projects/app/s-1.jsonl","cwd":"/srv/app","permission_mode":"default",`+
		`"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"go test ./internal/part%d/...","description":"Run the tests"},"tool_use_id":"toolu_%d"}`, n, n)
	return newRequest("/v1/hooks/claude-code", map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + b.token(n%coders)}, []byte(body))
}
