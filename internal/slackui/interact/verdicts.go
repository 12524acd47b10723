package interact

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/respond"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// Interaction does what a person asked for.
func (s *Handler) Interaction(ctx context.Context, p inbound.Interaction) (inbound.Reply, error) {
	switch p.Kind {
	case inbound.KindPressed:
		return s.pressed(ctx, p)
	case inbound.KindShortcut:
		return s.shortcuts.chosen(ctx, p)
	case inbound.KindSubmitted:
		return s.submitted(ctx, p)
	case inbound.KindClosed:
		return inbound.Reply{}, nil
	}
	s.cfg.Log.WarnContext(ctx, "interaction of an unknown type", slog.String("type", blockkit.Brief(string(p.Kind), 64)))
	return inbound.Reply{}, s.respond.Tell(ctx, p.Place(), blockkit.Ours(notSupported))
}

// Foreign tells a person that what they did came from a workspace that is not
// served. Nothing of it is done.
func (s *Handler) Foreign(ctx context.Context, p inbound.Interaction, refused error) (inbound.Reply, error) {
	words, _ := respond.Explain(refused, respond.Subject{})
	s.cfg.Log.InfoContext(ctx, "interaction refused", slog.String("user", p.User), slog.Any("reason", refused))
	switch p.Kind {
	case inbound.KindSubmitted:
		return inbound.Replace(blockkit.Notice(words)), nil
	case inbound.KindShortcut:
		return inbound.Reply{}, s.shortcuts.tellHere(ctx, p, words)
	case inbound.KindClosed:
		return inbound.Reply{}, nil
	case inbound.KindPressed:
	}
	return inbound.Reply{}, s.answer(ctx, p, words)
}

// Command answers a slash command.
func (s *Handler) Command(ctx context.Context, c inbound.Command) (inbound.Reply, error) {
	return s.Slash.Command(ctx, c)
}

// ForeignCommand refuses a slash command of a workspace that is not served.
func (s *Handler) ForeignCommand(context.Context, inbound.Command) (inbound.Reply, error) {
	words, _ := respond.Explain(inbound.ErrOtherTeam, respond.Subject{})
	return inbound.Ephemeral(words), nil
}

// Wait returns when nothing follows any more after what was answered.
func (s *Handler) Wait(ctx context.Context) error { return s.respond.Wait(ctx) }

// pressed handles a button. What the person may read about it is answered 200
// and told to them; an error is answered 500, and Slack warns them.
func (s *Handler) pressed(ctx context.Context, p inbound.Interaction) (inbound.Reply, error) {
	press := p.Press
	what := ref.ActionOf(press.ID)
	run, known := actions[what]
	if !known {
		s.cfg.Log.WarnContext(ctx, "unknown action", slog.String("action", blockkit.Brief(press.ID, 64)))
		return inbound.Reply{}, s.answer(ctx, p, blockkit.Ours(oldButton))
	}
	ctx = s.verdicts.prefetch(ctx, p, press.Value)
	about, decided, err := run(ctx, s, p)
	s.verdicts.adopt(ctx, p.Who(), p.On(), about, decided && err == nil)
	if err == nil {
		s.followed(ctx, p, decided)
		return inbound.Reply{}, nil
	}
	words, forPeople := s.verdicts.explain(ctx, err, about)
	if !forPeople {
		return inbound.Reply{}, err
	}
	s.verdicts.lost(ctx, p.On(), err)
	s.cfg.Log.InfoContext(ctx, "click refused", slog.String("user", p.User),
		slog.String("action", blockkit.Brief(press.ID, 64)), slog.Any("reason", err))
	return inbound.Reply{}, s.answer(ctx, p, words)
}

