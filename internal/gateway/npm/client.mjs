// A client of MCP, driven over standard input: one JSON object a line.
//   {"id": 1, "list": true}
//   {"id": 2, "call": "tool", "args": {}, "progress": true}
//   {"cancel": 2}
// It writes {"id", "result"}, {"id", "error"} and {"id", "progress"}, a line each.
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, token] = process.argv.slice(2);
const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
const client = new Client({ name: "test", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }));
say({ id: 0, result: { content: [], version: client.transport.protocolVersion } });

const open = new Map();
async function answer(asked) {
  const abort = new AbortController();
  open.set(asked.id, abort);
  const options = { signal: abort.signal, timeout: 30_000, resetTimeoutOnProgress: true };
  if (asked.progress) options.onprogress = (progress) => say({ id: asked.id, progress });
  try {
    const result = asked.list
      ? await client.listTools(undefined, options)
      : await client.callTool({ name: asked.call, arguments: asked.args }, undefined, options);
    say({ id: asked.id, result });
  } catch (error) {
    say({ id: asked.id, error: String(error) });
  }
  open.delete(asked.id);
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  if (asked.cancel) open.get(asked.cancel)?.abort();
  else void answer(asked);
}
process.exit(0);
