package card

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/slack-go/slack"

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
	StandsFor []approvals.Delegation
	Unsure    bool // Slack did not say of every group who is in it
	Several   bool // several calls can be approved together
	Pages     Pages
	Now       time.Time
}

// A Page is one page of a list.
type Page struct {
	rows  []OpenCalls
	from  int
	total int
	size  int
	Next  approvals.Cursor // where the inbox continues; empty at its end
}

// NewPage returns the page of a part of the Home that begins at from, or the
// last one if there are fewer rows.
func NewPage(all []OpenCalls, from, size int) Page {
	if from >= len(all) {
		from = max(0, (len(all)-1)/size*size)
	}
	return Page{rows: all[from:min(from+size, len(all))], from: from, total: len(all), size: size}
}

// Rows are the rows of the page, to be given their summaries.
func (p Page) Rows() []*OpenCalls {
	rows := make([]*OpenCalls, len(p.rows))
	for i := range p.rows {
		rows[i] = &p.rows[i]
	}
	return rows
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
		said := blockkit.Ours(homeOne)
		if s.total > 1 {
			said = blockkit.Ours(homeSome, blockkit.Counted(s.total, "request"))
		}
		if s.Next != "" || h.Pages.Waiting.Cursor != "" {
			said = blockkit.Ours(homeMany, blockkit.Num(s.total))
		}
		blocks = append(blocks, blockkit.Small(said))
	case s.Next != "":
		blocks = append(blocks, blockkit.Small(blockkit.Ours(homeNotYet)))
	case h.Unsure:
		blocks = append(blocks, blockkit.Small(blockkit.Ours(homeNoneKnown)))
	default:
		blocks = append(blocks, blockkit.Small(blockkit.Ours(homeNone)))
	}
	if h.Unsure {
		blocks = append(blocks, blockkit.Small(blockkit.Ours(homeUnsure)))
	}
	if h.Several && s.total > 1 {
		blocks = append(blocks, slack.NewActionBlock("", severalButton()))
	}
	for _, p := range s.rows {
		by := blockkit.Ours("requested by %s", blockkit.Person(p.Batch.Requester))
		blocks = append(blocks, h.row(p, h.openDetails(p, by)...)...)
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
		return append(blocks, blockkit.Small(blockkit.Ours(homeNoneElsewhere)))
	}
	for _, p := range s.rows {
		by := blockkit.Ours("requested by %s", blockkit.Person(p.Batch.Requester))
		if p.Batch.Requester == h.Person {
			by = blockkit.Ours("requested by you")
		}
		if !p.DecidedBy(h.Person).IsZero() {
			by = blockkit.Ours("%s · you have decided", by)
		}
		blocks = append(blocks, h.row(p, h.openDetails(p, by)...)...)
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
		return append(blocks, blockkit.Small(blockkit.Ours(homeNoneDecided)))
	}
	for _, p := range s.rows {
		by := map[approvals.Status]int{}
		verdicts, doubts := map[approvals.Verdict]int{}, false
		for _, i := range p.Calls {
			by[p.Batch.Approvals[i].StatusAt(h.Now)]++
			mine, _ := p.Batch.Approvals[i].DecisionBy(h.Person)
			verdicts[mine.Verdict]++
			doubts = doubts || p.Batch.Approvals[i].InDoubt()
		}
		var ended []blockkit.Mrkdwn
		for _, s := range []approvals.Status{approvals.Approved, approvals.Denied, approvals.Expired, approvals.Withdrawn, approvals.Confirmed} {
			if n := by[s]; n > 0 && len(p.Calls) > 1 {
				ended = append(ended, blockkit.Ours("%s %s", blockkit.Num(n), counted[s]))
			} else if n > 0 {
				ended = append(ended, counted[s])
			}
		}
		you := blockkit.Ours("You approved")
		switch {
		case doubts:
			you = blockkit.Ours("You decided")
		case verdicts[approvals.Approve] == 0:
			you = blockkit.Ours("You denied")
		case verdicts[approvals.Deny] > 0:
			you = blockkit.Ours(homeBoth, blockkit.Num(verdicts[approvals.Approve]), blockkit.Num(verdicts[approvals.Deny]))
		}
		said := blockkit.Ours("%s. %s %s · requested by %s", blockkit.And(ended).Capitalized(), you,
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
		place := blockkit.Ours(homeNoDelegate)
		if h.Away.Delegate != "" {
			place = blockkit.Ours(homeDelegate, blockkit.Person(h.Away.Delegate))
		}
		said := blockkit.Ours(homeAway, blockkit.When(h.Away.Until), place)
		end := blockkit.Button(ref.ActionBack.ID(0), "back", "I'm back", homeBackSpoken)
		blocks = append(blocks, slack.NewSectionBlock(said.Object(), nil, slack.NewAccessory(end)))
	} else {
		blocks = append(blocks, blockkit.Small(blockkit.Ours(homeNotAway)))
	}
	for i, a := range h.StandsFor {
		if i == standsShown {
			blocks = append(blocks, blockkit.Small(blockkit.Ours(homeStandsMore, blockkit.Num(len(h.StandsFor)-i))))
			break
		}
		blocks = append(blocks, blockkit.Small(blockkit.Ours(homeStands, blockkit.Person(a.User), blockkit.When(a.Until))))
	}
	return blocks
}

