// Notices: what went wrong, and what arrived where the person is not looking.
import { useCallback, useEffect, useRef, useState } from "react";
import { flat, parse } from "./mrkdwn";
import { emojiOf } from "./emoji";
import { Icon } from "./icons";
import type { Message } from "./sim";
import { nameOf, useWorkspace, type Seen } from "./workspace";

interface Notice { id: number; text: string }

/** useNotices keeps a few short notices for a few seconds each. */
export function useNotices(): [Notice[], (text: string) => void, (id: number) => void] {
  const [list, setList] = useState<Notice[]>([]);
  const next = useRef(1);
  const drop = useCallback((id: number) => setList((l) => l.filter((n) => n.id !== id)), []);
  const say = useCallback((text: string) => {
    const id = next.current++;
    setList((l) => [...l.filter((n) => n.text !== text), { id, text }].slice(-3));
    setTimeout(() => drop(id), 9000);
  }, []);
  return [list, say, drop];
}

export function Notices({ list, onDrop }: { list: Notice[]; onDrop(id: number): void }) {
  return (
    <div className="notices" role="status" aria-live="polite">
      {list.map((n) => <p key={n.id}><span>{n.text}</span><button type="button" className="icon" aria-label="Dismiss" onClick={() => onDrop(n.id)}><Icon name="close" /></button></p>)}
    </div>
  );
}

/** Arrivals reads out each new message, and no message twice. */
export function Arrivals() {
  const { seen, person, group, channel } = useWorkspace();
  const last = useRef({ user: "", ts: "" });
  const [text, setText] = useState("");
  useEffect(() => {
    const all = Object.values(seen.messages).flat();
    const newest = all.reduce((ts, m) => (m.ts > ts ? m.ts : ts), "");
    const before = last.current;
    last.current = { user: seen.me.id, ts: newest };
    if (before.user !== seen.me.id) return setText("");
    const fresh = all.filter((m) => m.ts > before.ts && m.user !== seen.me.id);
    if (fresh.length) setText(fresh.map((m) => spoken(m, seen, { person, group, channel })).join(" "));
  }, [seen]);
  return <div className="sr" role="log" aria-live="polite">{text}</div>;
}

type Lookups = Pick<ReturnType<typeof useWorkspace>, "person" | "group" | "channel">;

/** spoken is what a notification of the message says. */
export function spoken(m: Message, seen: Seen, { person, group, channel }: Lookups): string {
  const text = flat(parse(m.text), (n) => {
    switch (n.type) {
      case "user": return "@" + nameOf(person(n.id), n.id);
      case "group": return "@" + (group(n.id)?.handle ?? n.id);
      case "channel": return "#" + (channel(n.id)?.name ?? n.id);
      case "broadcast": return "@" + n.range;
      case "date": return n.fallback;
      case "emoji": return emojiOf(n.name) ?? n.name;
      default: return "";
    }
  });
  const c = channel(m.channel);
  const where = m.is_ephemeral ? "only to you" : c?.is_im ? "directly" : `in #${c?.name}`;
  return `${m.username || nameOf(seen.state.people.find((p) => p.id === m.user), m.user)}, ${where}: ${[...text].slice(0, 300).join("")}`;
}
