// Package openaimodel asks a model behind OpenAI's chat completions protocol or its
// Responses API, at OpenAI or at any compatible base URL. [Model] is an [agentrun.Model].
//
// An answer is streamed, so that silence can be told from work, and used only
// when it is complete: a stream that breaks off, stalls or makes no sense is
// asked for again from the start, a bounded number of times, and so are 429 and
// 5xx, after as long as Retry-After says. What asking again cannot mend comes
// back at once. Every failure but the end of the caller's context is an
// [agentrun.ModelError] whose words hold nothing that the provider wrote, and
// whose text for the log holds neither the key nor what stands before the @ of
// the base URL.
//
// The protocol is stricter than a history, so [Model.Request] bends what it
// sends, never what is stored: the results of a turn's calls go before what
// people wrote meanwhile; nothing is empty, because go-openai leaves empty
// content out and the API then refuses the message; arguments that are not a
// JSON object go inside of one, as the text they are; a tool name that the model
// made up is spelled with permitted characters.
//
// With the Responses API too, every request has the whole history and tells the
// provider to keep nothing, so the only copy is the one that is stored here. Reasoning
// comes with a signature and is sent back unchanged. The answer is taken from the last
// event of the stream, which has all of it; the other events show that the model is at
// work.
//
// [agentrun.ModelRequest].Written is told what the model writes while it arrives, and
// when the model is asked again. A multi-byte character is never split.
//
// What comes back is not bent: arguments are the bytes that the model wrote,
// whether or not they are JSON, and two calls may have one id; what becomes of
// that, the loop decides. But a call without an id or a name cannot be answered
// in this protocol, and of bytes that are not UTF-8, or half a surrogate pair,
// nobody can say what the model wrote: such an answer is asked for again.
//
// What a compatible server wants back with its calls, beside what OpenAI's API has, is sent
// back to it and never to OpenAI, which refuses members that it does not know.
//
// The protocols, and what their servers are known to do with them:
//
//   - https://platform.openai.com/docs/api-reference/responses/create
//   - https://platform.openai.com/docs/api-reference/responses-streaming
//   - https://platform.openai.com/docs/api-reference/chat/create
//   - https://platform.openai.com/docs/api-reference/chat-streaming
//   - https://platform.openai.com/docs/guides/function-calling
//   - https://platform.openai.com/docs/guides/error-codes
//   - https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter
//   - https://openrouter.ai/docs/api-reference/errors
//   - https://ai.google.dev/gemini-api/docs/thought-signatures
//   - https://html.spec.whatwg.org/multipage/server-sent-events.html
//   - https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
//   - https://github.com/sashabaranov/go-openai
package openaimodel
