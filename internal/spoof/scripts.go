package spoof

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

// together are the scripts that one word may mix: the Highly Restrictive level
// of https://www.unicode.org/reports/tr39/#Restriction_Level_Detection.
var together = [][]string{
	{"Latin", "Han", "Hiragana", "Katakana"},
	{"Latin", "Han", "Bopomofo"},
	{"Latin", "Han", "Hangul"},
}

// passesForLatin are letters, by script, that look like Latin ones. They are
// the common ones of https://www.unicode.org/Public/security/latest/confusables.txt.
var passesForLatin = map[string]string{
	"Cyrillic": "аАВеЕсСԁһНіІјЈкКӏӀМоОрРԛԚѕЅТѵѴԝԜхХуУүҮ",
	"Greek":    "αΑΒϲϹΕΗιΙϳͿκΚΜΝνοΟρΡΤυΥχΧΖ",
	"Armenian": "օՕհոսՍցզյ",
}

// A word is a run of letters with their marks and digits. Characters that
// cannot be seen do not end it, nor do bytes that are no characters.
type word struct {
	from, to int
	token    int            // the number of the run of non-blanks that it is in
	scripts  map[string]int // how many letters it has of each
	plain    map[string]bool
	home     []string // the scripts that it may hold
}

// foreignLetters returns the letters of s, each by itself, whose script their
// word should not hold.
//
// A word holds one script, or Latin with Chinese, Japanese or Korean. Of any
// other mixture the fewer letters are returned, and those that are not Latin if
// there are as many of both. If what remains passes for Latin, it is returned
// too: all its letters look like Latin ones, and nothing nearby shows that they
// are not. Nearby is the same run of non-blanks, or, if that has no Latin
// letters, the whole text. So ordinary Russian or Greek is never returned.
func foreignLetters(s string) []Span {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return nil
	}
	words := wordsOf(s)
	latin := map[int]bool{}
	plain := map[int]map[string]bool{}
	anywhere := map[string]bool{}
	for _, w := range words {
		latin[w.token] = latin[w.token] || w.scripts["Latin"] > 0
		for script := range w.plain {
			if w.mixed() {
				continue
			}
			if plain[w.token] == nil {
				plain[w.token] = map[string]bool{}
			}
			plain[w.token][script], anywhere[script] = true, true
		}
	}
	var out []Span
	for _, w := range words {
		home := w.home
		if len(home) == 1 && passesForLatin[home[0]] != "" && !w.plain[home[0]] {
			if known := plain[w.token][home[0]] || (!latin[w.token] && anywhere[home[0]]); !known {
				home = nil
			}
		}
		if len(home) == len(w.home) && !w.mixed() {
			continue
		}
		for i, r := range s[w.from:w.to] {
			if script := scriptOf(r); script != "" && !slices.Contains(home, script) {
				at := w.from + i
				out = append(out, Span{From: at, To: at + utf8.RuneLen(r), Kind: Script, Name: strings.ReplaceAll(script, "_", " ")})
			}
		}
	}
	return out
}

// wordsOf returns the words of s that have a script.
func wordsOf(s string) []word {
	var all []word
	var w word
	token, open := 0, false
	end := func(at int) {
		if open && len(w.scripts) > 0 {
			w.to, w.home = at, w.homes()
			all = append(all, w)
		}
		open = false
	}
	for i, r := range s {
		if !unicode.In(r, unicode.L, unicode.M, unicode.N) {
			if blank := unicode.IsSpace(r); blank || (r != utf8.RuneError && !approvals.Invisible(r)) {
				end(i)
				if blank {
					token++
				}
			}
			continue
		}
		if !open {
			w, open = word{from: i, token: token, scripts: map[string]int{}, plain: map[string]bool{}}, true
		}
		script := scriptOf(r)
		if script == "" {
			continue
		}
		w.scripts[script]++
		if table, has := passesForLatin[script]; has && !strings.ContainsRune(table, r) {
			w.plain[script] = true
		}
	}
	end(len(s))
	return all
}

// homes returns the scripts that most letters of the word are of.
func (w word) homes() []string {
	var best []string
	most := 0
	consider := func(set []string) {
		n := 0
		for _, script := range set {
			n += w.scripts[script]
		}
		if n > most {
			best, most = set, n
		}
	}
	for _, set := range together {
		consider(set)
	}
	names := make([]string, 0, len(w.scripts))
	for script := range w.scripts {
		names = append(names, script)
	}
	slices.Sort(names)
	for _, script := range names {
		consider([]string{script})
	}
	return best
}

// mixed reports whether the word has letters that may not be with the others.
func (w word) mixed() bool {
	for script := range w.scripts {
		if !slices.Contains(w.home, script) {
			return true
		}
	}
	return false
}

// scriptNames are all scripts but those of characters that many share, the
// frequent ones first.
var scriptNames = func() []string {
	frequent := []string{"Latin", "Cyrillic", "Han", "Hiragana", "Katakana", "Hangul", "Greek", "Arabic", "Devanagari", "Hebrew", "Thai"}
	var others []string
	for name := range unicode.Scripts {
		if name != "Common" && name != "Inherited" && !slices.Contains(frequent, name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return append(frequent, others...)
}()

// scriptOf returns the script of a character, and nothing for one that several
// scripts share.
func scriptOf(r rune) string {
	if r < utf8.RuneSelf {
		if unicode.IsLetter(r) {
			return "Latin"
		}
		return ""
	}
	if unicode.In(r, unicode.Common, unicode.Inherited) {
		return ""
	}
	for _, name := range scriptNames {
		if unicode.Is(unicode.Scripts[name], r) {
			return name
		}
	}
	return ""
}
