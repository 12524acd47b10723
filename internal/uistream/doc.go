// Package uistream serves chats to frontends that are built on `useChat` of the
// AI SDK: the UI message stream over server-sent events. It is an adapter beside
// slackui on the same ports. A chat is a thread, a message of its user is a run,
// and a pending call of it is decided on the web or in Slack, each decision
// once. Nothing about approvals is decided here.
//
// # A turn
//
// What a message of the user leads to is one assistant message, over all runs
// that resume each other: a [turn]. It is assembled from what is stored whenever
// it is needed, so any process can continue a stream that another one began, and
// the id of the message is always the same. A [teller] knows what a client has
// been sent and says what is new in a turn.
//
// # Threads of other surfaces
//
// A chat is a person's own, or the thread of a conversation elsewhere. Its id then
// names the thread and gives no right: [People.MayOpen] is asked with every request,
// and of a turn that someone else asked for the person sees what the conversation
// shows, see [Server.narrow].
//
// # What a model is writing
//
// The next step of a turn is told while it is written, as [agentrun.Draft]s say,
// under the ids that the stored step will have. Drafts are only to be read: what is
// stored decides, and what a client was told is checked against it, see [shown].
//
// # What a client sends
//
// The history of a client is for display. Only the text of the last user message
// is used, and the answers to approval requests. An answer names its call by an
// id that holds the digest of the arguments, see [approvalID]; it is refused if
// the id, the chat, the tool or the arguments are not those that are stored, and
// what runs is what is stored. The policy decides whose answer counts.
//
// # Dialects
//
// Clients fail on chunks that they don't know, and older ones on fields. The
// common [Dialect] is understood by every client of the versions 6 and 7. What it
// has no words for is in `data-approval` chunks, which are free in form.
package uistream
