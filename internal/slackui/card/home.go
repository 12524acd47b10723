package card

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// How many rows a page of each part of a Home shows. A row takes two blocks, and
// a Home holds 100.
const (
	WaitingRows = 15
	OtherRows   = 10
	DecidedRows = 10
	standsShown = 5
	toolsShown  = 4
)

// Pages says which page each part of a Home shows.
type Pages struct {
	Waiting window `json:"w,omitzero"`
	Others  int    `json:"o,omitempty"`
	Decided int    `json:"d,omitempty"`
}

// A window is where a part of an inbox begins, and how many of its rows are on
// earlier pages.
type window struct {
	Cursor approvals.Cursor `json:"c,omitempty"`
	Offset int              `json:"o,omitempty"`
}

func (p Pages) String() string {
	raw, err := json.Marshal(p)
	if err != nil {
		return "{}"
	}
	return string(raw)
}

// ParsePages reads what [Pages.String] wrote and nothing else.
func ParsePages(s string) (Pages, error) {
	var p Pages
	if len(s) > ref.MaxPointer || json.Unmarshal([]byte(s), &p) != nil || p.Waiting.Offset < 0 || p.Others < 0 || p.Decided < 0 {
		return Pages{}, ref.ErrPointer
	}
	return p, nil
}

// A Home is what one person's Home tab shows.
type Home struct {
	Person    approvals.UserID
	Waiting   Page
	Others    Page
	Decided   Page
	Away      approvals.Absence
	IsAway    bool
	StandsFor []approvals.Stand
	Unsure    bool // Slack did not say of every group who is in it
	Several   bool // several calls can be approved together
	Tool      func(agent, name string) (agentrun.Spec, bool)
	Pages     Pages
	Now       time.Time
}

// A Page is one page of a list.
type Page struct {
	rows  []OpenCalls
	from  int
	total int
	size  int
	Next  approvals.Cursor // where the inbox goes on; empty at its end
}

// NewPage returns the page of a part of the Home that begins at from, or the
// last one if there are fewer rows.
func NewPage(all []OpenCalls, from, size int) Page {
	if from >= len(all) {
		from = max(0, (len(all)-1)/size*size)
	}
	return Page{rows: all[from:min(from+size, len(all))], from: from, total: len(all), size: size}
}

// HomeView draws a Home, in fewer than Slack's 100 blocks.
func HomeView(h Home) slack.HomeTabViewRequest {
	blocks := slices.Concat(h.waiting(), h.others(), h.decided(), h.delegations())
	return slack.HomeTabViewRequest{Type: slack.VTHomeTab, CallbackID: ref.CallbackHome, Blocks: slack.Blocks{BlockSet: blocks}}
}

func header(words string) slack.Block { return slack.NewHeaderBlock(blockkit.Literal(words)) }

func (h Home) waiting() []slack.Block {
	blocks := []slack.Block{header("Waiting for you")}
	s := h.Waiting
	switch {
	case len(s.rows) > 0:
		said := blockkit.Ours("1 request waits for your signature.")
		if s.total > 1 {
			said = blockkit.Ours("%s wait for your signature, the most urgent first.", blockkit.Counted(s.total, "request"))
		}
		if s.Next != "" || h.Pages.Waiting.Cursor != "" {
			said = blockkit.Ours("These are %s of many requests that wait for your signature, the most urgent of them first.", blockkit.Num(s.total))
		}
		blocks = append(blocks, blockkit.Small(said))
	case s.Next != "":
		blocks = append(blocks, blockkit.Small(blockkit.Ours("None of the requests that were looked at waits for your signature. There are more behind them.")))
	case h.Unsure:
		blocks = append(blocks, blockkit.Small(blockkit.Ours("Nothing is known to wait for you.")))
	default:
		blocks = append(blocks, blockkit.Small(blockkit.Ours("Nothing waits for you. What does is shown here, and on its card.")))
	}
	if h.Unsure {
		blocks = append(blocks, blockkit.Small(blockkit.Ours("Slack did not say of every group who is in it, so something may be missing here. Open this tab again in a moment.")))
	}
	if h.Several && s.total > 1 {
		blocks = append(blocks, slack.NewActionBlock("", slack.NewButtonBlockElement(ref.ActionSeveral.ID(0), "mine", blockkit.Literal("Approve several…"))))
	}
	for _, p := range s.rows {
		blocks = append(blocks, h.row(p, h.waitingDetails(p)...)...)
	}
	return append(blocks, h.pageButtons(0, "More urgent", "Less urgent", s, func(to int) Pages {
		at := h.Pages
		at.Waiting.Offset = to
		return at
	})...)
}

