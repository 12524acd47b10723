package slackui

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A filter says which open calls are meant. Its parts are combined with and;
// of several ids, tools, agents, people or threads any one is enough. The zero
// filter means no call at all. It carries no authority: what may be signed is
// judged of each call that it finds.
type filter struct {
	All     bool               `json:"all,omitempty"`
	Channel string             `json:"ch,omitempty"` // asked or shown there
	IDs     []string           `json:"id,omitempty"` // beginnings of digests
	Tools   []string           `json:"tool,omitempty"`
	Agents  []string           `json:"agent,omitempty"`
	From    []approvals.UserID `json:"from,omitempty"`
	Threads []string           `json:"thread,omitempty"`
	Older   time.Duration      `json:"older,omitempty"`
	Newer   time.Duration      `json:"newer,omitempty"`

	// Batch means one request only, and Drawn those of its calls that had these
	// digests when a button was drawn.
	Batch approvals.BatchID  `json:"batch,omitempty"`
	Drawn []approvals.Digest `json:"drawn,omitempty"`
}

func (f filter) empty() bool {
	return !f.All && f.Channel == "" && f.Batch == "" && f.Older == 0 && f.Newer == 0 &&
		len(f.IDs)+len(f.Tools)+len(f.Agents)+len(f.From)+len(f.Threads) == 0
}

// matches reports whether this call of the batch is meant, as far as that can
// be told without its arguments.
func (f filter) matches(b approvals.Batch, a approvals.Approval, now time.Time) bool {
	age := now.Sub(b.OpenedAt)
	switch {
	case f.empty(),
		f.Channel != "" && !shownIn(b, a, f.Channel),
		len(f.IDs) > 0 && !slices.ContainsFunc(f.IDs, func(id string) bool { return strings.HasPrefix(a.Call.Digest.String(), id) }),
		len(f.Tools) > 0 && !slices.ContainsFunc(f.Tools, func(p string) bool { return glob(p, a.Call.Name) }),
		len(f.Agents) > 0 && !slices.ContainsFunc(f.Agents, func(p string) bool { return glob(p, b.Agent) }),
		len(f.From) > 0 && !slices.Contains(f.From, b.Requester),
		len(f.Threads) > 0 && !slices.Contains(f.Threads, b.Thread),
		f.Older > 0 && age < f.Older,
		f.Newer > 0 && age > f.Newer,
		f.Batch != "" && f.Batch != b.ID,
		len(f.Drawn) > 0 && !f.drew(a):
		return false
	}
	return true
}

// drew reports whether the call, as it is or as it was before it was changed, is
// one of those that were drawn.
func (f filter) drew(a approvals.Approval) bool {
	return slices.Contains(f.Drawn, a.Call.Digest) ||
		slices.ContainsFunc(a.Amendments, func(m approvals.Amendment) bool { return slices.Contains(f.Drawn, m.From) })
}

// moved is why a call that was drawn is not the one that was drawn any more.
func movedSince(f filter, a approvals.Approval, now time.Time) left {
	switch {
	case len(f.Drawn) == 0:
		return ""
	case shown(a, now) != approvals.Pending:
		return leftSettled
	case !slices.Contains(f.Drawn, a.Call.Digest):
		return leftChanged
	}
	return ""
}

// shownIn reports whether the call was asked for in the channel, or is shown
// there since an escalation.
func shownIn(b approvals.Batch, a approvals.Approval, channel string) bool {
	b.Approvals = []approvals.Approval{a}
	return channel != "" && (b.Channel == channel || slices.Contains(b.Channels(), channel))
}

