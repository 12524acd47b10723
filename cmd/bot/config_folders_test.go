package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// An agent that reads the secrets of the process, or writes the policy that it
// lives by, needs nobody's approval any more. serve, check and policy refuse
// such a folder, in the same words.
func TestAFolderThroughWhichTheAgentReachesTheBotIsRefused(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	require.NoError(t, err)
	program, err = filepath.EvalSymlinks(program)
	require.NoError(t, err)
	const end = ", so the agent could read or change it. Give the agent a folder of its own"
	cases := map[string]struct {
		prepare func(t *testing.T, i *installation) // in i.dir, which holds the configuration
		files   string
		want    string // DIR is i.dir
	}{
		"everything":                        {nil, "/", "/ is the whole file system" + end},
		"everything, by a link":             {link("/", "all"), "all", "DIR/all is the whole file system" + end},
		"the configuration's":               {nil, ".", "DIR contains the configuration, DIR/config.yaml" + end},
		"above the configuration":           {nil, "..", "UP contains the configuration, DIR/config.yaml" + end},
		"the configuration's, by a link":    {link(".", "here"), "here", "DIR/here contains the configuration, DIR/config.yaml" + end},
		"the policy's":                      {policyAt("rules/policy.yaml"), "rules", "DIR/rules contains the policy, DIR/rules/policy.yaml" + end},
		"the policy itself":                 {policyAt("rules"), "rules", "DIR/rules is the policy, DIR/rules" + end},
		"within the policy":                 {policyAt("rules", "rules/files"), "rules/files", "DIR/rules/files is inside the policy, DIR/rules" + end},
		"within the policy, by a link":      {both(policyAt("rules", "rules/files"), link("rules/files", "files")), "files", "DIR/files is inside the policy, DIR/rules" + end},
		"where a link of the policy is":     {both(policyAt("real/policy.yaml", "links"), linked("../real/policy.yaml", "links/policy.yaml")), "links", "DIR/links contains the policy, DIR/links/policy.yaml" + end},
		"where a link of the policy leads":  {both(policyAt("real/policy.yaml", "links"), linked("../real/policy.yaml", "links/policy.yaml")), "real", "DIR/real contains the policy, DIR/links/policy.yaml" + end},
		"half way of the policy's links":    {both(policyAt("real/policy.yaml", "a", "b"), linked("../a/p.yaml", "b/policy.yaml"), link("../real/policy.yaml", "a/p.yaml")), "a", "DIR/a contains the policy, DIR/b/policy.yaml" + end},
		"where a folder's link leads":       {both(policyAt("real/policy.yaml"), link("real", "dir"), linked("", "dir/policy.yaml")), "real", "DIR/real contains the policy, DIR/dir/policy.yaml" + end},
		"where a file of the policy leads":  {both(policyAt("rules", "real"), move("rules/policy.yaml", "real/a.yaml"), link("../real/a.yaml", "rules/policy.yaml")), "real", "DIR/real contains the policy, DIR/rules/policy.yaml" + end},
		"the socket of Redis":               {redisAt("run/redis.sock"), "run", "DIR/run contains the socket of Redis, DIR/run/redis.sock" + end},
		"the program's":                     {nil, filepath.Dir(program), filepath.Dir(program) + " contains this program, " + program + end},
		"what the kernel says of processes": {nil, "/proc", "/proc is a file system of the kernel, /proc" + end},
		"of this process":                   {nil, "/proc/self", "/proc/self is inside a file system of the kernel, /proc" + end},
		"of this process, by a link":        {link("/proc/self", "me"), "me", "DIR/me is inside a file system of the kernel, /proc" + end},
		"the kernel's settings":             {nil, "/sys", "/sys is a file system of the kernel, /sys" + end},
		"the devices":                       {nil, "/dev", "/dev is a file system of the kernel, /dev" + end},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS != "linux" && filepath.IsAbs(c.files) && c.files != "/" {
				return // there is no such folder
			}
			i := newInstallation(t, slacksim.Config{})
			i.o.Online = false
			dir, err := filepath.EvalSymlinks(i.dir)
			require.NoError(t, err)
			i.dir = filepath.Join(dir, "of", "the", "bot")
			require.NoError(t, os.MkdirAll(i.dir, 0o700))
			if c.prepare != nil {
				c.prepare(t, i)
			}
			i.replace("files: reports", "files: "+c.files)
			want := "agents[0].files: " + replaced(c.want, i.dir)

			require.Contains(t, i.check(), want)
			var out, stderr bytes.Buffer
			require.ErrorContains(t, run(t.Context(), []string{"serve", "--config", i.o.Path}, i.o.Environ, &out, &stderr), want)
			require.ErrorContains(t, run(t.Context(), []string{"policy", "check", "--config", i.o.Path}, i.o.Environ, &out, &stderr), want)
		})
	}
}

// Beside the configuration is where bot init puts the folder.
func TestAFolderBesideTheConfigurationIsTaken(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	i.o.Online = false
	policyAt("reports2.yaml")(t, i)
	require.Contains(t, i.check(), "0 wrong")
	require.NoError(t, os.Rename(filepath.Join(i.dir, "reports"), filepath.Join(i.dir, "real")))
	link("real", "reports")(t, i)
	require.Contains(t, i.check(), "0 wrong", "the folder may be a link itself")
}

var policyLine = regexp.MustCompile(`(?m)^policy: .*$`)

// replaced names the folders of an installation.
func replaced(text, dir string) string {
	return strings.NewReplacer("DIR", dir, "UP", filepath.Dir(dir)).Replace(text)
}

type preparation = func(t *testing.T, i *installation)

func both(all ...preparation) preparation {
	return func(t *testing.T, i *installation) {
		t.Helper()
		for _, f := range all {
			f(t, i)
		}
	}
}

// link makes a link in i.dir.
func link(target, name string) preparation {
	return func(t *testing.T, i *installation) {
		t.Helper()
		require.NoError(t, os.Symlink(filepath.FromSlash(target), filepath.Join(i.dir, filepath.FromSlash(name))))
	}
}

// linked makes a link, if it has a target, and has the configuration name it
// as its policy.
func linked(target, name string) preparation {
	return func(t *testing.T, i *installation) {
		t.Helper()
		if target != "" {
			link(target, name)(t, i)
		}
		i.text = policyLine.ReplaceAllString(i.text, "policy: "+name)
	}
}

// policyAt has the policy in another place, which is a file if it ends so, and
// makes folders.
func policyAt(name string, folders ...string) preparation {
	return func(t *testing.T, i *installation) {
		t.Helper()
		path := filepath.Join(i.dir, filepath.FromSlash(name))
		if filepath.Ext(name) == "" {
			path = filepath.Join(path, policyName)
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(i.rules), 0o600))
		for _, f := range folders {
			require.NoError(t, os.MkdirAll(filepath.Join(i.dir, filepath.FromSlash(f)), 0o700))
		}
		i.text = policyLine.ReplaceAllString(i.text, "policy: "+name)
	}
}

func move(from, to string) preparation {
	return func(t *testing.T, i *installation) {
		t.Helper()
		require.NoError(t, os.Rename(filepath.Join(i.dir, filepath.FromSlash(from)), filepath.Join(i.dir, filepath.FromSlash(to))))
	}
}

func redisAt(socket string) preparation {
	return func(t *testing.T, i *installation) {
		t.Helper()
		path := filepath.Join(i.dir, filepath.FromSlash(socket))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		i.env["REDIS_URL"] = "unix://:hush@" + path + "?db=1"
	}
}