// prefetch returns a context that reads in one round trip what deciding about the
// call of a button or a form needs.
func (s *verdicts) prefetch(ctx context.Context, p inbound.Interaction, value string) context.Context {
	ptr, err := ref.ParsePointer(value)
	if err != nil {
		return ctx
	}
	r := approvals.Reads{Batches: []approvals.BatchID{ptr.Batch}, Memos: []approvals.MemoKey{s.placements.Key(ptr.Batch)}}
	if p.MessageTS == "" || !approvesAtOnce(ref.ActionOf(p.Press.ID)) { // a card says by its memo whether it shows all arguments
		r.Args = []approvals.ArgsKey{{Batch: ptr.Batch, Digest: ptr.Digest}}
	}
	return s.deciders.Prefetch(ctx, p.Who(), p.Channel, r)
}

// approvesAtOnce reports whether a button approves without a form, if the card shows all.
func approvesAtOnce(a ref.Action) bool { return a == ref.ActionApprove || a == ref.ActionAgain }

// decide commits one person's verdict. Whatever it returns besides an error is
// for the explanation of that.
func (s *verdicts) decide(ctx context.Context, p inbound.Interaction, value string, v approvals.Verdict, reason string) (respond.Subject, error) {
	ptr, at, err := s.read(ctx, p, value)
	if err != nil {
		at.Attempt, at.Stop = attempts[v], s.cfg.stopping(at.Batch)
		return at, err
	}
	return s.decideAt(ctx, p, at, ptr, v, reason)
}

// decideAt is decide for a call that was just read.
func (s *verdicts) decideAt(ctx context.Context, p inbound.Interaction, at respond.Subject, ptr ref.Pointer, v approvals.Verdict, reason string) (respond.Subject, error) {
	at.Attempt, at.Stop = attempts[v], s.cfg.stopping(at.Batch)
	c, err := s.caseAt(ctx, p, at, ptr)
	if err != nil {
		return at, err
	}
	c, err = s.cfg.Desk.DecideCase(ctx, c, respond.RequestID(s.cfg.Team, p.IDs(), ptr, v, reason), v, reason)
	at.Batch = c.Batch
	if err != nil {
		at.Approval = c.Approval
		return at, fmt.Errorf("decide call %s of batch %s: %w", c.Decision.Call, c.Batch.ID, err)
	}
	if c.Repeated {
		return at, respond.ErrCounted
	}
	s.logDecision(ctx, c)
	return at, nil
}

// takeBack commits that a person's own decision no longer counts. The group by which they
// decided may be gone since.
func (s *verdicts) takeBack(ctx context.Context, p inbound.Interaction, value string) (respond.Subject, error) {
	ptr, at, err := s.read(ctx, p, value)
	at.Stop = s.cfg.stopping(at.Batch)
	if err != nil {
		return at, err
	}
	c, err := s.cfg.Desk.Case(ctx, at.Batch, at.Approval.Call.ID, ptr.Digest, func(ctx context.Context, asked approvals.Asked) (approvals.Principal, error) {
		who, _, err := s.people.Resolve(ctx, p.User, p.UserTeam, directory.SoughtBy(asked))
		return who, err
	})
	if err != nil {
		return at, err
	}
	after, err := s.cfg.Desk.RetractCase(ctx, c, s.request(p, value, "retract", ""))
	if err != nil {
		at.Batch, at.Approval = after.Batch, after.Approval
		return at, fmt.Errorf("take back the decision on call %s of batch %s: %w", c.Decision.Call, c.Batch.ID, err)
	}
	s.logRetraction(ctx, c.Approval, after)
	return at, nil
}

// caseOf finds out which call a button means and who pressed it.
func (s *verdicts) caseOf(ctx context.Context, p inbound.Interaction, value string) (respond.Subject, approvals.Case, error) {
	at := respond.Subject{User: p.User, Now: s.cfg.Now()}
	ptr, b, a, err := s.resolve(ctx, value)
	at.Batch, at.Approval, at.Stop = b, a, s.cfg.stopping(b)
	if err != nil {
		return at, approvals.Case{}, err
	}
	c, err := s.caseAt(ctx, p, at, ptr)
	return at, c, err
}

