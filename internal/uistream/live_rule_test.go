package uistream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A page is what a client makes of chunks. It fails on one that no client takes.
type page struct {
	t     require.TestingT
	parts []string // "text hello", "call c1 {}"
	open  map[string]int
	step  int // where the current one begins
	steps int // that are begun and not finished
}

func (p *page) take(all []chunk) {
	for _, c := range all {
		id := c.ID + c.ToolCallID
		switch c.Type {
		case typeStartStep:
			require.Zero(p.t, p.steps, "the step before it is not finished")
			p.steps, p.step, p.open = 1, len(p.parts), map[string]int{}
		case typeFinishStep:
			require.Equal(p.t, 1, p.steps, "no step has begun")
			p.steps = 0
		case typeResetStep:
			p.parts, p.open = p.parts[:p.step], map[string]int{}
		case typeTextStart, typeReasoningStart:
			require.NotContains(p.t, p.open, id)
			require.Equal(p.t, 1, p.steps)
			p.open[id] = len(p.parts)
			p.parts = append(p.parts, strings.TrimSuffix(c.Type, "-start")+" ")
		case typeInputStart:
			require.Equal(p.t, 1, p.steps)
			at, again := p.open[id]
			if !again {
				at = len(p.parts)
				p.parts = append(p.parts, "")
			}
			p.open[id], p.parts[at] = at, "call "+c.ToolCallID+" "
		case typeTextDelta, typeReasoningDelta, typeInputDelta:
			require.Contains(p.t, p.open, id, "%s", c.Type)
			require.Equal(p.t, 1, p.steps)
			p.parts[p.open[id]] += c.Delta + c.InputTextDelta
		case typeInputAvailable, typeInputError:
			p.parts[p.open[id]] = "call " + c.ToolCallID + " " + string(c.Input)
		case typeTextEnd, typeReasoningEnd:
			require.Contains(p.t, p.open, id)
			delete(p.open, id)
		}
	}
}

func drafted(parts ...string) agentrun.Draft {
	d := agentrun.Draft{Run: "run-01-a", At: 1}
	for _, p := range parts {
		kind, text, _ := strings.Cut(p, " ")
		x := agentrun.DraftPart{Kind: agentrun.DeltaKind(kind), Text: text}
		if x.Kind == agentrun.DeltaCall {
			id, args, _ := strings.Cut(text, " ")
			x.Call, x.Tool, x.Text = approvals.ToolCallID(id), "del", args
		}
		d.Parts = append(d.Parts, x)
	}
	return d
}

// stored is a step of the turn with these parts.
func stored(t *turn, parts ...string) {
	s := &step{}
	for _, p := range drafted(parts...).Parts {
		switch p.Kind {
		case agentrun.DeltaThinking:
			s.response.Parts = append(s.response.Parts, agentrun.Thinking{Content: p.Text})
		case agentrun.DeltaCall:
			s.response.Parts = append(s.response.Parts, agentrun.CallPart{ToolCall: approvals.ToolCall{ID: p.Call, Name: p.Tool, Args: json.RawMessage(p.Text)}})
			s.calls = append(s.calls, &call{id: p.Call, name: p.Tool, args: json.RawMessage(p.Text)})
		default:
			s.response.Parts = append(s.response.Parts, agentrun.Text{Content: p.Text})
		}
	}
	t.steps, t.at = append(t.steps, s), t.at+1
}

func TestADraftBecomesTheStoredStepOrIsTakenBack(t *testing.T) {
	now := time.Now()
	for name, row := range map[string]struct {
		drafts [][]string
		stored []string
		lost   bool // in a dialect that takes nothing back
	}{
		"it grows":                      {[][]string{{"text a"}, {"text ab"}}, []string{"text abc"}, false},
		"it is there before it is told": {nil, []string{"text abc"}, false},
		"all of it was told":            {[][]string{{"thinking t", "text abc"}}, []string{"thinking t", "text abc"}, false},
		"another attempt says the same": {[][]string{{"text ab"}, {"text a"}, {"text abc"}}, []string{"text abcd"}, false},
		"another attempt differs":       {[][]string{{"text ab"}, {"text x"}}, []string{"text xyz"}, true},
		"only the step differs":         {[][]string{{"text ab"}}, []string{"text xyz"}, true},
		"the step has no text":          {[][]string{{"text ab"}}, []string{`call c1 {}`}, true},
		"arguments are written again":   {[][]string{{`call c1 {"a":1`}, {`call c1 {"b"`}}, []string{`call c1 {"b":2}`}, false},
		"a call is not made":            {[][]string{{"text a", `call c1 {`}}, []string{"text ab", `call c2 {}`}, true},
		"several texts":                 {[][]string{{"text a"}}, []string{"text ab", "text cd", "call c1 {}"}, false},
	} {
		for _, d := range []Dialect{Common, V5, V7, V7082} {
			t.Run(name+", "+string(d), func(t *testing.T) {
				w, p := newTeller(d, "U", true), &page{t: t}
				x := &turn{head: "run-01-a", run: "run-01-a", began: now, at: 1}
				p.take(w.tell(x, now))
				for _, parts := range row.drafts {
					p.take(w.draft(x, drafted(parts...)))
				}
				stored(x, row.stored...)
				x.over = true
				p.take(w.tell(x, now))
				require.Equal(t, row.lost && d != V7082, w.lost)
				if !w.lost {
					require.Equal(t, strings.Join(row.stored, "\n"), strings.ReplaceAll(strings.Join(p.parts, "\n"), "reasoning", "thinking"))
					p.take(w.end(x))
					require.Zero(t, p.steps)
				}
			})
		}
	}
}

