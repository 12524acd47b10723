// What a newcomer can do next, derived from what is on screen.
import { useState, type ReactNode } from "react";
import { Icon } from "./icons";
import { Avatar } from "./message";
import { nextOf, type Outcome } from "./next";
import type { Message, Person } from "./sim";
import { able, nameOf, useWorkspace } from "./workspace";

interface Props { messages: Message[]; thread?: string; onThread(ts: string): void; onAct(user: string): void; onTry(text: string): void }

const first = (p: Person) => nameOf(p, p.id).split(" ")[0]!;

const ends: Record<Outcome, string> = {
  none: "The agent answered. Nothing needed approval.",
  decided: "Done. The answer is in the thread, and the card says who decided, when, and why.",
  undecided: "It ended without a decision. The card says how.",
};

let closed = ""; // what the person does not want to be told again, whoever they act as

/** Guide says what may be done next. An app without suggestions has no story to guide through. */
export function Guide({ messages, thread, onThread, onAct, onTry }: Props) {
  const { seen } = useWorkspace();
  const [, redraw] = useState(0);
  const { state, me } = seen;
  if (!state.suggestions.length) return null;
  const next = nextOf(state, me, messages);
  if (next.kind === "nothing") return null;
  const at = next.kind + ("card" in next ? next.card.ts : next.ask.ts);
  if (at === closed) return null;

  const as = (p: Person, words = `Act as ${first(p)}`) => <button type="button" className="act as" onClick={() => onAct(p.id)}><Avatar person={p} id={p.id} size="tiny" />{words}</button>;
  const open = (m: Message, words: string) => m.thread_ts && m.thread_ts !== thread && <button type="button" className="act primary" onClick={() => onThread(m.thread_ts!)}>{words}</button>;
  const tries = state.suggestions.filter((s) => !messages.some((m) => !m.bot_id && textOf(m).endsWith(s.replace(/^@\S+ /, "")))).slice(0, 2).map((s) => <Try key={s} text={s} onTry={onTry} />);
  const tell = (done: string[], now: string, words: ReactNode, buttons?: ReactNode) => (
    <aside className="guide" aria-label="What to do next">
      <ol className="steps" aria-hidden="true">{["Ask", "Approve", "Read"].map((s, i) => <li key={s} className={done.includes(s) ? "done" : s === now ? "now" : ""}>{done.includes(s) ? <Icon name="check" /> : i + 1}<span>{s}</span></li>)}</ol>
      <p>{words}</p>
      {buttons && <div className="buttons">{buttons}</div>}
      <button type="button" className="icon" aria-label="Close this hint" onClick={() => { closed = at; redraw((n) => n + 1); }}><Icon name="close" /></button>
    </aside>
  );

  switch (next.kind) {
    case "refused":
      return tell([], "Ask", "The bot refused. It says why below.", next.instead && as(next.instead));
    case "work":
      if (next.outcome !== "none") return tell(["Ask", "Approve"], "Read", "Everything is decided. The agent continues, and then answers in the thread.", open(next.ask, "Open the thread"));
      if (next.ask.user !== me.id) return tell([], "Ask", `${nameOf(state.people.find((p) => p.id === next.ask.user), next.ask.user).split(" ")[0]} asked. There is no answer yet.`, tries);
      return tell([], "Ask", "The agent is working. It reads on its own, and stops before it changes anything.");
    case "many":
      return tell(["Ask"], "Approve", "More calls wait than fit on cards. Review them one by one from the list, or on the app's Home tab.", open(next.card, "Open the thread"));
    case "read":
      return tell(next.outcome === "decided" ? ["Ask", "Approve", "Read"] : ["Ask", "Read"], "", ends[next.outcome], <>{open(next.last, "Read the thread")}{tries}</>);
  }
  const { card, groups, approvers, later, editable, outsider } = next;
  if (!approvers.length && !later.length) return tell(["Ask"], "Approve", "The agent has stopped. Someone named on the card must approve.", open(card, "Open the thread"));
  if (approvers.some((p) => p.id === me.id)) {
    return tell(["Ask"], "Approve", <>The agent waits for a decision. {first(me)} can approve it, {editable && "correct it with Edit…, "}or deny it and say why.{outsider && <span className="wide-only"> If someone else tries, only they see the refusal.</span>}</>,
      <>{open(card, "Open the thread")}{outsider && as(outsider, `Try as ${first(outsider)}`)}</>);
  }
  const asked = approvers.length ? approvers : later;
  const who = groups.length ? `a person in ${list(groups.map((g) => "@" + g), "and in")}` : list(asked.slice(0, 3).map((p) => nameOf(p, p.id)), "or");
  const early = later.some((p) => p.id === me.id) && ` ${first(me)} is asked after that.`;
  return tell(["Ask"], "Approve", <>The agent has stopped: {who} must approve.{early} Now act as {first(asked[0]!)}.{me.id === outsider?.id && ` Or press Approve as ${first(me)}, and see the refusal.`}</>,
    <>{as(asked[0]!)}{open(card, "Open the thread")}</>);
}

/** list writes "a, b and c". */
const list = (words: string[], last: string) => words.length > 1 ? `${words.slice(0, -1).join(", ")} ${last} ${words.at(-1)}` : words.join();

const textOf = (m: Message) => m.text.replace(/<@\w+>\s*/g, "");

const Try = ({ text, onTry }: { text: string; onTry(text: string): void }) => <button type="button" className="act try" onClick={() => onTry(text)}>{text.replace(/^@\S+ /, "")}</button>;

/** Welcome is what an empty channel shows. */
export function Welcome({ onTry, onAct }: { onTry(text: string): void; onAct(user: string): void }) {
  const { seen } = useWorkspace();
  const { state, me } = seen;
  if (!state.suggestions.length) return null;
  const host = me.is_restricted && able(state).find((p) => !p.is_restricted);
  return (
    <section className="welcome" aria-label="Stories to try">
      <h2>An agent works here. People approve.</h2>
      <p>Ask it for something. It reads on its own, and stops before it changes anything until someone authorized approves. Files and messages here are real, but only on this machine.</p>
      <ul>{state.suggestions.map((s, i) => (
        <li key={s}><button type="button" className={i === 0 ? "story first" : "story"} onClick={() => (i === 0 && host ? onAct(host.id) : onTry(s))}>
          <span className="mention">{s.split(" ")[0]}</span> <span>{s.slice(s.indexOf(" ") + 1)}</span>
          <small>{i > 0 ? "Send" : host ? `Act as ${first(host)} to start` : `Start here, as ${first(me)}`}</small><Icon name="send" />
        </button></li>
      ))}</ul>
      <p className="hint">Or write your own below. You can act as anyone at the top.</p>
    </section>
  );
}