// row draws one request: what it does with a button, and its details below.
// Foreign text is in plain text elements.
func (h Home) row(p OpenCalls, said ...slack.MixedElement) []slack.Block {
	label := "Review"
	if p.Batch.Settled() {
		label = "Open"
	}
	agent := blockkit.Literal("Agent " + blockkit.Brief(p.Batch.Agent, 60))
	return []slack.Block{
		slack.NewSectionBlock(blockkit.Literal(p.Title(titleRunes)), nil, slack.NewAccessory(p.button(p.leading()/CallsPerCard, label))),
		slack.NewContextBlock("", append(said, agent)...),
	}
}

// titleRunes is how much of what a request does its row shows.
const titleRunes = 200

// openDetails are the details of a request that waits: how bad it is, who asked,
// its deadline and its progress.
func (h Home) openDetails(p OpenCalls, by blockkit.Mrkdwn) []slack.MixedElement {
	said := blockkit.Ours("%s · %s · %s", blockkit.RiskMarked(p.Leading().Severity), by, h.ends(p))
	return []slack.MixedElement{said.Object(), blockkit.Literal(p.Progress())}
}

func (h Home) ends(p OpenCalls) blockkit.Mrkdwn {
	if d := p.deadline(); !d.IsZero() {
		return blockkit.Ours("expires %s", blockkit.When(d))
	}
	return blockkit.Since(h.Now.Sub(p.Batch.OpenedAt))
}

// severalButton opens a sheet of all that waits for the person who presses it.
func severalButton() *blockkit.ButtonElement {
	return blockkit.Button(ref.ActionSeveral.ID(0), "mine", "Approve several…", homeSeveralSpoken)
}

// pageLists names the lists of a Home that have pages, for screen readers.
var pageLists = []string{homeListWaiting, homeListOthers, homeListDecided}

// pageButtons are the buttons that lead to the pages before and after this one.
func (h Home) pageButtons(part int, before, behind string, s Page, to func(offset int) Pages) []slack.Block {
	var elements []slack.BlockElement
	add := func(label string, p Pages) {
		elements = append(elements, blockkit.Button(
			ref.ActionTurn.ID(10*part+len(elements)), p.String(), label, label+": "+pageLists[part]))
	}
	first := h.Pages
	first.Waiting = window{}
	if part == 0 && h.Pages.Waiting.Cursor != "" && s.from == 0 {
		add(homeFirstPage, first)
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