func (h Home) others() []slack.Block {
	blocks := []slack.Block{header("Waiting for others")}
	s := h.Others
	if len(s.rows) == 0 {
		return append(blocks, blockkit.Small(blockkit.Ours("Nothing that you asked for, or have signed, waits for others.")))
	}
	for _, p := range s.rows {
		by := blockkit.Ours("Asked by %s", blockkit.Person(p.Batch.Requester))
		if p.Batch.Requester == h.Person {
			by = blockkit.Ours("You asked")
		}
		if !p.DecidedBy(h.Person).IsZero() {
			by = blockkit.Ours("%s, and you have decided", by)
		}
		blocks = append(blocks, h.row(p, blockkit.Ours("%s · %s", by, h.ends(p)).Object(), h.progress(p))...)
	}
	return append(blocks, h.pageButtons(1, "Older", "Newer", s, func(to int) Pages {
		at := h.Pages
		at.Others = to
		return at
	})...)
}

func (h Home) decided() []slack.Block {
	blocks := []slack.Block{header("Recently decided")}
	s := h.Decided
	if len(s.rows) == 0 {
		return append(blocks, blockkit.Small(blockkit.Ours("Nothing yet. What you approve or deny is shown here once it is settled.")))
	}
	for _, p := range s.rows {
		by := map[approvals.Status]int{}
		verdicts := map[approvals.Verdict]int{}
		for _, i := range p.Calls {
			by[p.Batch.Approvals[i].StatusAt(h.Now)]++
			mine, _ := p.Batch.Approvals[i].DecisionBy(h.Person)
			verdicts[mine.Verdict]++
		}
		var ended []blockkit.Mrkdwn
		for _, s := range []approvals.Status{approvals.Approved, approvals.Denied, approvals.Expired, approvals.Withdrawn} {
			if n := by[s]; n > 0 && len(p.Calls) > 1 {
				ended = append(ended, blockkit.Ours("%s %s", blockkit.Num(n), counted[s]))
			} else if n > 0 {
				ended = append(ended, counted[s])
			}
		}
		you := blockkit.Ours("You approved")
		switch {
		case verdicts[approvals.Approve] == 0:
			you = blockkit.Ours("You denied")
		case verdicts[approvals.Deny] > 0:
			you = blockkit.Ours("You approved %s and denied %s", blockkit.Num(verdicts[approvals.Approve]), blockkit.Num(verdicts[approvals.Deny]))
		}
		said := blockkit.Ours("%s. %s %s · asked by %s", blockkit.And(ended).Capitalized(), you,
			blockkit.When(p.DecidedBy(h.Person)), blockkit.Person(p.Batch.Requester))
		blocks = append(blocks, h.row(p, said.Object())...)
	}
	return append(blocks, h.pageButtons(2, "Newer", "Older", s, func(to int) Pages {
		at := h.Pages
		at.Decided = to
		return at
	})...)
}

func (h Home) delegations() []slack.Block {
	blocks := []slack.Block{header("Your delegations")}
	if h.IsAway {
		place := blockkit.Ours("Nobody is asked in your place.")
		if h.Away.Delegate != "" {
			place = blockkit.Ours("%s is asked in your place, where the rule of a call lets others sign for those who are away.", blockkit.Person(h.Away.Delegate))
		}
		said := blockkit.Ours("You are away until %s. %s", blockkit.When(h.Away.Until), place)
		end := slack.NewButtonBlockElement(ref.ActionBack.ID(0), "back", blockkit.Literal("I am back"))
		blocks = append(blocks, slack.NewSectionBlock(said.Object(), nil, slack.NewAccessory(end)))
	} else {
		blocks = append(blocks, blockkit.Small(blockkit.Ours("You are not away. To say that you are, write `/countersign away until friday, ask @ann`.")))
	}
	for i, a := range h.StandsFor {
		if i == standsShown {
			blocks = append(blocks, blockkit.Small(blockkit.Ours("You stand in for %s more.", blockkit.Num(len(h.StandsFor)-i))))
			break
		}
		blocks = append(blocks, blockkit.Small(blockkit.Ours("You stand in for %s until %s. Only they can end it.", blockkit.Person(a.User), blockkit.When(a.Until))))
	}
	return blocks
}

// row draws one request: its tools with a button, and its details under them.
// Foreign text is in plain text elements.
func (h Home) row(p OpenCalls, said ...slack.MixedElement) []slack.Block {
	at, label := p.FirstCard(), "Review"
	if p.Batch.Settled() {
		label = "Open"
	}
	open := slack.NewButtonBlockElement(ref.ActionReview.ID(at.Part), at.String(), blockkit.Literal(label))
	agent := blockkit.Literal("Agent " + blockkit.Brief(p.Batch.Agent, 60))
	return []slack.Block{
		slack.NewSectionBlock(blockkit.Literal(h.tools(p)), nil, slack.NewAccessory(open)),
		slack.NewContextBlock("", append(said, agent)...),
	}
}

