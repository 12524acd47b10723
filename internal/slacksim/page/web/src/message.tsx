// One message, and lists of them.
import { memo, useEffect, useLayoutEffect, useRef, useState, type ReactNode } from "react";
import { Blocks } from "./blocks";
import { useClick, useSuggest } from "./click";
import { ago, clock, dayOf, near } from "./dates";
import { emojiOf } from "./emoji";
import { Icon, Seal } from "./icons";
import { Menu } from "./menu";
import { decisive } from "./next";
import { sim, type ClickOutcome, type Json, type Message, type Person } from "./sim";
import { SurfaceProvider } from "./surface";
import { Link, Mrkdwn } from "./text";
import { nameOf, useWorkspace } from "./workspace";

export function Avatar({ person, id, size = "" }: { person?: Person; id: string; size?: string }) {
  if (person?.is_bot) return <span className={"avatar bot " + size} aria-hidden="true"><Seal /></span>;
  const name = nameOf(person, id);
  const hue = [...id].reduce((sum, c) => (sum * 37 + c.charCodeAt(0)) % 65521, 3) % 6;
  return <span className={`avatar hue${hue} ${size}`} aria-hidden="true">{name.split(/\s+/).slice(0, 2).map((w) => w[0]!.toUpperCase()).join("")}</span>;
}

const at = (ts: string) => new Date(Number(ts) * 1000);

interface LineProps { message: Message; compact: boolean; replies?: Message[]; onThread?(ts: string): void; onDismiss?(ts: string): void; fresh?: boolean }

/** isCard says whether a message is drawn as a card: an app's, with a header or something to press. */
const isCard = (m: Message) => !!m.bot_id && !!m.blocks?.some((b) => b.type === "header" || b.type === "actions");

const Line = memo(function Line({ message: m, compact, replies, onThread, onDismiss, fresh }: LineProps) {
  const { seen, person, now } = useWorkspace();
  const click = useClick({ channel: m.channel, ts: m.ts });
  const suggest = useSuggest({ channel: m.channel, ts: m.ts });
  const author = person(m.user);
  const name = m.username || nameOf(author, m.user);
  const when = at(m.ts);
  const card = isCard(m);
  return (
    <li className={["line", compact && "compact", m.is_ephemeral && "ephemeral"].filter(Boolean).join(" ")} data-ts={m.ts}>
      {m.is_ephemeral && (
        <p className="only"><Icon name="eye" />Only visible to you
          {onDismiss && <> · <button type="button" className="link" onClick={() => onDismiss(m.ts)}>Dismiss</button></>}</p>
      )}
      {compact ? <time className="gutter" dateTime={when.toISOString()}>{clock(when, seen.me.tz).replace(/ [AP]M/, "")}</time> : <Avatar person={author} id={m.user} />}
      <div className="body">
        <p className={compact ? "by sr" : "by"}>
          <strong>{name}</strong>{m.bot_id && <span className="badge">app</span>}
          <time dateTime={when.toISOString()} title={when.toLocaleString("en", { timeZone: seen.me.tz, dateStyle: "full", timeStyle: "medium" })}>{clock(when, seen.me.tz)}</time>
        </p>
        <SurfaceProvider value={{ act: click, suggest, id: m.channel + m.ts }}>
          {m.blocks?.length
            ? <div className={card ? (decisive(m.blocks) ? "blocks kit asks" : "blocks kit") : "blocks"}><Blocks of={m.blocks} /></div>
            : m.text && <div className="text"><Mrkdwn text={m.text} />{m.edited && <small className="hint"> (edited)</small>}</div>}
          {m.attachments?.map((a, i) => <Attachment key={i} of={a} />)}
        </SurfaceProvider>
        {m.reactions && m.reactions.length > 0 && (
          <p className="reactions">{m.reactions.map((r) => <span key={r.name} title={`:${r.name}:`}>{emojiOf(r.name) ?? `:${r.name}:`} {r.count}</span>)}</p>
        )}
        {onThread && !m.is_ephemeral && <Replies message={m} replies={replies ?? []} fresh={fresh} now={now} onOpen={() => onThread(m.thread_ts ?? m.ts)} />}
        {seen.state.shortcuts && !m.is_ephemeral && <Shortcuts message={m} of={seen.state.shortcuts} />}
      </div>
    </li>
  );
}, (a, b) => a.message === b.message && a.compact === b.compact && a.fresh === b.fresh && a.replies?.length === b.replies?.length && a.replies?.at(-1) === b.replies?.at(-1));

/** Shortcuts are what the app offers in the menu of every message. */
function Shortcuts({ message: m, of }: { message: Message; of: { callback_id: string; name: string }[] }) {
  const { seen, look, say } = useWorkspace();
  const use = (callback_id: string) => {
    sim<ClickOutcome>("shortcut", { user: seen.me.id, callback_id, channel: m.channel, ts: m.ts })
      .then((out) => { if (out.visible_error) say(out.visible_error); look(); }, (e: Error) => say(e.message));
  };
  return <span className="shortcuts"><Menu label="Message menu" className="icon" entries={of.map((s) => ({ value: s.callback_id, label: s.name, description: nameOf(seen.state.bot, "") }))} onPick={use} /></span>;
}

function Replies({ message: m, replies, fresh, now, onOpen }: { message: Message; replies: Message[]; fresh?: boolean; now: Date; onOpen(): void }) {
  const { person } = useWorkspace();
  if (!m.reply_count) return <button type="button" className="reply" onClick={onOpen}><Icon name="thread" />Reply in thread</button>;
  const who = [...new Set(replies.map((r) => r.user))].slice(0, 4);
  const last = replies.at(-1);
  return (
    <button type="button" className={fresh ? "replies fresh" : "replies"} onClick={onOpen}>
      {who.map((id) => <Avatar key={id} person={person(id)} id={id} size="tiny" />)}
      <strong>{m.reply_count} {m.reply_count === 1 ? "reply" : "replies"}</strong>
      {fresh && <span className="dot"><span className="sr">, unread</span></span>}
      {last && <small>· last reply {ago(at(last.ts), now)}</small>}
    </button>
  );
}

