package command

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/ref"
)

var (
	idWord    = regexp.MustCompile(`^#?[0-9a-fA-F]{6,64}$`)
	keyedWord = regexp.MustCompile(`^([A-Za-z]+):(.*)$`)
	ageForm   = regexp.MustCompile(`^([0-9]{1,4})(m|h|d|w)$`)
	plainUser = regexp.MustCompile(`^[UW][A-Z0-9]{2,31}$`)
	linkForm  = regexp.MustCompile(`^/archives/([CDG][A-Z0-9]+)/p([0-9]{10})([0-9]{6})$`)
)

// A misread is a word that was not understood, and why. Nothing is guessed: the
// person reads which word it was, and what they can write.
type misread struct {
	word string          // theirs
	why  blockkit.Mrkdwn // ours
}

// A typed filter is read where it was typed.
type typed struct {
	team, channel string
}

// filter reads words up to the first that is none of a filter, which begins the
// rest.
func (t typed) filter(words []string) (f ref.Filter, rest []string, bad *misread) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		if strings.EqualFold(w, "from:") && i+1 < len(words) && mentioned.MatchString(words[i+1]) {
			i++ // Slack sets a mention apart
			w += words[i]
		}
		ok, problem := t.word(&f, w)
		if !problem.IsZero() {
			return ref.Filter{}, nil, &misread{word: asTyped(w), why: problem}
		}
		if !ok {
			return f, words[i:], nil
		}
	}
	return f, nil, nil
}

// word adds a word to the filter, if it is one of a filter.
func (t typed) word(f *ref.Filter, w string) (ok bool, problem blockkit.Mrkdwn) {
	switch strings.ToLower(w) {
	case "all":
		f.All = true
		return true, blockkit.Mrkdwn{}
	case "channel":
		f.Channel = t.channel
		return true, blockkit.Mrkdwn{}
	}
	if idWord.MatchString(w) {
		f.IDs = append(f.IDs, strings.ToLower(strings.TrimPrefix(w, "#")))
		return true, blockkit.Mrkdwn{}
	}
	m := keyedWord.FindStringSubmatch(w)
	if m == nil {
		return false, blockkit.Mrkdwn{}
	}
	return true, t.keyed(f, strings.ToLower(m[1]), m[2])
}

func (t typed) keyed(f *ref.Filter, key, raw string) (problem blockkit.Mrkdwn) {
	value := blockkit.Unescape(raw)
	if value == "" {
		return blockkit.Ours(filterNoValue)
	}
	switch key {
	case "tool":
		f.Tools = append(f.Tools, asTyped(raw))
	case "agent":
		f.Agents = append(f.Agents, asTyped(raw))
	case "from":
		if m := mentioned.FindStringSubmatch(raw); m != nil {
			value = m[1]
		}
		if !plainUser.MatchString(value) {
			return blockkit.Ours(filterNoPerson)
		}
		f.From = append(f.From, approvals.UserID(value))
	case "thread":
		root, ok := linked(value)
		if !ok {
			return blockkit.Ours(filterNoLink)
		}
		f.Messages = append(f.Messages, root)
		f.Threads = append(f.Threads, string(agentrun.ThreadIDOf(agentrun.Origin{Surface: ref.Surface, Team: t.team, Channel: root.Channel, Root: root.TS})))
	case "older", "newer":
		d, ok := age(value)
		if !ok {
			return blockkit.Ours(filterNoAge)
		}
		if key == "older" {
			f.Older = max(f.Older, d)
		} else if f.Newer == 0 || d < f.Newer {
			f.Newer = d
		}
	default:
		return blockkit.Ours(filterUnknown)
	}
	return blockkit.Mrkdwn{}
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

// linked reads the link of a message into the first message of its thread.
func linked(link string) (ref.Message, bool) {
	link = strings.Trim(link, "<>")
	link, _, _ = strings.Cut(link, "|")
	u, err := url.Parse(link)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") {
		return ref.Message{}, false
	}
	m := linkForm.FindStringSubmatch(u.Path)
	if m == nil {
		return ref.Message{}, false
	}
	root := ref.Message{Channel: m[1], TS: m[2] + "." + m[3]}
	if of := u.Query().Get("thread_ts"); blockkit.ValidTS(of) {
		root.TS = of
	}
	return root, true
}

// filterHint is what there is to filter by.
const filterHint = filterHelp