// tools names the tools of the calls, each once with how often.
func (h Home) tools(p OpenCalls) string {
	var names []string
	times := map[string]int{}
	for _, i := range p.Calls {
		name := p.Batch.Approvals[i].Call.Name
		if times[name]++; times[name] == 1 {
			names = append(names, name)
		}
	}
	var said []string
	for i, name := range names {
		if i == toolsShown {
			said = append(said, blockkit.Count(len(names)-i, "more tool"))
			break
		}
		words := blockkit.Brief(name, 60)
		if times[name] > 1 {
			words += fmt.Sprintf(" (%d times)", times[name])
		}
		said = append(said, words)
	}
	return blockkit.List(said)
}

// waitingDetails are the details of a request that waits for the person: who
// asked, its deadline, its risk, and its progress.
func (h Home) waitingDetails(p OpenCalls) []slack.MixedElement {
	said := blockkit.Ours("Asked by %s · %s · %s", blockkit.Person(p.Batch.Requester), h.ends(p), h.risk(p))
	return []slack.MixedElement{said.Object(), h.progress(p)}
}

func (h Home) ends(p OpenCalls) blockkit.Mrkdwn {
	if d := p.deadline(); !d.IsZero() {
		return blockkit.Ours("expires %s", blockkit.When(d))
	}
	return blockkit.Since(h.Now.Sub(p.Batch.OpenedAt))
}

// risk is the worst of what the annotations of the tools say.
func (h Home) risk(p OpenCalls) blockkit.Mrkdwn {
	onlyReads := blockkit.Ours("only reads")
	worst := onlyReads
	for _, i := range p.Calls {
		spec, known := agentrun.Spec{}, false
		if h.Tool != nil {
			spec, known = h.Tool(p.Batch.Agent, p.Batch.Approvals[i].Call.Name)
		}
		switch {
		case !known:
			return blockkit.Ours("*risk not known*")
		case Destructive(spec.Annotations):
			worst = blockkit.Ours("*may do harm*")
		case !spec.Annotations.ReadOnlyHint && worst == onlyReads:
			worst = blockkit.Ours("changes something")
		}
	}
	return worst
}

// progress counts the signatures of a call, or the calls of several. It is plain
// text: the names of quorums are foreign.
func (h Home) progress(p OpenCalls) slack.MixedElement {
	if len(p.Calls) > 1 {
		return blockkit.Literal(fmt.Sprintf("%d of %s of the request", len(p.Calls), blockkit.Count(len(p.Batch.Approvals), "call")))
	}
	var said []string
	for i, q := range p.Batch.Approvals[p.Calls[0]].Progress() {
		if i == quorumsShown {
			said = append(said, "and more")
			break
		}
		said = append(said, fmt.Sprintf("%s: %d of %d signed", blockkit.Brief(q.Quorum.Name, 40), len(q.By), q.Quorum.Need))
	}
	if len(said) == 0 {
		said = append(said, "Nobody can sign this")
	}
	return blockkit.Literal(strings.Join(said, " · "))
}

// pageButtons are the buttons that lead to the pages before and after this one.
func (h Home) pageButtons(part int, before, behind string, s Page, to func(offset int) Pages) []slack.Block {
	var elements []slack.BlockElement
	add := func(label string, p Pages) {
		elements = append(elements, slack.NewButtonBlockElement(
			ref.ActionTurn.ID(10*part+len(elements)), p.String(), blockkit.Literal(label)))
	}
	first := h.Pages
	first.Waiting = window{}
	if part == 0 && h.Pages.Waiting.Cursor != "" && s.from == 0 {
		add("Back to the first", first)
	}
	if s.from > 0 {
		add(before, to(max(0, s.from-s.size)))
	}
	next := h.Pages
	next.Waiting = window{Cursor: s.Next}
	switch {
	case s.from+len(s.rows) < s.total:
		add(behind, to(s.from+s.size))
	case part == 0 && s.Next != "":
		add("Next requests", next)
	}
	if len(elements) == 0 {
		return nil
	}
	buttons := slack.NewActionBlock("", elements...)
	if len(s.rows) == 0 {
		return []slack.Block{buttons}
	}
	where := blockkit.Small(blockkit.Ours("%s to %s of %s", blockkit.Num(s.from+1), blockkit.Num(s.from+len(s.rows)), blockkit.Num(s.total)))
	return []slack.Block{where, buttons}
}
