// Package slackui is Countersign in Slack: what people send it (mentions,
// clicks, forms, slash commands) and what it shows them (cards, replies,
// modals, ephemeral messages).
//
// # In
//
// [inbound.HTTP] is an [http.Handler] with three routes. Each request is read up to
// 1 MiB, its signature is checked over the raw bytes, and only then is it
// parsed; the only exception is the form with which Slack checks the
// certificate of a command's URL. What came in is committed before it is
// acknowledged: an event or a click that could not be committed is answered
// 500, so that Slack delivers the event again or shows its warning beside the
// button. Known refusals are answered 200 and explained to the person, to them
// alone.
//
// In Socket Mode [inbound.Socket] takes the place of the routes: the same content comes
// in envelopes over connections that we open, and what is answered 200 over
// HTTP is acknowledged there, with the answer as payload. Anything else is not.
//
// A button carries pointers: batch, call, and the digest of the arguments that
// were shown. What they point at is read from the store. Who clicked is
// resolved when they click; a lookup that fails never counts for or against
// anyone.
//
// What was shown is what runs. A card that has to cut a call has no button that
// approves it: Approve opens a form that shows everything of it, page by page,
// and has its button on the last one. Which calls these are is decided by what
// [card.Render] left out, when the card is drawn and again when someone clicks, so
// that a button of an older card opens the form too. A sheet leaves out what it
// would cut. A denial never needs more than its form.
//
// # People
//
// A group is a user group, or a channel whose members are meant. Who is in it,
// and what account a person has, is looked up again after [Config].Membership, or
// as soon as Slack reports a change. Full members count in groups; guests and people
// of other organizations only where a call names them by id; bots and
// deactivated accounts never. In an organization with many workspaces all members
// are colleagues, and a click is for our installation if it names the
// organization: Slack may name no workspace, or another one.
//
// When many lookups need the same answer at once, in any number of replicas, Slack is
// asked once; an answer that people keep needing is renewed before it is too
// old. What Slack does not answer, or not in time, counts as not known: nobody
// approves by it, and the person who waits reads that. A lookup never takes all the
// time that a request has: a second is left for the store and for the answer.
//
// People can say that they are away, until when, and who their delegate is; nobody can
// say it for them. Where a rule allows delegates, a delegate approves with the groups
// that the absent person is in at that moment.
//
// # Out
//
// [delivery.Cards] draws a batch, at most eight calls a message, and [reply.Replies] draws a
// run. [delivery.Notices] tells people by direct message that a call still waits for
// them, that they can approve it now, or that their approval no longer counts: one
// message a person for all calls of a batch, and one in the thread that mentions
// the groups when more than twenty people could still help. They are
// reconcilers: they get an id, read what is stored, and make the messages agree
// with it, however often and in whichever replica they are called.
// What is posted already is kept in a memo beside the document; a claim in the
// memo keeps two replicas from posting the same message, and versions keep an
// old state from being drawn over a new one.
//
// Posting cannot be repeated safely: Slack has no key for it. A post whose
// answer was lost is made again, so there may be a second copy of a card. A
// click on any copy works. From the first click of someone who may decide, that
// copy is kept up to date too, if Slack says with the click that the message was
// posted as a card of this batch: no other message is ever drawn over.
//
// While Slack is unreachable, limits the bot or answers with a server error, cards and
// replies wait, longer each time up to a minute, and none of that counts as a
// failure. An error of Slack that will not pass by itself is one.
//
// # Elsewhere than on cards
//
// [home.Homes] keeps the Home tabs of those who opened theirs. A review is a card in
// a modal, drawn by the same [card.Render], and everything leads to it: Homes, lists,
// digests, the shortcut of a message. A sheet is a stored list for one person,
// of which exactly the frozen lines are decided ([approvals.Sheet]); [bulk.Answers]
// says afterwards what became of each. Whole arguments are shown to those whom a
// request concerns, which is checked each time.
//
// The new cards of a channel and the direct messages of a person are limited for each
// minute, counted over all replicas. What exceeds the limit goes into a digest, one
// message that is updated in place; every call stays within reach of those who
// can approve it.
//
// # Text
//
// Whatever a model or a person wrote is hostile. It goes into rich_text and
// plain_text only, which Slack shows letter for letter, with everything marked
// that people would not see or would take for something else: characters that
// cannot be seen, piles of combining marks, and letters of another script than
// the rest of their word ([spoof.Find]). mrkdwn holds our own words and
// ids of a strict form, nothing else. Models write Markdown: fences, `code` and **bold** are
// turned into their rich_text counterparts, everything else stays as typed.
// Links stay text, so that their target is what is read.
//
// Two calls whose arguments differ never read the same in View full, nor on
// cards that do not say that something is left out. Remarks of ours inside a
// foreign text begin with ⟦, which nobody else can write.
//
// # Limits
//
//	                        Slack            we stay below
//	blocks of a message     50               50
//	text of a message       about 13,200     12,000 characters
//	calls of a message      -                8
//	text of an update       4,000            3,000
//	part of an answer       -                2,800
//	messages of an answer   -                10
//	blocks of a modal       100              84
//	text of a modal         250 KB           30,000 characters a page
//	button value            2,000            1,000 bytes
package slackui
