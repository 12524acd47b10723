package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/demo"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state/statetest"
)

// builtAs is the version that binary was built as.
const builtAs = "v1.2.3"

// built is the folder of the binary, once a test has needed it.
var built string

// binary is the bot as it is shipped, built once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "countersign-bot-")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "bot")
	build := exec.Command("go", "build", "-ldflags", "-X main.version="+builtAs, "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	if name := os.Getenv(hangsEnv); name != "" {
		if err := serveHanging(os.Args[3], name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 3 && os.Args[1] == mortalBank {
		if err := serveMortalBank(os.Args[2]); err != nil {
			os.Exit(1)
		}
		return
	}
	// These tests mostly wait, for processes and deadlines. The flag -parallel still counts.
	if err := flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// world is everything around `bot serve`, so that the bot can be killed alone.
type world struct {
	t      *testing.T
	sim    *sim
	slack  *slacksim.Server
	model  *openaisim.Server
	server *statetest.Instance
	redis  *redis.Client // of the server
	folder string
	addr   string // of the bot, the same for every process
	env    []string
	config string
	data   string // the folder of a private Redis, instead of the server
	hang   string // of the files whose reading never ends
	// passes, if set, is called whenever a bot calls Slack or the model.
	passes atomic.Pointer[func()]
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, statetest.NewInstance(t))
}

// newWorldOn is newWorld with this Redis.
func newWorldOn(t *testing.T, server *statetest.Instance) *world {
	t.Helper()
	return newWorldBehind(t, server, nil)
}

// passed says that a bot calls Slack or the model.
func (w *world) passed() {
	if passes := w.passes.Load(); passes != nil {
		(*passes)()
	}
}

// lastAttempt is how long after the first attempt to deliver an event Slack makes the last
// one, the fourth: two failovers in a row take less. On Slack it is 6 minutes.
const lastAttempt = 18 * time.Second

// newWorldBehind is newWorldOn with Slack's way to the bot.
func newWorldBehind(t *testing.T, server *statetest.Instance, way http.RoundTripper) *world {
	t.Helper()
	w := &world{t: t, server: server, folder: t.TempDir(), model: openaisim.New(demo.Stories()...)}
	require.NoError(t, demo.Seed(w.folder))
	w.addr = statetest.FreeAddr(t)

	bot := "http://" + w.addr
	workspace := slacksim.Config{
		EventsURL: bot + "/slack/events", InteractivityURL: bot + "/slack/interactivity", CommandsURL: bot + "/slack/commands",
	}
	if way != nil {
		workspace.Client, workspace.RetryScale = &http.Client{Transport: way}, lastAttempt.Seconds()/(6*time.Minute).Seconds()
	}
	w.slack = slacksim.New(workspace)
	slackServer := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			w.passed()
		}
		w.slack.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() { w.slack.Close(); slackServer.Close() })
	modelServer := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.passed()
		w.model.ServeHTTP(rw, r)
	}))
	t.Cleanup(modelServer.Close)
	w.redis = w.server.Client
	w.env = []string{
		"SLACK_BOT_TOKEN=" + w.slack.BotToken(), "SLACK_SIGNING_SECRET=" + w.slack.SigningSecret(),
		"SLACK_API_URL=" + slackServer.URL + "/api/", "REDIS_URL=unix://" + w.server.Socket,
		"OPENAI_API_KEY=scripted", "OPENAI_BASE_URL=" + modelServer.URL + "/v1", "COUNTERSIGN_ADDR=" + w.addr,
	}
	w.config = write(t, fmt.Sprintf(`
agents: [{name: ops, files: %q}]
runs: {lease: 1s}
policy: %q
`, w.folder, writePolicy(t, t.TempDir(), oneOfSRE)))
	w.sim = newSim(t, slackServer.URL)
	return w
}

// process is one `bot serve`.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	out *output
}

// start starts a bot and waits until it is at work.
func (w *world) start() *process {
	w.t.Helper()
	p := w.launch()
	p.out.await(w.t, `msg=listening`)
	return p
}

