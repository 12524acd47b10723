// A scripted model. Put yours in its place, such as openai('gpt-5').
import { MockLanguageModelV4 } from 'ai/test'
import { answer, calls } from '../script.mjs'

export const model = new MockLanguageModelV4({
  async doGenerate({ prompt }) {
    const { role, content } = prompt.at(-1)
    const said = (reason, parts) => ({
      content: parts, finishReason: { unified: reason }, warnings: [],
      usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
    })
    if (role === 'user') {
      return said('tool-calls', calls(content[0].text).map(({ id, name, args }) =>
        ({ type: 'tool-call', toolCallId: id, toolName: name, input: JSON.stringify(args) })))
    }
    const results = content.map(({ output }) => output.value ?? output.reason)
    return said('stop', [{ type: 'text', text: answer(results) }])
  },
})
