package mcptool_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

// hold is a bot with a server, until it is killed. It prints the server's id.
func hold() {
	program, _ := os.Executable()
	s := mcptool.Server{Agent: "ops", Name: "srv", Command: program, Env: serverEnv("hostile")}
	ctx, log := context.Background(), slog.New(slog.DiscardHandler)
	listed, err := mcptool.List(ctx, s, log)
	if err != nil {
		os.Exit(1)
	}
	var pins mcptool.Pins
	for _, l := range listed {
		if l.Name == "pid" {
			pins.Accept(mcptool.Place{Agent: "ops", Server: "srv"}, []mcptool.Definition{l.Definition})
		}
	}
	set := mcptool.Open([]mcptool.Server{s}, pins, log)
	go set.Run(ctx)
	got, err := set.Tools("ops")[0].Execute(ctx, agentrun.Call{})
	fmt.Println(strings.Trim(string(got.Value), `"`), err)
	select {}
}

// onLinux skips a test of what only Linux can do.
func onLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux protects a server in this way: run the test on Linux, as CI does")
	}
}

// alive reports whether a process runs; one that has ended and that nobody waited
// for does not.
func alive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// The kernel ends the program if this process is killed and can do nothing.
func TestAProgramDiesWithTheBot(t *testing.T) {
	onLinux(t)
	program, err := os.Executable()
	require.NoError(t, err)
	bot := exec.Command(program)
	bot.Env = append(os.Environ(), serverKind+"=hold")
	out, err := bot.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, bot.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	pid, _, _ := strings.Cut(line, " ")
	require.True(t, alive(pid), line)
	require.NoError(t, bot.Process.Kill())
	_ = bot.Wait()
	require.Eventually(t, func() bool { return !alive(pid) }, time.Minute, 10*time.Millisecond)
}

// What the program has started in its group ends with the connection.
func TestAProgramEndsWithWhatItStarted(t *testing.T) {
	onLinux(t)
	r := start(t, stdioServer(t, "hostile"))
	got, err := r.call("srv.child", `{}`)
	require.NoError(t, err)
	pid := strings.Trim(got, `"`)
	require.True(t, alive(pid), got)
	r.end()
	require.Eventually(t, func() bool { return !alive(pid) }, time.Minute, 10*time.Millisecond)
}
