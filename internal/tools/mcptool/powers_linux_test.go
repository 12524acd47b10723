package mcptool_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A bot that was started with the power to trace passes it on to nothing.
func TestAProgramGetsNoPowersOfTheBot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has capabilities to pass on: run the test as root, as CI does")
	}
	program, err := os.Executable()
	require.NoError(t, err)
	bot := exec.Command(program)
	bot.Env = append(os.Environ(), serverKind+"=hold")
	withTracing(bot)
	out, err := bot.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, bot.Start())
	t.Cleanup(func() { _ = bot.Process.Kill(); _ = bot.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	pid, _, _ := strings.Cut(line, " ")
	require.True(t, mayTrace(t, fmt.Sprint(bot.Process.Pid)), "the bot has it")
	require.False(t, mayTrace(t, pid))
}

// withTracing has the program start with a power that its own programs inherit.
func withTracing(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{AmbientCaps: []uintptr{unix.CAP_SYS_PTRACE}}
}

// mayTrace reports whether a process has, or can get, the power to trace others.
func mayTrace(t *testing.T, pid string) bool {
	t.Helper()
	status, err := os.ReadFile("/proc/" + pid + "/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		set, bits, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		if !strings.HasPrefix(set, "Cap") {
			continue
		}
		powers, err := strconv.ParseUint(bits, 16, 64)
		require.NoError(t, err)
		if powers&(1<<unix.CAP_SYS_PTRACE) != 0 {
			return true
		}
	}
	return false
}