// Conversations of other surfaces are not told as they are written.
func TestOnlyRunsThatWereAskedForInAChatAreWatched(t *testing.T) {
	require.True(t, Watched(agentrun.Run{Origin: agentrun.Origin{Surface: "web"}}))
	require.True(t, Watched(agentrun.Run{Origin: agentrun.Origin{Surface: "slack"}, Via: "web"}))
	require.False(t, Watched(agentrun.Run{Origin: agentrun.Origin{Surface: "slack"}}))
}

// A response that cannot be used is not stored: the model is asked again at a later
// place of the thread.
func TestADraftThatIsNotUsedIsTakenBack(t *testing.T) {
	now := time.Now()
	for _, d := range []Dialect{Common, V7082} {
		w, p := newTeller(d, "U", true), &page{t: t}
		x := &turn{head: "run-01-a", run: "run-01-a", began: now, at: 1}
		p.take(w.tell(x, now))
		p.take(w.draft(x, drafted("text no", `call c1 {`)))
		x.at = 2
		p.take(w.tell(x, now))
		require.Equal(t, d == Common, w.lost)
		if w.lost {
			continue
		}
		require.Empty(t, w.draft(x, drafted("text late")), "of the place before")
		p.take(w.draft(x, agentrun.Draft{Run: x.run, At: 2, Parts: drafted("text ye").Parts}))
		stored(x, "text yes")
		p.take(w.tell(x, now))
		require.Equal(t, []string{"text yes"}, p.parts)
	}
}

func TestADraftIsClosedWhenTheAgentFails(t *testing.T) {
	now := time.Now()
	w, p := newTeller(Common, "U", true), &page{t: t}
	x := &turn{head: "run-01-a", run: "run-01-a", began: now, at: 1}
	p.take(w.tell(x, now))
	p.take(w.draft(x, drafted("text some", `call c1 {"a`)))
	x.over, x.failure, x.at = true, "The model is away.", 2
	out := append(w.tell(x, now), w.end(x)...)
	p.take(out)
	require.Equal(t, []string{typeTextEnd, typeInputError, typeFinishStep, typeError, typeFinish}, types(out))
	require.Empty(t, p.open["0.text.0"])
	require.False(t, w.lost)
}

// Whatever is seen of a response while it is written, a client ends with what is
// stored, each part once, or with a stream that it has to resume.
func TestAnyDraftsEndInWhatIsStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		d := rapid.SampledFrom([]Dialect{Common, V5, V7, V7082}).Draw(t, "dialect")
		w, p := newTeller(d, "U", true), &page{t: t}
		x := &turn{head: "run-01-a", run: "run-01-a", began: now}
		attempt := func(step int, label string) []string {
			var parts []string
			if rapid.Bool().Draw(t, label+" thinks") {
				parts = append(parts, "thinking "+rapid.StringMatching(`[ab]{1,3}`).Draw(t, label+" thinking"))
			}
			if rapid.Bool().Draw(t, label+" speaks") {
				parts = append(parts, "text "+rapid.StringMatching(`[ab]{1,4}`).Draw(t, label+" text"))
			}
			for i := range rapid.IntRange(0, 2).Draw(t, label+" calls") {
				parts = append(parts, fmt.Sprintf(`call c%d.%d {"a":%d}`, step, i, rapid.IntRange(1, 2).Draw(t, label+" args")))
			}
			return parts
		}
		var want []string
		for step := range rapid.IntRange(1, 3).Draw(t, "steps") {
			p.take(w.tell(x, now))
			var parts []string
			for i := range rapid.IntRange(0, 3).Draw(t, "attempts") {
				parts = attempt(step, fmt.Sprint("attempt ", step, i))
				for range rapid.IntRange(0, 3).Draw(t, "frames") {
					cut := drafted(parts[:rapid.IntRange(0, len(parts)).Draw(t, "parts")]...)
					if n := len(cut.Parts); n > 0 {
						cut.Parts[n-1].Text = cut.Parts[n-1].Text[:rapid.IntRange(0, len(cut.Parts[n-1].Text)).Draw(t, "cut")]
					}
					cut.At = x.at
					p.take(w.draft(x, cut))
					if rapid.Bool().Draw(t, "looks again") {
						p.take(w.tell(x, now))
					}
				}
			}
			stored(x, parts...)
			want = append(want, parts...)
			x.over = rapid.Bool().Draw(t, "over")
			p.take(w.tell(x, now))
			if w.lost {
				require.NotEqual(t, V7082, d)
				require.Empty(t, w.draft(x, drafted("text more")))
				return
			}
			if x.over {
				break
			}
			for _, c := range x.steps[step].calls {
				c.result = agentrun.ToolReturn{CallID: c.id, Content: json.RawMessage(`1`), Outcome: agentrun.OutcomeSuccess}
			}
			x.at++
		}
		p.take(w.tell(x, now))
		for i, part := range p.parts {
			p.parts[i] = strings.Replace(part, "reasoning", "thinking", 1)
		}
		require.ElementsMatch(t, want, p.parts)
	})
}