// launch starts a bot.
func (w *world) launch() *process {
	w.t.Helper()
	path, err := binary()
	require.NoError(w.t, err)
	env := w.env
	if w.hang != "" {
		path, err = os.Executable() // see TestMain
		require.NoError(w.t, err)
		env = append(slices.Clone(env), hangsEnv+"="+w.hang)
	}
	p := &process{t: w.t, out: newOutput()}
	args := []string{"serve", "--config", w.config}
	if w.data != "" {
		args = append(args, "--data", w.data)
	}
	p.cmd = exec.CommandContext(context.Background(), path, args...)
	p.cmd.Env, p.cmd.Stderr = env, p.out
	require.NoError(w.t, p.cmd.Start())
	w.t.Cleanup(p.kill)
	return p
}

// kill is kill -9. It waits until the process is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// term is SIGTERM, as an orchestrator sends it.
func (p *process) term() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.cmd.Wait()
}

// tries is how often each killing is repeated: a few times in every test run,
// as often as KILLS says when someone wants to know.
func tries(t *testing.T) int {
	t.Helper()
	if s := os.Getenv("KILLS"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		return n
	}
	return 3
}

var startedCall = regexp.MustCompile(`msg="call started" call=(\S+) tool=(\S+) run=(\S+)`)

// requireOnce fails if any call was started twice, by whichever process. Calls that
// only read may be: they are pure.
func requireOnce(t *testing.T, processes ...*process) (calls int) {
	t.Helper()
	seen := map[string]bool{}
	for _, p := range processes {
		for _, m := range startedCall.FindAllStringSubmatch(p.out.String(), -1) {
			if m[2] == "list_files" || m[2] == "read_file" {
				seen[m[3]+" "+m[1]] = true
				continue
			}
			key := m[3] + " " + m[1]
			require.False(t, seen[key], "%s (%s) was started twice", key, m[2])
			seen[key] = true
		}
	}
	return len(seen)
}

// TestKillBetweenTheAcknowledgedClickAndTheResume: what Slack was told is
// stored is never lost, and the calls run once.
func TestKillBetweenTheAcknowledgedClickAndTheResume(t *testing.T) {
	for i := range tries(t) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first := w.start()
			root := w.sim.ask(cleanUp, "")
			w.sim.approves(root)
			time.Sleep(rand.N(4 * time.Millisecond)) // where exactly the kill hits
			first.kill()

			second := w.start()
			answer := w.sim.await(alice, root, "an end", ended)
			requireOnce(t, first, second)
			if strings.Contains(answer.words(), "may or may not") {
				t.Logf("in doubt: %s", answer.words())
				return
			}
			require.NoFileExists(t, filepath.Join(w.folder, "reports", "2023-q1-sales.txt"))
			require.NoFileExists(t, filepath.Join(w.folder, "reports", "2023-q2-sales.txt"))
			require.NoError(t, second.term())
		})
	}
}

// ended accepts the message in which a cleaning ends: with an answer, or with
// a call in doubt.
func ended(m message) bool {
	return says("reports/2023-q1-sales.txt: deleted", "reports/2023-q2-sales.txt: deleted")(m) || says("may or may not")(m)
}

// TestKillBetweenTwoCallsOfARun: a run that lost its process continues, and no
// call is repeated. A call that was under way is in doubt, and people are
// notified.
func TestKillBetweenTwoCallsOfARun(t *testing.T) {
	for i := range tries(t) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first := w.start()
			root := w.sim.ask(cleanUp, "")
			calls := 1 + rand.IntN(3)
			first.out.await(t, fmt.Sprintf(`(?s)(call started.*){%d}`, calls))
			time.Sleep(rand.N(3 * time.Millisecond)) // where exactly the kill hits
			first.kill()

			second := w.start()
			end := w.sim.await(bob, root, "the card, or a call in doubt", func(m message) bool {
				return len(m.buttons("2023-q1")) > 0 || says("may or may not")(m)
			})
			require.Positive(t, requireOnce(t, first, second))
			t.Logf("killed after %d calls had started; then: %.60q", calls, end.words())
		})
	}
}

