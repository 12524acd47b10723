package agentrun

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
)

// authorsOf returns whose words a resume run hands the model with the answers of
// its batch: those of the batch, and who wrote the prompt that goes with them.
func authorsOf(run Run, b approvals.Batch) []approvals.UserID {
	all := b.Authors()
	if run.Prompt != "" && !slices.Contains(all, run.Requester) {
		all = append(all, run.Requester)
	}
	return all
}

// participants returns whose words the model had been sent when it made the
// calls that are pending: over all runs of the thread, up to its last response.
// Each of these people has asked for the calls as much as the requester.
func (s *session) participants(ctx context.Context) ([]approvals.UserID, error) {
	var all []approvals.UserID
	looked := map[approvals.RunID]bool{}
	for _, m := range s.history[:max(0, lastResponse(s.history))] {
		request, ok := m.(Request)
		if !ok {
			continue
		}
		authors := request.Authors
		if authors == nil && !looked[request.RunID] {
			looked[request.RunID] = true
			var err error
			if authors, err = s.authorsOfRun(ctx, request.RunID); err != nil {
				return nil, err
			}
		}
		for _, u := range authors {
			if !slices.Contains(all, u) {
				all = append(all, u)
			}
		}
	}
	return all, nil
}

// authorsOfRun returns who can have written what is in a run's requests, for
// those that were stored without their authors: who began it, and those whose
// words it took up. If the run is gone, it returns none, and only the requester
// of the new batch is kept from approving. A run that cannot be read is an
// error: nobody is asked until it is known to whom the separation applies.
func (s *session) authorsOfRun(ctx context.Context, id approvals.RunID) ([]approvals.UserID, error) {
	run, err := s.claim.store.Run(ctx, id)
	if errors.Is(err, approvals.ErrNotFound) {
		s.log(ctx, slog.LevelWarn, "authors not known", slog.String("of", string(id)))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := []approvals.UserID{run.Requester}
	if run.Batch == "" {
		return all, nil
	}
	b, err := s.claim.store.Batch(ctx, run.Batch)
	if errors.Is(err, approvals.ErrNotFound) {
		s.log(ctx, slog.LevelWarn, "authors not known", slog.String("batch", string(run.Batch)))
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	return append(all, b.Authors()...), nil
}
