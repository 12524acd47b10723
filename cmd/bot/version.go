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

// runVersion says what this program was built from.
func runVersion(_ context.Context, in *call) error {
	if _, err := in.parse(); err != nil {
		return err
	}
	module, settings := "(devel)", map[string]string{}
	if build, ok := debug.ReadBuildInfo(); ok {
		module = cmp.Or(build.Main.Version, module)
		for _, s := range build.Settings {
			settings[s.Key] = s.Value
		}
	}
	revision := cmp.Or(settings["vcs.revision"], "unknown")
	if at := settings["vcs.time"]; at != "" {
		revision += " of " + at
	}
	if settings["vcs.modified"] == "true" {
		revision += ", with changes that are not committed"
	}
	_, err := fmt.Fprintf(in.stdout, "countersign %s\nrevision %s\n%s %s/%s\n",
		cmp.Or(version, module), revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