// glob matches a name against a pattern in which * stands for any characters
// and ? for one.
func glob(pattern, name string) bool {
	p, n := []rune(pattern), []rune(name)
	star, from := -1, 0
	i, j := 0, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, from = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i, j = i+1, j+1
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// idRunes is how much of a call's digest names it, until two are alike.
const idRunes = 6

// shortID names a call to people: approve and deny take it.
func shortID(d approvals.Digest) string { return d.String()[:idRunes] }

var (
	idWord    = regexp.MustCompile(`^#?[0-9a-fA-F]{6,64}$`)
	keyedWord = regexp.MustCompile(`^([A-Za-z]+):(.*)$`)
	ageForm   = regexp.MustCompile(`^([0-9]{1,4})(m|h|d|w)$`)
	plainUser = regexp.MustCompile(`^[UW][A-Z0-9]{2,31}$`)
	linkForm  = regexp.MustCompile(`^/archives/([CDG][A-Z0-9]+)/p([0-9]{10})([0-9]{6})$`)
)

// A misread is a word that is not understood. Nothing is guessed: it is said
// which one, and what there is.
type misread struct {
	word string // theirs
	why  string // ours
}

// A typed filter is read where it was typed.
type typed struct {
	team, channel string
}

// filter reads words up to the first that is none of a filter, which begins the
// rest.
func (t typed) filter(words []string) (f filter, rest []string, bad *misread) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		if strings.EqualFold(w, "from:") && i+1 < len(words) && mentioned.MatchString(words[i+1]) {
			i++ // Slack sets a mention apart
			w += words[i]
		}
		ok, problem := t.word(&f, w)
		if problem != "" {
			return filter{}, nil, &misread{word: unescape(w), why: problem}
		}
		if !ok {
			return f, words[i:], nil
		}
	}
	return f, nil, nil
}

// word adds a word to the filter, if it is one of a filter.
func (t typed) word(f *filter, w string) (ok bool, problem string) {
	switch strings.ToLower(w) {
	case "all":
		f.All = true
		return true, ""
	case "channel":
		f.Channel = t.channel
		return true, ""
	}
	if idWord.MatchString(w) {
		f.IDs = append(f.IDs, strings.ToLower(strings.TrimPrefix(w, "#")))
		return true, ""
	}
	m := keyedWord.FindStringSubmatch(w)
	if m == nil {
		return false, ""
	}
	return true, t.keyed(f, strings.ToLower(m[1]), m[2])
}

func (t typed) keyed(f *filter, key, raw string) (problem string) {
	value := unescape(raw)
	if value == "" {
		return "Nothing stands behind its colon."
	}
	switch key {
	case "tool":
		f.Tools = append(f.Tools, value)
	case "agent":
		f.Agents = append(f.Agents, value)
	case "from":
		if m := mentioned.FindStringSubmatch(raw); m != nil {
			value = m[1]
		}
		if !plainUser.MatchString(value) {
			return "Name the person with an @, so that Slack says who is meant."
		}
		f.From = append(f.From, approvals.UserID(value))
	case "thread":
		id, ok := t.thread(value)
		if !ok {
			return "That is not the link of a message. Use Copy link on any message of the thread."
		}
		f.Threads = append(f.Threads, id)
	case "older", "newer":
		d, ok := age(value)
		if !ok {
			return "An age is a number with m, h, d or w, such as `2h`."
		}
		if key == "older" {
			f.Older = max(f.Older, d)
		} else if f.Newer == 0 || d < f.Newer {
			f.Newer = d
		}
	default:
		return "There is no such filter."
	}
	return ""
}

func age(s string) (time.Duration, bool) {
	m := ageForm.FindStringSubmatch(strings.ToLower(s))
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	unit := map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}[m[2]]
	return time.Duration(n) * unit, err == nil && n > 0
}

// thread reads the link of a message into the id of its thread.
func (t typed) thread(link string) (string, bool) {
	link = strings.Trim(link, "<>")
	link, _, _ = strings.Cut(link, "|")
	u, err := url.Parse(link)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") {
		return "", false
	}
	m := linkForm.FindStringSubmatch(u.Path)
	if m == nil {
		return "", false
	}
	root := m[2] + "." + m[3]
	if of := u.Query().Get("thread_ts"); validTS(of) {
		root = of
	}
	return string(agentrun.ThreadIDOf(agentrun.Origin{Surface: surface, Team: t.team, Channel: m[1], Root: root})), true
}

// filterHint is what there is to filter by.
const filterHint = "Filters: an id such as `a1b2c3` from the list, `tool:delete_*`, `agent:ops`, `from:@ann`, `thread:LINK`, " +
	"`older:2h`, `newer:1d`, `channel` for what is shown in this channel, `all`. Several are combined with and; several of one kind, with or."
