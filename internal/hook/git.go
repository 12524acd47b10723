package hook

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/countersign/countersign/internal/regular"
)

// Bounds of what is read of a repository. Whatever is in it may have been written
// to mislead: it is shown as a claim, and never run.
const (
	maxParents = 64
	maxGitFile = 64 << 10
	maxGitText = 256
)

// Git returns the URL of origin and the branch of the repository around a
// directory, without running git. What cannot be read, or is not shaped like it
// should be, is empty.
func Git(dir string) (repository, branch string) {
	if !filepath.IsAbs(dir) {
		return "", ""
	}
	dir = filepath.Clean(dir)
	for range maxParents {
		at := filepath.Join(dir, ".git")
		if stat, err := os.Stat(at); err == nil {
			if !stat.IsDir() {
				if at = linked(at); at == "" {
					return "", ""
				}
			}
			return origin(common(at)), head(at)
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return "", ""
}

// small reads a regular file of at most maxGitFile bytes.
func small(path string) []byte {
	raw, err := regular.Read(path, maxGitFile+1)
	if err != nil || len(raw) > maxGitFile {
		return nil
	}
	return raw
}

// linked is the directory that a .git file names, as work trees have one.
func linked(path string) string {
	line, ok := bytes.CutPrefix(small(path), []byte("gitdir: "))
	to := strings.TrimRight(string(line), "\r\n")
	if !ok || to == "" || strings.ContainsAny(to, "\r\n\x00") {
		return ""
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(path), to)
	}
	return to
}

// common is the directory that has the configuration.
func common(gitdir string) string {
	to := strings.TrimRight(string(small(filepath.Join(gitdir, "commondir"))), "\r\n")
	switch {
	case to == "" || strings.ContainsAny(to, "\r\n\x00"):
		return gitdir
	case filepath.IsAbs(to):
		return to
	}
	return filepath.Join(gitdir, to)
}

var hash = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// head is the branch, or the beginning of the commit if there is none.
func head(gitdir string) string {
	line := strings.TrimRight(string(small(filepath.Join(gitdir, "HEAD"))), "\r\n")
	if name, ok := strings.CutPrefix(line, "ref: refs/heads/"); ok {
		return plain(name)
	}
	if hash.MatchString(line) {
		return "commit " + line[:12]
	}
	return ""
}

// origin is the URL of the remote of that name, without a password in it.
func origin(gitdir string) string {
	inside := false
	for line := range strings.Lines(string(small(filepath.Join(gitdir, "config")))) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			inside = line == `[remote "origin"]`
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !inside || !ok || !strings.EqualFold(strings.TrimSpace(key), "url") {
			continue
		}
		value = strings.Trim(strings.TrimSpace(value), `"`)
		if u, err := url.Parse(value); err == nil && u.Host != "" {
			u.User, u.RawQuery, u.Fragment = nil, "", ""
			value = u.String()
		} else if who, _, _ := strings.Cut(value, "@"); strings.Contains(who, ":") {
			return "" // a password may be in it, as in https://bot:50%@example.com
		}
		return plain(value)
	}
	return ""
}

// plain is a text that is one printable line, or nothing.
func plain(text string) string {
	if len(text) > maxGitText || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' || r >= 0x80 && r <= 0x9f }) {
		return ""
	}
	return text
}
