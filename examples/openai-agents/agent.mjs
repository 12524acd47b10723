// An agent of OpenAI's Agents SDK that refunds and cancels orders once people have
// approved.
//
//   node agent.mjs RUN 'refund R-17 4200; cancel R-18'
//
// RUN names what it is doing. Started again with the same name, it continues.
import { Agent, RunState, run as start, tool } from '@openai/agents'
import { z } from 'zod'
import { ask, decided, newest, once, results } from '../countersign.mjs'
import { cancel, refund } from '../orders.mjs'
import { model } from './model.mjs'

const [run, prompt] = process.argv.slice(2)

function agent(request) {
  const approved = (name, execute) => ({
    name, needsApproval: true,
    execute: (_args, _context, { toolCall }) => once(request, toolCall.callId, name, execute),
    errorFunction: null, // a call that may not run ends the run: the model would only try again
  })
  return new Agent({
    name: 'orders', model,
    tools: [
      tool({ ...approved('refund', refund), description: 'Pays money of an order back.', parameters: z.object({ order: z.string(), cents: z.number().int() }) }),
      tool({ ...approved('cancel', cancel), description: 'Cancels an order.', parameters: z.object({ order: z.string() }) }),
    ],
  })
}

// Asks for the calls that wait for approval, with all that is needed to continue.
function askFor({ interruptions, state }, before) {
  return interruptions.length && ask(run, before, {
    format: 'openai-agents', body: { interruptions }, carries: { edits: true }, state: state.toString(),
  })
}

// Continues the run with the decisions.
async function resume(request) {
  const state = await RunState.fromString(agent(request), request.state)
  const { decisions } = await results(request)
  for (const item of state.getInterruptions()) {
    const { approve, message } = decisions.find((d) => d.callId === item.rawItem.callId) // throws if there is none
    if (approve) state.approve(item)
    else state.reject(item, { message })
  }
  return start(agent(request), state)
}

async function main() {
  let result, request = await newest(run)
  if (!request) {
    result = await start(agent(), prompt)
    request = await askFor(result)
  }
  while (request) {
    request = await decided(request)
    result = await resume(request)
    request = await askFor(result, request)
  }
  console.log(result.finalOutput)
}

await main().catch((err) => {
  console.error(err.message)
  process.exitCode = 1
})
