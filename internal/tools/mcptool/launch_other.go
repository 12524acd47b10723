//go:build !linux

package mcptool

import "os/exec"

// launch starts the program. Only on Linux can it be kept from reading this
// process; see docs/mcp.md.
func launch(cmd *exec.Cmd, ended chan<- struct{}) error {
	group(cmd)
	if err := cmd.Start(); err != nil {
		close(ended)
		return err
	}
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	return nil
}
