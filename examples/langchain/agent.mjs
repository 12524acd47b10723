// An agent of LangChain that refunds and cancels orders once people have approved.
//
//   node agent.mjs RUN 'refund R-17 4200; cancel R-18'
//
// RUN names what it is doing. Started again with the same name, it continues.
import { Command } from '@langchain/langgraph'
import { createAgent, createMiddleware, humanInTheLoopMiddleware, tool } from 'langchain'
import { z } from 'zod'
import { ask, decided, newest, once, results } from '../countersign.mjs'
import { cancel, refund } from '../orders.mjs'
import { model } from './model.mjs'
import { pack, unpack } from './saver.mjs'

const [run, prompt] = process.argv.slice(2)

const tools = [
  tool(refund, { name: 'refund', description: 'Pays money of an order back.', schema: z.object({ order: z.string(), cents: z.number().int() }) }),
  tool(cancel, { name: 'cancel', description: 'Cancels an order.', schema: z.object({ order: z.string() }) }),
]
const gated = { refund: true, cancel: true }

function agent(checkpointer, request) {
  const claim = createMiddleware({
    name: 'Countersign',
    wrapToolCall: ({ toolCall, ...rest }, next) => !gated[toolCall.name] ? next({ toolCall, ...rest })
      : once(request, toolCall.id, toolCall.name, (args) => next({ toolCall: { ...toolCall, args }, ...rest })),
  })
  return createAgent({ model, tools, checkpointer, middleware: [humanInTheLoopMiddleware({ interruptOn: gated }), claim] })
}

// Asks for the calls that wait for approval, with all that is needed to continue.
function askFor({ __interrupt__, messages }, checkpointer, before) {
  return __interrupt__ && ask(run, before, {
    format: 'langchain', body: { __interrupt__ },
    ids: messages.at(-1).tool_calls.filter((c) => gated[c.name]).map((c) => c.id),
    state: pack(checkpointer),
  })
}

async function main() {
  const thread = { configurable: { thread_id: run } }
  let result, checkpointer = unpack()
  let request = await newest(run)
  if (!request) {
    result = await agent(checkpointer).invoke({ messages: [{ role: 'user', content: prompt }] }, thread)
    request = await askFor(result, checkpointer)
  }
  while (request) {
    request = await decided(request)
    checkpointer = unpack(request.state)
    result = await agent(checkpointer, request).invoke(new Command(await results(request)), thread)
    request = await askFor(result, checkpointer, request)
  }
  console.log(result.messages.at(-1).content)
}

await main().catch((err) => {
  for (const { message } of err.errors ?? [err]) console.error(message)
  process.exitCode = 1
})
