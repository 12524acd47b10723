// A chat of the AI SDK without a page: the real client on a plain state.
import assert from "node:assert/strict";

export const base = process.env.BASE, patient = process.env.PATIENT;
const api = process.env.AI;
export const dialect = process.env.DIALECT;
export const ai = await import(api);

class State {
  status = "ready";
  error = undefined;
  constructor(messages = []) {
    this.messages = messages;
  }
  pushMessage = (m) => (this.messages = this.messages.concat(m));
  popMessage = () => (this.messages = this.messages.slice(0, -1));
  replaceMessage = (i, m) => (this.messages = [...this.messages.slice(0, i), this.snapshot(m), ...this.messages.slice(i + 1)]);
  snapshot = (v) => structuredClone(v);
}

export class Chat extends ai.AbstractChat {
  constructor({ id, user = "UALICE", follow = false, messages, server = base, sendAutomaticallyWhen = ai.lastAssistantMessageIsCompleteWithApprovalResponses }) {
    const posts = [];
    const headers = { authorization: `Bearer ${user}` };
    if (follow) headers["countersign-follow"] = "true";
    if (dialect) headers["countersign-sdk"] = dialect;
    const errors = [];
    super({
      id,
      messages,
      state: new State(messages),
      transport: new ai.DefaultChatTransport({
        api: `${server}/api/chat`,
        headers,
        fetch: (url, init) => {
          if (init.method === "POST") posts.push(JSON.parse(init.body));
          return fetch(url, init);
        },
      }),
      sendAutomaticallyWhen,
      onError: (e) => errors.push(e),
    });
    Object.assign(this, { posts, errors, headers, server });
  }
  get parts() {
    return this.messages.filter((m) => m.role === "assistant").flatMap((m) => m.parts);
  }
  part(path) {
    return this.parts.find((p) => p.input?.path === path);
  }
  data(path) {
    const call = this.part(path).toolCallId;
    return this.parts.filter((p) => p.type === "data-approval" && p.data.toolCallId === call).at(-1)?.data;
  }
  text() {
    return this.parts.filter((p) => p.type === "text").map((p) => p.text).join("");
  }
  // Says something, and returns when the stream has ended.
  async say(text) {
    await this.sendMessage({ text });
  }
  click(path, approved, reason) {
    return this.addToolApprovalResponse({ id: this.part(path).approval.id, approved, reason });
  }
  async settled(what, condition) {
    await until(`${what}: ${JSON.stringify(this.messages)} ${this.errors}`, () => condition() && this.status === "ready");
  }
  // Nothing may be sent by itself any more.
  async quiet(posts) {
    await pause(150);
    assert.equal(this.posts.length, posts, "the client sends by itself");
  }
  // The request by which a person decides besides the protocol.
  async decide(path, approved, { user, reason } = {}) {
    return fetch(`${this.server}/api/chat/${this.id}/approvals/${this.data(path).approvalId}`, {
      method: "POST",
      headers: { ...this.headers, "content-type": "application/json", ...(user && { authorization: `Bearer ${user}` }) },
      body: JSON.stringify({ approved, reason }),
    });
  }
}

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export async function until(what, condition) {
  for (const end = Date.now() + 10_000; Date.now() < end; await pause(5)) if (await condition()) return;
  assert.fail(`not within 10 s: ${typeof what === "function" ? what() : what}`);
}

// A decision of somebody in Slack.
export async function slack(user, path, verdict, reason = "", server = base) {
  const r = await fetch(`${server}/control/decide?${new URLSearchParams({ user, path, verdict, reason })}`, { method: "POST" });
  assert.ok(r.ok, await r.text());
}

// What the model does that writes slowly: go on, lose its worker, say how often it began.
export async function typist(what, key) {
  const r = await fetch(`${base}/control/typist/${what}?${new URLSearchParams({ key })}`, { method: "POST" });
  return r.json();
}

export async function ran(path, server = base) {
  const all = await (await fetch(`${server}/control/ran`)).json() ?? []; // null before anything ran
  return all.filter((c) => c.includes(`"${path}"`)).length;
}

// A page that is loaded again has the history of the server.
export async function reloaded(chat, more = {}) {
  const r = await fetch(`${chat.server}/api/chat/${chat.id}`, { headers: chat.headers });
  assert.equal(r.status, 200);
  return new Chat({ id: chat.id, server: chat.server, messages: (await r.json()).messages, ...more });
}

let next = 0;
export const fresh = (name) => `${name}${++next}-${process.env.RUN}`;
