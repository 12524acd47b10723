package hook

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/countersign/countersign/internal/regular"
)

// maxToken is how many bytes a token may have.
const maxToken = 8 << 10

// ReadToken reads the token of an agent from a file that nobody but its owner may
// read or write.
func ReadToken(path string) (string, error) {
	f, err := regular.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	defer func() { _ = f.Close() }()
	stat, err := f.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("read the token: %w", err)
	case stat.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("read the token: others may read it; run chmod 600 %s", path)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || len(token) > maxToken || strings.ContainsAny(token, "\r\n\x00") {
		return "", errors.New("read the token: the file must have one line with it")
	}
	return token, nil
}