// A bot whose log goes to a full pipe that nobody reads works and stops as always.
func TestABotWhoseLogNobodyReadsGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	unread, log, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = unread.Close() }()
	require.NoError(t, log.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
	_, err = log.Write(make([]byte, 1<<20))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the pipe is full")
	path, err := binary()
	require.NoError(t, err)
	p := &process{t: t, cmd: exec.CommandContext(context.Background(), path, "serve", "--config", w.config)}
	p.cmd.Env, p.cmd.Stderr = w.env, log
	require.NoError(t, p.cmd.Start())
	t.Cleanup(p.kill)
	require.NoError(t, log.Close())

	require.Eventually(t, func() bool {
		resp, err := http.Get("http://" + w.addr + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, time.Minute, 10*time.Millisecond)
	root := w.sim.ask(cleanUp, "")
	w.sim.approves(root)
	w.sim.await(alice, root, "the answer", ended)
	require.NoError(t, p.term())
}

// A shutdown that takes long ends with a second signal, as a kill -9 would end it.
func TestASecondSignalEndsTheBotAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.start()
	root := w.sim.ask(cleanUp, "")
	card := w.sim.await(bob, root, "the card", says("2023-q1-sales.txt", "2023-q2-sales.txt", "delete_file"))
	require.Empty(t, w.sim.click(bob, card, "2023-q1", "Approve").VisibleError, "the click was acknowledged")
	slow, err := new(net.Dialer).DialContext(t.Context(), "tcp", w.addr)
	require.NoError(t, err)
	defer func() { _ = slow.Close() }()
	_, err = slow.Write([]byte("POST /slack/events HTTP/1.1\r\nHost: bot\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n"))
	require.NoError(t, err)
	_, err = slow.Read(make([]byte, 1))
	require.NoError(t, err, "the bot reads a request, and its shutdown waits for that")

	ended := make(chan error, 1)
	go func() { ended <- first.cmd.Wait() }()
	for again := time.NewTicker(50 * time.Millisecond); ; {
		_ = first.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-again.C:
			continue
		case err = <-ended:
		}
		again.Stop()
		break
	}
	require.EqualError(t, err, "exit status 143")
	require.Contains(t, first.out.String(), "a second signal ended this before it had finished")
	require.NotContains(t, first.out.String(), "msg=stopped")

	second := w.start()
	card = w.sim.await(bob, root, "one approved", func(m message) bool {
		return m.TS == card.TS && len(m.buttons("2023-q1")) < 3 && len(m.buttons("2023-q2")) > 0
	})
	require.Empty(t, w.sim.click(bob, card, "2023-q2", "Approve").VisibleError)
	w.sim.await(alice, root, "an end", says("reports/2023-q1-sales.txt: deleted", "reports/2023-q2-sales.txt: deleted"))
	requireOnce(t, first, second)
	require.NoError(t, second.term())
}

func TestTermLeavesTheRestToTheNextProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.start()
	root := w.sim.ask(cleanUp, "")
	card := w.sim.await(bob, root, "the card", says("2023-q1-sales.txt", "delete_file"))
	require.NoError(t, first.term(), "it ends cleanly:\n%s", first.out)

	outcome := w.sim.click(bob, card, "2023-q1", "Approve")
	require.NotEmpty(t, outcome.VisibleError, "no process answers: Slack shows its warning")

	second := w.start()
	require.Empty(t, w.sim.click(bob, card, "2023-q1", "Approve").VisibleError, "the click can be repeated")
	w.sim.await(bob, root, "one approved", func(m message) bool { return m.TS == card.TS && len(m.buttons("2023-q1")) < 3 })
	require.NoError(t, second.term())
	requireOnce(t, first, second)
}
