// An agent of the AI SDK that refunds and cancels orders once people have approved.
//
//   node agent.mjs RUN 'refund R-17 4200; cancel R-18'
//
// RUN names what it is doing. Started again with the same name, it continues.
import { generateText, stepCountIs, tool } from 'ai'
import { z } from 'zod'
import { NotApproved, ask, decided, decision, newest, once } from '../countersign.mjs'
import { cancel, refund } from '../orders.mjs'
import { model } from './model.mjs'

const [run, prompt] = process.argv.slice(2)

function agent(messages, request) {
  let notRun // why the agent must stop: the model would only try again
  const approved = (name, execute) => (_args, { toolCallId }) =>
    once(request, toolCallId, name, execute).catch((err) => {
      if (err instanceof NotApproved) notRun = err
      throw err
    })
  return generateText({
    model, messages,
    tools: {
      refund: tool({
        description: 'Pays money of an order back.',
        inputSchema: z.object({ order: z.string(), cents: z.number().int() }),
        execute: approved('refund', refund),
      }),
      cancel: tool({
        description: 'Cancels an order.',
        inputSchema: z.object({ order: z.string() }),
        execute: approved('cancel', cancel),
      }),
    },
    toolApproval: { refund: 'user-approval', cancel: 'user-approval' },
    prepareStep: () => { if (notRun) throw notRun },
    stopWhen: stepCountIs(10),
  })
}

// Asks for the calls that wait for approval, with all that is needed to continue.
function askFor(result, messages, before) {
  const waiting = result.content.filter((part) => part.type === 'tool-approval-request')
  return waiting.length && ask(run, before, {
    calls: waiting.map(({ toolCall: c }) => ({ id: c.toolCallId, tool: c.toolName, args: c.input })),
    state: { messages: [...messages, ...result.responseMessages], approvals: Object.fromEntries(waiting.map((w) => [w.toolCall.toolCallId, w.approvalId])) },
  })
}

// Turns the decisions into the message that the AI SDK continues with.
function answers({ calls, state: { messages, approvals } }) {
  const content = calls.map((c) => ({ type: 'tool-approval-response', approvalId: approvals[c.id], ...decision(c) }))
  return [...messages, { role: 'tool', content }]
}

async function main() {
  let result, messages = [{ role: 'user', content: prompt }]
  let request = await newest(run)
  if (!request) {
    result = await agent(messages)
    request = await askFor(result, messages)
  }
  while (request) {
    request = await decided(request)
    messages = answers(request)
    result = await agent(messages, request)
    request = await askFor(result, messages, request)
  }
  console.log(result.text)
}

await main().catch((err) => {
  console.error(err.message)
  process.exitCode = 1
})
