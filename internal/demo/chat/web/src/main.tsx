// A small chat on useChat, beside the Slack page of the demo: what waits there waits
// here, and is decided in either.
import "./style.css";
import { Chat, useChat } from "@ai-sdk/react";
import { DefaultChatTransport, type UIMessage } from "ai";
import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { Call } from "./call";
import { type Approval, type Setup, decide, headers, history, setup } from "./server";

type Message = UIMessage<unknown, { approval: Approval }>;

const key = "countersign-demo-chat";
const newID = () => `demo-${crypto.randomUUID()}`;
const select = (label: string, value: string, people: Setup["people"], onChange: (id: string) => void) => (
  <label>{label} <select value={value} onChange={(e) => onChange(e.target.value)}>
    {people.map((p) => <option key={p.id} value={p.id}>{p.name}</option>)}
  </select></label>
);

function Page({ on }: { on: Setup }) {
  const [user, setUser] = useState(on.people[0].id);
  const [approver, setApprover] = useState(on.people[1].id);
  const [id, setID] = useState(() => localStorage.getItem(key) ?? newID());
  const [before, setBefore] = useState<Message[]>();
  const [failed, setFailed] = useState("");
  useEffect(() => {
    let mine = true;
    localStorage.setItem(key, id);
    setBefore(undefined);
    setFailed("");
    history(id, headers(on.token, user)).then((all) => mine && setBefore(all), (e) => mine && setFailed(words(e.message)));
    return () => { mine = false; };
  }, [id, user]);
  return <>
    <header>
      <h1>Chat</h1>
      {select("Chat as", user, on.people, setUser)}
      {select("Decide as", approver, on.people, setApprover)}
      <button onClick={() => setID(newID())}>New chat</button>
    </header>
    {failed && <p role="alert">{failed}</p>}
    {before && <Conversation key={id + user} id={id} before={before} on={on} user={user} approver={approver} />}
  </>;
}

const away = "The connection was lost. This page tries again.";
const later = (ms: number) => new Promise((next) => setTimeout(next, ms));

/** said is the last that the person said. The server has it under another id. */
const said = (all: Message[]) => all.filter((m) => m.role === "user").at(-1)?.parts.map((p) => p.type === "text" ? p.text : "").join("");

/**
 * chatOf is the chat of a conversation. It reads the history again when a stream ends before
 * its message does. The transport of a `Chat` says that a resumed stream begins again; that
 * of `useChat` of @ai-sdk/react 3.0 loses it, and shows what was there twice.
 */
function chatOf(id: string, before: Message[], as: Record<string, string>) {
  const read = () => history(id, as);
  const open = { is: true }; // the conversation is on the page
  const chat: Chat<Message> = new Chat<Message>({
    id, messages: before,
    transport: new DefaultChatTransport({
      api: "api/chat", headers: { ...as, "countersign-follow": "true" },
      fetch: async (...request) => {
        const answer = await fetch(...request);
        // No message is being made: one that was, when the history was read, is in it now.
        if (answer.status === 204) chat.messages = await read().catch(() => chat.messages);
        return answer;
      },
    }),
    onFinish: async ({ isAbort, isError, finishReason }) => {
      if (isAbort || isError || finishReason) return;
      do await later(500); while (open.is && chat.status === "ready" && await again());
    },
  });
  /** again goes on, or says why it could not. */
  const again = async () => {
    const all: Message[] | undefined = await read().catch(() => undefined);
    if (!all) return away;
    if (said(all) !== said(chat.messages)) return "The server does not have your message yet. If this stays, send it again.";
    chat.messages = all;
    await chat.resumeStream();
    return "";
  };
  return { chat, read, again, open };
}

function Conversation({ id, before, on, user, approver }: { id: string; before: Message[]; on: Setup; user: string; approver: string }) {
  const [{ chat, read, again, open }] = useState(() => chatOf(id, before, headers(on.token, user)));
  const { messages, sendMessage, resumeStream, status, error } = useChat<Message>({ chat, resume: before.length > 0 });
  const [text, setText] = useState("");
  const [why, setWhy] = useState("");
  const say = (words: string) => {
    setText("");
    void sendMessage({ text: words });
  };
  const asker = on.people.find((p) => p.id === user)!.name;
  const approvals = new Map<string, Approval>();
  for (const m of messages) for (const p of m.parts) if (p.type === "data-approval") approvals.set(p.data.toolCallId, p.data);
  const waits = status === "ready" && [...approvals.values()].some((a) => a.status === "waiting");
  useEffect(() => () => { open.is = false; }, []);
  useEffect(() => { // another tab may have gone on with the chat
    const look = async () => {
      const all = document.visibilityState === "visible" && chat.status === "ready" && await read().catch(() => undefined);
      if (!all || !open.is || chat.status !== "ready") return;
      chat.messages = all;
      await chat.resumeStream();
    };
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
  useEffect(() => { // the connection was lost
    if (!(error instanceof TypeError)) return;
    let lost = true;
    setWhy(away);
    const retry = async () => {
      while (lost) {
        await later(1000);
        if (lost) setWhy(await again());
      }
    };
    void retry();
    return () => { lost = false; };
  }, [error]);
  useEffect(() => { // the stream ended before people decided
    const later = waits ? setTimeout(() => void resumeStream(), 2000) : undefined;
    return () => clearTimeout(later);
  }, [waits]);
  return <>
    <main aria-live="polite"><div className="log">
      {messages.length === 0 && <div className="try">
        <p>Ask the agent for something. What needs approval waits here and in Slack, and is decided in either.</p>
        {on.prompts.map((p) => <button key={p} onClick={() => say(p)}>{p}</button>)}
      </div>}
      {messages.map((m) => (
        <article key={m.id} className={m.role}>
          <h2>{m.role === "user" ? asker : "Agent"}</h2>
          {m.parts.map((p, i) => {
            if (p.type === "text") return <p key={i}>{p.text}</p>;
            if (!p.type.startsWith("tool-") || !("toolCallId" in p)) return null;
            const a = approvals.get(p.toolCallId);
            return <Call key={p.toolCallId} name={p.type.slice(5)} state={p.state} input={p.input} output={"output" in p ? p.output : undefined}
              error={p.state === "output-error" ? p.errorText : undefined} approval={a} asker={asker} people={on.people}
              onDecide={(approved, reason) => decide(id, a!.approvalId!, approved, reason, headers(on.token, approver))} />;
          })}
        </article>
      ))}
      {error && <p role="alert">{error instanceof TypeError ? why : words(error.message)}</p>}
      {status === "submitted" && <p>…</p>}
    </div></main>
    <form className="say" onSubmit={(e) => { e.preventDefault(); if (text.trim()) say(text); }}>
      <input aria-label="Message" placeholder="Ask the agent" value={text} onChange={(e) => setText(e.target.value)} />
      <button className="primary">Send</button>
    </form>
  </>;
}

/** words is what a person reads of an error of the server. */
function words(message: string): string {
  try {
    return JSON.parse(message).detail ?? message;
  } catch {
    return message;
  }
}

const root = createRoot(document.getElementById("chat")!);
setup().then((on) => root.render(<Page on={on} />), (e) => root.render(<p role="alert">{String(e)}</p>));