// caseAt resolves the person who pressed a button about this call.
func (s *verdicts) caseAt(ctx context.Context, p inbound.Interaction, at respond.Subject, ptr ref.Pointer) (approvals.Case, error) {
	return s.cfg.Desk.Case(ctx, at.Batch, at.Approval.Call.ID, ptr.Digest, func(ctx context.Context, asked approvals.Asked) (approvals.Principal, error) {
		return s.deciders.Principal(ctx, p.Who(), p.Channel, asked)
	})
}

// request names what is done to the call of a button, so that a delivery that is
// repeated is answered like the first.
func (s *verdicts) request(p inbound.Interaction, value string, what approvals.Verdict, words string) approvals.RequestID {
	ptr, _ := ref.ParsePointer(value) // it has been read before
	return respond.RequestID(s.cfg.Team, p.IDs(), ptr, what, words)
}

// resolve reads what a button points at.
func (s *verdicts) resolve(ctx context.Context, value string) (ref.Pointer, approvals.Batch, approvals.Approval, error) {
	ptr, err := ref.ParsePointer(value)
	if err != nil {
		return ptr, approvals.Batch{}, approvals.Approval{}, err
	}
	b, err := s.cfg.Desk.Batch(ctx, ptr.Batch)
	if err != nil {
		return ptr, b, approvals.Approval{}, err
	}
	a, err := ptr.In(b)
	return ptr, b, a, err
}

// refusal is why a form is not opened, once it is durable how the batch stands:
// "you have approved this" acknowledges a decision too.
func (s *verdicts) refusal(ctx context.Context, at respond.Subject, refused error) error {
	if err := s.cfg.Desk.Confirm(ctx, at.Batch); err != nil {
		return err
	}
	return refused
}

// explain is [respond.Explain], which names nobody as an approver here who can't take part
// any more, and no group in which nobody is left who could approve the call.
func (s *verdicts) explain(ctx context.Context, err error, at respond.Subject) (words blockkit.Mrkdwn, known bool) {
	if respond.NamesApprovers(err) {
		ctx, cancel := context.WithTimeout(ctx, approversTime)
		defer cancel()
		at.Deserted, at.Gone = s.deserted(ctx, at), s.gone(ctx, at)
	}
	return respond.Explain(err, at)
}

const (
	// approversTime bounds how long a refusal waits to know who else could approve: for a
	// second, because a question ends so long before the deadline of its caller.
	approversTime = slackapi.Spared + time.Second
	// approversSought bounds of how many people that is asked, for each group and of those
	// who are named.
	approversSought = 20
)

// deserted returns the groups of the call without members who could approve it, the
// person aside. A group that cannot be looked up is none of them.
func (s *verdicts) deserted(ctx context.Context, at respond.Subject) []approvals.GroupID {
	groups := asked(at).Groups
	in, _ := s.people.ForDisplay(ctx, groups)
	return slices.DeleteFunc(groups, func(g approvals.GroupID) bool {
		_, known := in[g]
		sought := 0
		return !known || slices.ContainsFunc(in.Members([]approvals.From{{Groups: []approvals.GroupID{g}}}), func(u approvals.UserID) bool {
			if string(u) == at.User || at.Batch.Barred(at.Approval, u) {
				return false
			}
			sought++
			return sought > approversSought || !directory.Out(ctx, s.people, u, directory.Sought{})
		})
	})
}

// gone returns the people whom the call names and who can't take part any more.
func (s *verdicts) gone(ctx context.Context, at respond.Subject) []approvals.UserID {
	users := asked(at).Users
	users = users[:min(len(users), approversSought)]
	return slices.DeleteFunc(users, func(u approvals.UserID) bool {
		return !directory.Out(ctx, s.people, u, directory.Sought{Named: []approvals.UserID{u}})
	})
}

// asked are the people and the groups who can approve the call, each once.
func asked(at respond.Subject) approvals.From {
	var all approvals.From
	for _, q := range at.Approval.Requirement.Quorums {
		all.Groups, all.Users = append(all.Groups, q.From.Groups...), append(all.Users, q.From.Users...)
	}
	slices.Sort(all.Groups)
	slices.Sort(all.Users)
	return approvals.From{Groups: slices.Compact(all.Groups), Users: slices.Compact(all.Users)}
}
