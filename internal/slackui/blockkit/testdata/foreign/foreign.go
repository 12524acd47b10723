// Package foreign tries to put foreign text into mrkdwn. Every line that says
// "must not compile" is refused by the compiler, and no other line is.
package foreign

import "github.com/countersign/countersign/internal/slackui/blockkit"

type words string

const typed words = "a constant with a type"

func foreign(s string, w words, n int, list []string) {
	blockkit.Ours(s)                                        // must not compile
	blockkit.Ours("It says: " + s)                          // must not compile
	blockkit.Ours("It says: %s", s)                         // must not compile
	blockkit.Ours("It says: %s", "a constant")              // must not compile
	blockkit.Ours("It says: %s", w)                         // must not compile
	blockkit.Ours(w)                                        // must not compile
	blockkit.Ours(typed)                                    // must not compile
	blockkit.Ours("%s calls", n)                            // must not compile
	blockkit.Ours(blockkit.Ours("a format"))                // must not compile
	blockkit.Ours("%s", blockkit.Escape(s))                 // must not compile
	blockkit.Ours("%s", blockkit.Brief(s, 60))              // must not compile
	_ = blockkit.Mrkdwn(s)                                  // must not compile
	_ = blockkit.Mrkdwn{s}                                  // must not compile
	_ = blockkit.Mrkdwn{text: s}                            // must not compile
	_ = blockkit.Mrkdwn(blockkit.Escape(s))                 // must not compile
	_ = blockkit.Mrkdwn(struct{ text string }{s})           // must not compile
	_ = blockkit.literal(s)                                 // must not compile
	_ = blockkit.Message{Text: s}                           // must not compile
	_ = blockkit.Fallback(s)                                // must not compile
	_ = blockkit.Fallback(blockkit.Ours("ours"))            // must not compile
	_ = blockkit.MessageOf(s)                               // must not compile
	_ = blockkit.Notice(s)                                  // must not compile
	_ = blockkit.Section(s)                                 // must not compile
	_ = blockkit.Section(blockkit.Escape(s))                // must not compile
	_ = blockkit.Small(s)                                   // must not compile
	_ = blockkit.MessageAbout(s, "", "", blockkit.Mrkdwn{}) // must not compile
	_ = blockkit.MessageAbout("", "", s, blockkit.Mrkdwn{}) // must not compile
	_ = blockkit.MessageAbout("", "", "", s)                // must not compile
	_ = blockkit.Join(nil, s)                               // must not compile
	_ = blockkit.And(list)                                  // must not compile
	_ = blockkit.Counted(n, s)                              // must not compile
	_ = blockkit.Plural(n, s, s)                            // must not compile
}

type disguised string

func (d disguised) mrkdwn() string { return string(d) }

var _ blockkit.Safe = disguised("") // must not compile

func ours(s string, id string, n int) {
	const hint = "Write the name."
	_ = blockkit.Ours("Nothing waits.")
	_ = blockkit.Ours("Nothing waits. " + hint)
	_ = blockkit.Ours("%s by %s", blockkit.Num(n), blockkit.Person(id))
	_ = blockkit.Message{Text: blockkit.Escape(s)}
	_ = blockkit.MessageAbout("There is no ", s, ".", blockkit.Ours(hint))
	_ = blockkit.MessageOf(blockkit.Ours(hint))
	_ = blockkit.Notice(blockkit.Mrkdwn{})
	_ = blockkit.Section(blockkit.Person(id))
	_ = blockkit.Small(blockkit.Counted(n, "call"))
	_ = blockkit.Join([]blockkit.Mrkdwn{blockkit.Plural(n, "waits", "wait")}, hint)
	_ = blockkit.And(nil)
	_ = blockkit.Brief(s, n)
}
