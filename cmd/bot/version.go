package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version replaces the version of the module, if the linker sets it: -ldflags
// '-X main.version=v1.2.3'.
var version string

// A build is what this program was built from.
type build struct{ version, revision string }

func readBuild() build {
	module, settings := "(devel)", map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		module = cmp.Or(info.Main.Version, module)
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	b := build{version: cmp.Or(version, module), revision: cmp.Or(settings["vcs.revision"], "unknown")}
	if at := settings["vcs.time"]; at != "" {
		b.revision += " of " + at
	}
	if settings["vcs.modified"] == "true" {
		b.revision += ", with changes that are not committed"
	}
	return b
}

// runVersion says what this program was built from.
func runVersion(_ context.Context, in *call) error {
	if _, err := in.parse(); err != nil {
		return err
	}
	b := readBuild()
	_, err := fmt.Fprintf(in.stdout, "countersign %s\nrevision %s\n%s %s/%s\n", b.version, b.revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
