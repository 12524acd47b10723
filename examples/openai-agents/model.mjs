// A scripted model. Put yours in its place, such as 'gpt-5'.
import { Usage } from '@openai/agents'
import { answer, calls } from '../script.mjs'

export const model = {
  async getResponse({ input }) {
    const [first, ...rest] = typeof input === 'string' ? [{ content: input }] : input
    const results = rest.filter((item) => item.type === 'function_call_result').map((item) => item.output.text)
    const output = results.length
      ? [{ type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: answer(results) }] }]
      : calls(first.content).map(({ id, name, args }) =>
          ({ type: 'function_call', callId: id, name, arguments: JSON.stringify(args), status: 'completed' }))
    return { usage: new Usage(), output }
  },
}
