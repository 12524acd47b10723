package agentrun

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/countersign/countersign/internal/approvals"
)

// The previews look at what the calls would change that people are about to be
// asked about.
type previews struct {
	session  *session
	rulings  *rulings
	parallel int
}

// compute makes a preview for every plan that has one. Whatever a tool does, its
// call is asked about; an error means only that the worker is to stop.
func (v *previews) compute(ctx context.Context, run Run, plans []*plan) error {
	var group errgroup.Group
	group.SetLimit(v.parallel)
	for _, p := range plans {
		again := p.aside == AsideDoubt && p.stale // of another call in doubt people see what they had approved
		if p.aside != AsideApproval && !again {
			continue
		}
		p.content = ""
		p.preview = approvals.Preview{Again: p.again}
		if p.stale {
			p.preview.Before = p.before
		}
		if p.tool == nil {
			continue
		}
		spec := p.tool.Spec()
		if spec.Preview == nil || spec.Kind == KindExternal {
			continue
		}
		group.Go(func() error { return v.look(ctx, run, p, spec.Preview) })
	}
	return group.Wait()
}

// look makes the preview of one call, or says why there is none.
func (v *previews) look(ctx context.Context, run Run, p *plan, by *Previewer) error {
	c := p.toolCall(run)
	c.Approved, c.Metadata, c.Precondition = false, nil, nil
	limited, cancel := context.WithTimeout(ctx, by.timeout())
	defer cancel()
	status := v.permitted(limited, run, p, by, c)
	if status == approvals.PreviewMade {
		at := v.session.now()
		got, err := by.compute(limited, c)
		if err != nil {
			v.session.log(ctx, slog.LevelWarn, "preview failed", slog.String("call", string(p.call.ID)), slog.String("err", class(err)))
			status = approvals.PreviewFailed
		} else {
			p.previewed(got, at)
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err // what came of it may come from that
	}
	p.preview.Status = status
	return nil
}

// permitted says whether the agent may read without approval what the preview
// would show. Anything but a clear yes is a no.
func (v *previews) permitted(ctx context.Context, run Run, p *plan, by *Previewer, c Call) approvals.PreviewStatus {
	reads, err, _ := guard(ctx, by.timeout(), func(context.Context) (approvals.ToolCall, error) { return by.Reads(c) })
	if err == nil {
		err = approvals.CheckArgs(reads.Args)
	}
	if err != nil {
		v.session.log(ctx, slog.LevelWarn, "preview failed", slog.String("call", string(p.call.ID)), slog.String("err", class(err)))
		return approvals.PreviewFailed
	}
	p.preview.Reads = reads.Name
	reads.ID = "preview:" + p.call.ID // it is not the call itself that is judged
	read := &plan{call: reads, tool: v.session.tools[reads.Name], soFar: p.soFar}
	if read.tool == nil || read.tool.Spec().Kind == KindExternal {
		return approvals.PreviewReadRefused
	}
	asked := read.toolCall(run)
	raise, done := v.rulings.validate(ctx, read, asked)
	if done {
		return approvals.PreviewFailed // the tool refuses to read that
	}
	if gate, _ := v.rulings.gate(ctx, read, asked, raise); gate != approvals.GateNone || raise != nil {
		return approvals.PreviewReadAsks
	}
	ruling, err := askPolicy(ctx, v.rulings.policy, read.proposal(run, v.session.now()))
	if err != nil {
		v.session.log(ctx, slog.LevelError, "policy failed", slog.String("call", string(reads.ID)), slog.String("err", class(err)))
		return approvals.PreviewReadUnjudged
	}
	switch ruling.(type) {
	case approvals.Permit:
		return approvals.PreviewMade
	case approvals.Ask:
		return approvals.PreviewReadAsks
	case approvals.Refuse:
		return approvals.PreviewReadRefused
	}
	return approvals.PreviewReadUnjudged
}

// previewed gives the plan what its tool has found.
func (p *plan) previewed(got Preview, at time.Time) {
	hide := p.secrets()
	p.preview.CheckedAt, p.preview.Precondition = at, got.Precondition
	for _, f := range got.Facts[:min(len(got.Facts), approvals.MaxFacts)] {
		f.Label, f.Value = short(hide.scrub(f.Label)), short(hide.scrub(f.Value))
		p.preview.Facts = append(p.preview.Facts, f)
	}
	content := strings.ToValidUTF8(hide.scrub(got.Content), string(utf8.RuneError))
	end := min(len(content), approvals.MaxPreviewContent)
	for end > 0 && end < len(content) && !utf8.RuneStart(content[end]) {
		end--
	}
	p.content = content[:end]
	p.preview.Content = approvals.Content{Size: end, Left: len(content) - end}
}

// short cuts what a tool says of a fact.
func short(s string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if r := []rune(s); len(r) > approvals.MaxFactText {
		return string(r[:approvals.MaxFactText-1]) + "…"
	}
	return s
}

// keepPreview returns what the batch has of the plan's preview, and puts its
// content beside the batch.
func (p *plan) keepPreview(id approvals.BatchID, args map[approvals.Digest]json.RawMessage) approvals.Preview {
	kept := p.preview
	if p.content != "" {
		kept.Content.Digest = approvals.PreviewDigest(id, p.call.ID, p.content)
		args[kept.Content.Digest] = json.RawMessage(p.content)
	}
	return kept
}
