// A scripted model. Put yours in its place, such as 'openai:gpt-5'.
import { AIMessage, fakeModel } from 'langchain'
import { answer, calls } from '../script.mjs'

function reply(messages) {
  const asked = messages.findLastIndex((m) => m.type === 'ai')
  if (asked < 0) return new AIMessage({ content: '', tool_calls: calls(messages.at(-1).content) })
  return new AIMessage(answer(messages.slice(asked + 1).map((m) => m.content)))
}

export const model = fakeModel().respond(reply).respond(reply)
