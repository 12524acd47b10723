package config

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A place is a path that an agent must not reach with its file tools.
type place struct {
	what string
	path string
}

// outOfReach are the paths with which an agent could get around the approvers:
// where the bot's secrets can be read, and from where it is ruled.
func (c Config) outOfReach(e Environment) []place {
	var all []place
	if c.file != "" {
		all = append(all, place{"the configuration", c.file})
	}
	if c.Policy != "" {
		all = append(all, place{"the policy", c.Policy})
	}
	entries, _ := os.ReadDir(c.Policy) // reading the policy reports the error
	for _, f := range entries {
		all = append(all, place{"the policy", filepath.Join(c.Policy, f.Name())})
	}
	if u, err := url.Parse(e.RedisURL.Open()); err == nil && u.Scheme == "unix" {
		all = append(all, place{"the socket of Redis", u.Path})
	}
	if e.Data != "" {
		all = append(all, place{"what the bot keeps", e.Data})
	}
	all = append(all, c.credentials()...)
	for _, path := range e.secretFiles(c.named()) {
		all = append(all, place{"a secret", path})
	}
	if program, err := os.Executable(); err == nil {
		all = append(all, place{"this program", program})
	}
	kernel := []string{"/proc", "/sys", "/dev"}
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // only Linux has it
	for _, path := range append(kernel, kernelMounts(string(mounts))...) {
		all = append(all, place{"a file system of the kernel", path})
	}
	return all
}

// credentials returns the files that prove who someone is, and those that say what was
// accepted: a tool that could write one of them could change what the bot trusts.
func (c Config) credentials() []place {
	all := []place{
		{"the key for Redis", c.Redis.TLS.KeyFile},
		{"the authority that Redis is checked against", c.Redis.TLS.CAFile},
		{"the key of the receipts", c.Receipts.KeyFile},
		{"the old keys of the receipts", c.Receipts.OldKeys},
		{"the accepted tools of MCP servers", c.MCPLock},
	}
	remote := c.RemoteAgents
	for _, g := range c.Gateways {
		remote = slices.Concat(remote, g.Remotes())
	}
	for _, a := range remote {
		all = append(all, place{"the tokens of " + a.Name, a.TokensFile})
		if a.JWT != nil {
			all = append(all, keysOf(a.JWT.Issuer, a.JWT.Keys))
		}
	}
	for _, p := range c.Web.People {
		all = append(all, place{"the tokens of " + string(p.User), p.TokensFile})
	}
	for _, i := range c.Web.Issuers {
		all = append(all, keysOf(i.Issuer, i.Keys))
	}
	return slices.DeleteFunc(all, func(p place) bool { return p.path == "" })
}

// keysOf returns the file with the keys of an issuer; its path is empty if the keys are
// at a URL.
func keysOf(issuer, keys string) place {
	if isURL(keys) {
		return place{}
	}
	return place{"the keys of " + issuer, keys}
}

// named are the variables that the configuration names.
func (c Config) named() []string {
	var all []string
	for _, a := range c.withTools() {
		for _, m := range a.MCP {
			all = slices.Concat(all, slices.Collect(maps.Values(m.Env)), slices.Collect(maps.Values(m.Headers)))
		}
		if a.HTTP != nil {
			for _, t := range a.HTTP.Tools {
				all = slices.AppendSeq(all, maps.Values(t.Headers))
			}
		}
	}
	for _, a := range c.RemoteAgents {
		for _, w := range a.Webhooks {
			all = append(all, w.Secrets...)
		}
	}
	return all
}

// kernelMounts returns where the file systems in which the kernel tells of
// processes and devices are mounted, by the text of /proc/self/mountinfo; see
// proc_pid_mountinfo(5).
func kernelMounts(mountinfo string) []string {
	var all []string
	for line := range strings.Lines(mountinfo) {
		mount, source, _ := strings.Cut(line, " - ")
		fields, kinds := strings.Fields(mount), strings.Fields(source)
		if len(fields) > 4 && len(kinds) > 0 && slices.Contains([]string{"proc", "sysfs", "devtmpfs"}, kinds[0]) {
			all = append(all, strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(fields[4]))
		}
	}
	return all
}

// checkFolder returns an error if an agent that works on the folder could reach
// one of the places, wherever links lead. A missing folder is reported when it
// is opened.
func checkFolder(folder string, places []place) error {
	real, err := resolve(folder)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	const advice = "so the agent could read or change it. Give the agent a folder of its own"
	if filepath.Dir(real) == real {
		return fmt.Errorf("%s is the whole file system, %s", folder, advice)
	}
	for _, p := range places {
		for _, at := range stations(p.path) {
			var how string
			switch contains, within := isWithin(at, real), isWithin(real, at); {
			case contains && within:
				how = "is"
			case contains:
				how = "contains"
			case within:
				how = "is inside"
			default:
				continue
			}
			return fmt.Errorf("%s %s %s, %s, %s", folder, how, p.what, p.path, advice)
		}
	}
	return nil
}

// resolve is the path of what is there, without a link in it.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// stations are all paths that decide what is found at a path: that of every
// link on the way, which could be replaced, and that of what is found in the
// end. No folder on the way to one of them is a link.
func stations(path string) []string {
	var all []string
	if found, err := resolve(path); err == nil {
		all = append(all, found)
	}
	rest, err := filepath.Abs(path)
	for range maxLinks {
		if err != nil {
			break
		}
		link, after := firstLink(rest)
		all = append(all, link)
		target, notLink := os.Readlink(link)
		if notLink != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(link), target)
		}
		rest, err = filepath.Abs(filepath.Join(target, after))
	}
	return all
}

// maxLinks is how many links Linux follows on one path.
const maxLinks = 40

// firstLink cuts an absolute path after the first link on it. Without a link,
// link is the whole path.
func firstLink(path string) (link, after string) {
	for i := range path {
		if i > 0 && os.IsPathSeparator(path[i]) {
			if info, err := os.Lstat(path[:i]); err == nil && info.Mode()&os.ModeSymlink != 0 {
				return path[:i], path[i:]
			}
		}
	}
	return path, ""
}

// isWithin reports whether the path is the folder or below it. Neither has a
// link on its way. Two spellings of one folder are found to be the same by what
// is there.
func isWithin(path, folder string) bool {
	there, err := os.Stat(folder)
	for {
		if path == folder {
			return true
		}
		if here, gone := os.Stat(path); err == nil && gone == nil && os.SameFile(here, there) {
			return true
		}
		above := filepath.Dir(path)
		if above == path {
			return false
		}
		path = above
	}
}
