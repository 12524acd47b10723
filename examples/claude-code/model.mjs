// A scripted Anthropic API: it has Claude Code run the commands that it is given,
// one after the other, and then ends. No key, no model.
//
//   node model.mjs 8099 'echo hello > greeting.txt'
import { createServer } from 'node:http'

const [port, ...commands] = process.argv.slice(2)

createServer(async (req, res) => {
  let body = ''
  for await (const chunk of req) body += chunk
  if (req.method !== 'POST') return res.end()
  const results = (body.match(/"type":"tool_result"/g) ?? []).length
  const command = commands[results]
  const send = (type, more) => res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`)
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  const usage = { input_tokens: 1, output_tokens: 1 }
  const message = { id: `msg_${results}`, type: 'message', role: 'assistant', model: 'claude-sonnet-4-5', content: [], usage }
  send('message_start', { message })
  if (command) {
    const block = { type: 'tool_use', id: `toolu_${Date.now()}`, name: 'Bash', input: {} }
    const input = JSON.stringify({ command, description: 'A scripted command' })
    send('content_block_start', { index: 0, content_block: block })
    send('content_block_delta', { index: 0, delta: { type: 'input_json_delta', partial_json: input } })
  } else {
    send('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
    send('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'done' } })
  }
  send('content_block_stop', { index: 0 })
  send('message_delta', { delta: { stop_reason: command ? 'tool_use' : 'end_turn' }, usage })
  send('message_stop', {})
  res.end()
}).listen(Number(port), '127.0.0.1')
