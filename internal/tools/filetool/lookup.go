package filetool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/countersign/countersign/internal/agentrun"
)

// lookWritten reports that a call took effect if the file has exactly the text that the
// call was to write: then nothing is left to do, whoever wrote it. For any other content
// it reports that the outcome is unknown, even for the content that people saw: the text
// may have been written and changed back since.
//
// A deletion has no lookup. A missing file may have been moved and not deleted, and an
// existing one may have been restored.
func (s set) lookWritten(ctx context.Context, _ agentrun.Call, in contents) (agentrun.Looked, error) {
	now, err := s.lookAt(ctx, in.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return agentrun.Looked{}, nil
	}
	if err != nil {
		return agentrun.Looked{}, err
	}
	sum := sha256.Sum256([]byte(in.Content))
	if now.SHA256 != hex.EncodeToString(sum[:]) {
		return agentrun.Looked{}, nil
	}
	value, err := json.Marshal(written(in))
	if err != nil {
		return agentrun.Looked{}, fmt.Errorf("encode what was found: %w", err)
	}
	return agentrun.Looked{Happened: agentrun.HappenedYes, Result: agentrun.Result{Value: value}}, nil
}

// written is the result of a call that took effect.
func written(in contents) string {
	return fmt.Sprintf("Wrote %d bytes to %s.", len(in.Content), in.Path)
}
