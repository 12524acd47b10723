package bench

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// A Machine is where it was measured.
type Machine struct {
	CPUs    int    `json:"cpus"`
	Model   string `json:"model,omitempty"`
	OS      string `json:"os"`
	Go      string `json:"go"`
	Redis   string `json:"redis"`
	Private bool   `json:"private"` // Redis ran on the same machine, for this alone
}

// machine says where it is measured, and tells the person.
func (b *bench) machine(ctx context.Context) (Machine, error) {
	m := Machine{CPUs: runtime.GOMAXPROCS(0), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Private: b.redis.end != nil}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil { // only Linux has it
		_, rest, _ := strings.Cut(string(info), "model name")
		line, _, _ := strings.Cut(rest, "\n")
		m.Model = strings.Trim(line, "\t :")
	}
	info, err := b.redis.client.Info(ctx, "server").Result()
	if err != nil {
		return m, fmt.Errorf("ask Redis for its version: %w", err)
	}
	_, rest, _ := strings.Cut(info, "redis_version:")
	m.Redis, _, _ = strings.Cut(rest, "\r\n")
	b.said("%d CPUs (%s), %s, %s, Redis %s", m.CPUs, m.Model, m.OS, m.Go, m.Redis)
	return m, nil
}
