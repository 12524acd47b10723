package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A Peer is a program of others that is measured beside the bot. It takes requests on a
// port of its choice on 127.0.0.1, writes "listening on port N" once it does, and ends
// when its standard input does.
//
// One that answers clicks finds in its environment SLACK_BOT_TOKEN,
// SLACK_SIGNING_SECRET, SLACK_API_URL and REDIS_URL, which may be that of a socket, and
// takes clicks at /slack/interactivity.
//
// One that runs an agent finds OPENAI_BASE_URL and OPENAI_API_KEY. Each POST is a run,
// with a JSON object that has the prompt. The model calls the tool look_up, with the
// arguments run, step and of. The answer, when the run is over, is a JSON object whose
// steps are the times between those calls, in milliseconds.
type Peer struct {
	Name    string
	Command []string
}

// ParsePeer reads NAME=COMMAND; the command is split at spaces.
func ParsePeer(text string) (Peer, error) {
	name, command, _ := strings.Cut(text, "=")
	p := Peer{Name: strings.TrimSpace(name), Command: strings.Fields(command)}
	if p.Name == "" || len(p.Command) == 0 {
		return Peer{}, errors.New("a peer is NAME=COMMAND")
	}
	return p, nil
}

// peerPatience is how long a peer may take to listen.
const peerPatience = time.Minute

// peers starts the peers. One that does not start is left out; the table says so.
func (b *bench) peers(ctx context.Context, running *ends, sent func(int) ([]request, error)) (all []subject, missing string) {
	for _, p := range b.Peers {
		s, err := b.peer(ctx, running, p)
		if err != nil {
			missing += p.missing(err)
			continue
		}
		s.sent = sent
		all = append(all, s)
	}
	return all, missing
}

// missing is what a table says of a peer that did not start.
func (p Peer) missing(err error) string { return fmt.Sprintf("\nNot measured is %s: %v.", p.Name, err) }

func (b *bench) peer(ctx context.Context, running *ends, p Peer) (subject, error) {
	at, err := p.start(ctx, running,
		"SLACK_BOT_TOKEN="+b.slack.BotToken(), "SLACK_SIGNING_SECRET="+b.slack.SigningSecret(), "SLACK_API_URL=http://"+b.api+"/api/", "REDIS_URL="+b.redis.url)
	return subject{name: p.Name, addrs: []string{at.addr}, conns: connections, used: at.used}, err
}

// A process is a peer that listens.
type process struct {
	addr string
	pid  int
}

// used returns the CPU time that it has used, if that is known.
func (p process) used() (time.Duration, bool) { return usedBy(p.pid) }

// start starts the peer with more in its environment, and returns once it listens.
func (p Peer) start(ctx context.Context, running *ends, more ...string) (process, error) {
	ctx, stop := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, p.Command[0], p.Command[1:]...) //nolint:gosec // the operator names it
	cmd.Env = append(os.Environ(), more...)
	var said strings.Builder
	cmd.Stderr = &shared{w: &said}
	out, err := cmd.StdoutPipe()
	if err == nil {
		_, err = cmd.StdinPipe() // it ends with this process, however that ends
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		stop()
		return process{}, err
	}
	port, over := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(over)
		listens(out, port)
		_ = cmd.Wait() // it was ended
	}()
	end := func() error { stop(); <-over; return nil }
	late := time.NewTimer(peerPatience)
	defer late.Stop()
	select {
	case at := <-port:
		running.after(end)
		return process{net.JoinHostPort("127.0.0.1", at), cmd.Process.Pid}, nil
	case <-over:
		stop()
		return process{}, fmt.Errorf("it ended before it listened: %.300s", strings.Join(strings.Fields(said.String()), " "))
	case <-late.C:
	case <-ctx.Done():
	}
	return process{}, errors.Join(errors.New("it did not say where it listens"), end())
}

var listening = regexp.MustCompile(`^listening on port (\d+)$`)

// listens reads to the end of what a peer writes, and sends its port.
func listens(out io.Reader, port chan<- string) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			select {
			case port <- m[1]:
			default: // it says so again
			}
		}
	}
}

// usedBy returns the CPU time that another process has used. While a process runs, that
// is known on Linux only.
func usedBy(pid int) (time.Duration, bool) {
	const tick = time.Second / 100
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name of the program, which may hold spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, false
	}
	var used time.Duration
	for _, field := range fields[11:13] { // in user and in system mode
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, false
		}
		used += time.Duration(n) * tick
	}
	return used, true
}
