// What a newcomer may do next, derived from what is on screen.
import type { ReactNode } from "react";
import { Icon } from "./icons";
import { Avatar, decisive } from "./message";
import type { Json, Message, Person } from "./sim";
import { able, nameOf, useWorkspace } from "./workspace";

interface Props { messages: Message[]; thread?: string; onThread(ts: string): void; onAct(user: string): void; onTry(text: string): void }

/** groupsIn lists the user groups that blocks mention. */
function groupsIn(v: unknown, found = new Set<string>()): Set<string> {
  if (Array.isArray(v)) v.forEach((x) => groupsIn(x, found));
  else if (v && typeof v === "object") {
    const o = v as Json;
    if (o.type === "usergroup") found.add(o.usergroup_id);
    if (typeof o.text === "string" && o.type === "mrkdwn") for (const m of o.text.matchAll(/<!subteam\^(S[A-Z0-9]+)/g)) found.add(m[1]!);
    Object.values(o).forEach((x) => groupsIn(x, found));
  }
  return found;
}

export function Guide({ messages, thread, onThread, onAct, onTry }: Props) {
  const { seen, group } = useWorkspace();
  const { state, me } = seen;
  const all = messages.filter((m) => !m.is_ephemeral);
  const waiting = all.findLast((m) => m.bot_id && decisive(m.blocks));
  const asked = all.findLast((m) => !m.bot_id && JSON.stringify(m.blocks ?? m.text).includes(state.bot.id));
  const root = asked?.thread_ts ?? asked?.ts;
  const last = all.findLast((m) => m.ts === root || m.thread_ts === root);
  const As = ({ p, children }: { p: Person; children?: ReactNode }) => (
    <button type="button" className="act as" onClick={() => onAct(p.id)}><Avatar person={p} id={p.id} size="tiny" />{children ?? <>Act as {nameOf(p, p.id).split(" ")[0]}</>}</button>
  );
  const tell = (step: number, words: ReactNode, buttons?: ReactNode) => (
    <aside className="guide" aria-label="What to do next">
      <ol className="steps" aria-hidden="true">{["Ask", "Sign", "Read"].map((s, i) => <li key={s} className={i < step ? "done" : i === step ? "now" : ""}>{i < step ? <Icon name="check" /> : i + 1}<span>{s}</span></li>)}</ol>
      <p>{words}</p>
      {buttons && <div className="buttons">{buttons}</div>}
    </aside>
  );
  const open = (m: Message, words: string) => m.thread_ts && m.thread_ts !== thread && <button type="button" className="act primary" onClick={() => onThread(m.thread_ts!)}>{words}</button>;

  if (waiting) {
    const groups = [...groupsIn(waiting.blocks)].map(group).filter((g) => g !== undefined);
    const signers = able(state).filter((p) => groups.some((g) => g.users.includes(p.id)));
    const outsider = able(state).find((p) => !signers.includes(p) && p.id !== asked?.user && !p.is_restricted);
    if (groups.length === 0 || signers.some((p) => p.id === me.id)) {
      return tell(1, <>The agent has stopped and waits. {nameOf(me, me.id).split(" ")[0]} may sign: approve, or deny and say why.{outsider && signers.length > 0 && <span className="wide-only"> Somebody who may not sign is told so, and only they see it.</span>}</>,
        <>{open(waiting, "Open the thread")}{outsider && signers.length > 0 && <As p={outsider}>Try as {nameOf(outsider, "").split(" ")[0]}</As>}</>);
    }
    const first = signers[0];
    return tell(1, <>The agent has stopped: a person in {groups.map((g) => "@" + g.handle).join(", ")} must sign.{first && <> Now act as {nameOf(first, first.id).split(" ")[0]}.</>} {me.id === outsider?.id && "Or press Approve as " + nameOf(me, "").split(" ")[0] + ", and see what an outsider is told."}</>,
      <>{first && <As p={first} />}{open(waiting, "Open the thread")}</>);
  }
  if (asked && last && (last.ts === asked.ts || !last.bot_id)) return tell(0, "The agent is at work. It looks by itself, and stops before it changes anything.", null);
  if (asked && last?.bot_id) return tell(3, "Done. The thread holds the answer, and the card says who decided, when and why.", <>{open(last, "Read the thread")}{state.suggestions.filter((s) => !all.some((m) => !m.bot_id && textOf(m).endsWith(s.replace(/^@\S+ /, "")))).slice(0, 2).map((s) => <Try key={s} text={s} onTry={onTry} />)}</>);
  return null;
}

const textOf = (m: Message) => m.text.replace(/<@\w+>\s*/g, "");

const Try = ({ text, onTry }: { text: string; onTry(text: string): void }) => <button type="button" className="act" onClick={() => onTry(text)}>{text.replace(/^@\S+ /, "")}</button>;

/** Welcome is what an empty channel shows. */
export function Welcome({ onTry }: { onTry(text: string): void }) {
  const { seen } = useWorkspace();
  const { state, me } = seen;
  if (!state.suggestions.length) return null;
  return (
    <section className="welcome" aria-label="Stories to try">
      <h2>An agent works here. People sign.</h2>
      <p>Ask it for something. It looks around by itself, and stops before it changes anything, until somebody who may has signed. Files and messages here are real on this machine, and only there.</p>
      <ul>{state.suggestions.map((s, i) => (
        <li key={s}><button type="button" className={i === 0 ? "story first" : "story"} onClick={() => onTry(s)}>
          <span className="mention">{s.split(" ")[0]}</span> <span>{s.slice(s.indexOf(" ") + 1)}</span>
          <small>{i === 0 ? `Start here, as ${nameOf(me, me.id).split(" ")[0]}` : "Send"}</small><Icon name="send" />
        </button></li>
      ))}</ul>
      <p className="hint">Or write your own below. You can act as any of the people at the top.</p>
    </section>
  );
}
