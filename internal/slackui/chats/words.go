package chats

// The message that names a chat.
const (
	sayChatOf       = "Chat on the web: "
	sayWith         = " with "
	sayChatWith     = "A chat on the web with "
	sayRequestsHere = "What needs approval in this chat is in this thread."
	sayOpenChat     = "Open the chat"
	sayOnlyTheirs   = " (only its owner can)."
)
