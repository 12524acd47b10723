// A loop that keeps nothing, on the AI SDK: generateText with one tool, run until the
// model calls no more. `bot bench --agent` starts it.
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, stepCountIs, tool } from 'ai';
import { z } from 'zod';

const baseURL = process.env.OPENAI_BASE_URL;
if (!baseURL) throw new Error('OPENAI_BASE_URL is not set');
const model = createOpenAICompatible({ name: 'scripted', baseURL, apiKey: process.env.OPENAI_API_KEY })('scripted');

// The times between the calls of the tool, in milliseconds.
async function steps(prompt) {
  const called = [];
  await generateText({
    model, prompt,
    tools: {
      look_up: tool({
        description: 'Looks something up.',
        inputSchema: z.object({ run: z.string(), step: z.number().int(), of: z.number().int() }),
        execute: () => {
          called.push(performance.now());
          return 'found';
        },
      }),
    },
    stopWhen: stepCountIs(1000),
  });
  return called.slice(1).map((at, i) => at - called[i]);
}

const server = createServer(async (request, response) => {
  try {
    const { prompt } = await json(request);
    response.end(JSON.stringify({ steps: await steps(prompt) }));
  } catch (error) {
    console.error(error);
    response.writeHead(500).end();
  }
});

process.stdin.resume().on('end', () => process.exit());
server.listen(0, '127.0.0.1', () => console.log(`listening on port ${server.address().port}`));
