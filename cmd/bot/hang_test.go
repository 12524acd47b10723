package main

import (
	"bytes"
	"context"
	"net"
	"os"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/tools/filetool"
)

// hangsEnv makes the test binary the bot, with a tool that hangs.
const hangsEnv = "BOT_HANGS"

// hangs has the bots that are launched from now on never come back from reading
// the files of that name; with no name they do.
func (w *world) hangs(name string) { w.hang = name }

// serveHanging is `bot serve`, but for reading the files of that name.
func serveHanging(file, name string) error {
	c, err := config.Read(file)
	if err != nil {
		return err
	}
	e, err := config.ReadEnvironment(os.Environ())
	if err != nil {
		return err
	}
	folder := c.Agents[0].Files
	c.Agents[0].Files = "" // its tools are those below
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", e.Addr)
	if err != nil {
		return err
	}
	extra := func(string) ([]agentrun.Tool, error) {
		set, err := filetool.New(folder)
		for i, t := range set {
			set[i] = hanging{t, []byte(name)}
		}
		return set, err
	}
	return serve(context.Background(), l, nil, c, e, extra, nil, func() {}, config.NewLogger(os.Stderr, e.LogLevel))
}

// A hanging tool never ends a call that names the file.
type hanging struct {
	agentrun.Tool
	file []byte
}

func (h hanging) Execute(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
	if bytes.Contains(c.Args, h.file) {
		select {}
	}
	return h.Tool.Execute(ctx, c)
}
