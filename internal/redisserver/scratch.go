package redisserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Scratch makes a folder for what this process needs while it runs, and returns a
// function that removes it. It also removes the folders with this prefix that belong to
// the same user and whose processes were killed.
func Scratch(prefix string) (dir string, remove func() error, err error) {
	old, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	if err != nil {
		return "", nil, err
	}
	for _, dir := range old {
		removeAbandoned(dir)
	}
	if dir, err = os.MkdirTemp("", prefix); err != nil {
		return "", nil, err
	}
	held, err := lock(filepath.Join(dir, botLock))
	if err == nil && (held == nil || !holds(dir)) {
		err = errors.New("another process takes it for one that was left; try again")
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("make %s: %w", dir, err), os.RemoveAll(dir))
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), held.Close()) }, nil
}

// removeAbandoned removes the folder if it is a private one of this user that no
// process has locked. What cannot be removed stays for the next time.
func removeAbandoned(dir string) {
	info, err := os.Lstat(dir) // the target of a link is not ours to remove
	if err != nil || judge(dir, info) != nil || !holds(dir) {
		return
	}
	held, err := lock(filepath.Join(dir, botLock))
	if err != nil || held == nil {
		return
	}
	_ = os.RemoveAll(dir)
	_ = held.Close()
}

// holds reports whether the folder has a lock file.
func holds(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, botLock))
	return err == nil
}
