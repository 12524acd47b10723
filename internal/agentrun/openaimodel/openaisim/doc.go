// Package openaisim is a scripted model behind OpenAI's chat completions and
// Responses APIs, for tests and for the demo. No model is asked: a [Story] says what
// is answered, the default answer says so in words, and every answer carries
// the model name and system fingerprint "scripted".
//
// A [Server] is an http.Handler that keeps nothing of a conversation. Like the
// real API it is sent the whole history each time, finds the user message that
// some story matches, and asks that story for its next [Reply] from what has
// been called and answered since. So a conversation may stop for a day at a
// tool call, move to another process, and continue.
//
//	POST /v1/chat/completions   whole or streamed answers
//	POST /v1/responses          the same stories by the Responses API
//	GET  /v1/models             the one model there is
//
// It is strict where the real API is strict, so that a client learns the rules
// here: a bearer key, a model, known roles, content that is never null except
// beside tool calls, every tool call answered by exactly one tool message
// before the next message, tool names that fit the pattern, tool choices that
// exist. Errors have OpenAI's shape, with its types, params and codes; the
// sentences are ours.
//
// By the Responses API a story calls the tool of a hosted MCP server as server.tool.
// The server asks for approval as require_approval says, and makes a call that was
// approved with the function that [Server.Host] was given for it. It keeps no
// response, so each request has all items, as with store: false of the real API.
//
// A [Fault] makes an answer go wrong on purpose, either queued with
// [Server.Fail] or as part of a reply.
//
// What is not simulated: tokens (usage counts characters, divided by four),
// sampling, several choices, log probabilities, structured outputs, images and
// audio, a limit on the context, a rate limit, and obedience to tool_choice
// "required" or to a named function.
//
// The protocols:
//
//   - https://platform.openai.com/docs/api-reference/responses/create
//   - https://platform.openai.com/docs/api-reference/responses-streaming
//   - https://platform.openai.com/docs/guides/tools-connectors-mcp
//   - https://platform.openai.com/docs/api-reference/chat/create
//   - https://platform.openai.com/docs/api-reference/chat-streaming
//   - https://platform.openai.com/docs/guides/function-calling
//   - https://platform.openai.com/docs/guides/error-codes
//   - https://github.com/openai/openai-openapi
//   - https://html.spec.whatwg.org/multipage/server-sent-events.html
//
// What the reference leaves out was taken from reports of what the real server
// answers: https://github.com/agno-agi/agno/issues/5116 (a call answered
// twice), https://github.com/aliasrobotics/cai/issues/111 (a call not
// answered), https://github.com/vercel/ai/pull/14950 (null content).
package openaisim