function Attachment({ of: a }: { of: Json }) {
  return (
    <div className="attachment" style={a.color ? { borderInlineStartColor: "#" + String(a.color).replace(/^#/, "") } : undefined}>
      {a.pretext && <Mrkdwn text={a.pretext} />}
      {a.title && <strong>{a.title_link ? <Link url={a.title_link} label={a.title} /> : a.title}</strong>}
      {a.blocks ? <Blocks of={a.blocks} /> : <Mrkdwn text={a.text ?? a.fallback ?? ""} />}
    </div>
  );
}

interface ListProps {
  label: string;
  messages: Message[];
  replies?: Map<string, Message[]>;
  onThread?(ts: string): void;
  unreadAfter?: string;
  freshThread?(root: string): boolean;
  head?: ReactNode;
}

/**
 * MessageList shows messages by day and stays at the bottom as more arrive. To a person
 * who scrolled away it says that there are more. It goes to what they write, and to what
 * only they are told, wherever they are.
 */
export function MessageList({ label, messages, replies, onThread, unreadAfter, freshThread, head }: ListProps) {
  const { seen, now } = useWorkspace();
  const [dismissed, setDismissed] = useState<string[]>([]);
  const scroller = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  const set = useRef(0); // where the list itself scrolled to
  const [missed, setMissed] = useState<string>(); // the first message that arrived while the person was elsewhere
  const shown = messages.filter((m) => !dismissed.includes(m.ts));
  const known = useRef(shown.at(-1)?.ts ?? "");
  const more = missed === undefined ? 0 : shown.filter((m) => m.ts >= missed).length;
  const first = unreadAfter === undefined ? undefined : shown.find((m) => m.ts > unreadAfter && m.user !== seen.me.id)?.ts;

  /** settle shows the last message: its end, or its start if it is too long to see whole. What an empty channel says is read from its beginning. */
  function settle() {
    const node = scroller.current;
    if (!node || !stuck.current) return;
    const last = node.querySelector<HTMLElement>(".messages > :last-child");
    if (!last) return;
    const start = last.getBoundingClientRect().top - node.getBoundingClientRect().top + node.scrollTop - 6;
    node.scrollTop = last.offsetHeight > node.clientHeight ? start : node.scrollHeight;
    set.current = node.scrollTop;
  }
  function scrolled() {
    const node = scroller.current!;
    stuck.current = Math.abs(node.scrollTop - set.current) < 2 || node.scrollHeight - node.scrollTop - node.clientHeight < 60;
    const line = missed && node.querySelector(`[data-ts="${missed}"]`);
    if (stuck.current || (line && line.getBoundingClientRect().bottom < node.getBoundingClientRect().bottom)) setMissed(undefined);
  }
  /** follow goes to the newest message, and stays there. */
  function follow() {
    stuck.current = true;
    setMissed(undefined);
    settle();
    scroller.current!.focus();
  }
  useLayoutEffect(() => { stuck.current = true; scroller.current!.scrollTop = 0; }, [label, seen.me.id]);
  useLayoutEffect(() => {
    const arrived = shown.filter((m) => m.ts > known.current);
    if (!arrived.length) return;
    known.current = arrived.at(-1)!.ts;
    if (arrived.some((m) => m.is_ephemeral || m.user === seen.me.id)) {
      stuck.current = true;
      setMissed(undefined);
    }
    if (!stuck.current) setMissed((before) => before ?? arrived[0]!.ts);
  });
  useLayoutEffect(settle);
  useEffect(() => {
    const node = scroller.current!;
    const watch = new ResizeObserver(settle);
    watch.observe(node);
    for (const child of node.children) watch.observe(child);
    return () => watch.disconnect();
  }, []);

  let day = "";
  let before: Message | undefined;
  const rows: ReactNode[] = [];
  for (const m of shown) {
    const today = dayOf(at(m.ts), seen.me.tz);
    if (today !== day && (onThread || day !== "")) {
      const name = near(at(m.ts), now, seen.me.tz) ?? at(m.ts).toLocaleDateString("en", { timeZone: seen.me.tz, weekday: "long", month: "long", day: "numeric" });
      rows.push(<li key={"day " + today} className="day"><span>{name[0]!.toUpperCase() + name.slice(1)}</span></li>);
      before = undefined;
    }
    day = today;
    if (m.ts === first) rows.push(<li key="new" className="day new"><span>New</span></li>);
    const compact = before?.user === m.user && before.username === m.username && !before.is_ephemeral && !m.is_ephemeral && Number(m.ts) - Number(before.ts) < 300 && !m.blocks?.some((b) => b.type === "header") && !isCard(before) && m.ts !== first && !before.reply_count;
    rows.push(<Line key={m.ts} message={m} compact={compact} replies={replies?.get(m.ts)} fresh={freshThread?.(m.ts)} onThread={onThread} onDismiss={(ts) => setDismissed((d) => [...d, ts])} />);
    before = m;
  }
  return (
    <div className="scroller" ref={scroller} tabIndex={0} role="region" aria-label={label} onScroll={scrolled}>
      <div className="inner">
        {head}
        <ol className="messages" aria-label={label}>{rows}</ol>
      </div>
      {more > 0 && <div className="missed"><button type="button" onClick={follow}><Icon name="down" />{more === 1 ? "New message" : `${more} new messages`}</button></div>}
    </div>
  );
}
