// Text on screen. Everything becomes text nodes: nothing is parsed as HTML.
import { Fragment, type ReactNode } from "react";
import { formatDate } from "./dates";
import { emojiOf } from "./emoji";
import { parse, plain, type Inline, type Node } from "./mrkdwn";
import type { Json } from "./sim";
import { nameOf, useWorkspace } from "./workspace";

export function Mention({ kind, id, label }: { kind: "user" | "group" | "channel"; id: string; label?: string }) {
  const { seen, person, group, channel, open } = useWorkspace();
  if (kind === "channel") {
    const c = channel(id);
    if (!c || !seen.channels.some((mine) => mine.id === id)) return <span className="mention">#{c && !c.is_private ? c.name : label || "private-channel"}</span>;
    return <button type="button" className="mention" onClick={() => open(id)}>#{c.name}</button>;
  }
  if (kind === "group") {
    const g = group(id);
    return <span className={g?.users.includes(seen.me.id) ? "mention me" : "mention"} title={g?.name}>@{g?.handle ?? (label?.replace(/^@/, "") || id)}</span>;
  }
  const p = person(id);
  return <span className={id === seen.me.id ? "mention me" : "mention"} title={p && "@" + p.name}>@{p ? nameOf(p, id) : label || id}</span>;
}

export const Broadcast = ({ range }: { range: string }) => <span className="mention me">@{range}</span>;

export function Emoji({ name }: { name: string }) {
  const shown = emojiOf(name);
  if (!shown) return <>:{name}:</>;
  return <span className="emoji" role="img" aria-label={name.replaceAll("_", " ")} title={`:${name}:`}>{shown}</span>;
}

export function DateText({ timestamp, format, fallback, url }: { timestamp: number; format: string; fallback: string; url?: string }) {
  const { seen, now } = useWorkspace();
  const text = formatDate(timestamp, format, fallback, now, seen.me.tz);
  if (url) return <Link url={url} label={text} />;
  const at = new Date(timestamp * 1000);
  if (Number.isNaN(at.getTime())) return <>{text}</>;
  return <time dateTime={at.toISOString()} title={at.toLocaleString("en", { timeZone: seen.me.tz, dateStyle: "full", timeStyle: "long" })}>{text}</time>;
}

const hostOf = (url: string) => {
  try {
    return new URL(url).host;
  } catch {
    return "";
  }
};

/** misleads says whether a label looks like another address than the link's. */
function misleads(url: string, label: string): boolean {
  const claimed = /(?:^|[\s/@(])((?:[a-z0-9-]+\.)+[a-z]{2,})(?=[/\s:?#)]|$)/i.exec(label)?.[1];
  return claimed !== undefined && claimed.toLowerCase().replace(/^www\./, "") !== hostOf(url).replace(/^www\./, "").replace(/:\d+$/, "");
}

/** Link opens only what a browser may open, and says where it leads. */
export function Link({ url, label, children }: { url: string; label: string; children?: ReactNode }) {
  if (!/^(https?:\/\/|mailto:)/i.test(url)) {
    return <span>{children ?? label}{label !== url && <span className="target"> ({url})</span>}</span>;
  }
  return (
    <>
      <a href={url} target="_blank" rel="noopener noreferrer" title={url}>{children ?? label}</a>
      {misleads(url, label) && <span className="target"> (leads to {hostOf(url)})</span>}
    </>
  );
}

/** InText draws parsed text. */
export function InText({ nodes }: { nodes: Node[] }) {
  return nodes.map((n, i) => <Fragment key={i}>{one(n)}</Fragment>);
}

function one(n: Node): ReactNode {
  switch (n.type) {
    case "text": return n.text;
    case "break": return <br />;
    case "emoji": return <Emoji name={n.name} />;
    case "bold": return <strong><InText nodes={n.children} /></strong>;
    case "italic": return <em><InText nodes={n.children} /></em>;
    case "strike": return <del><InText nodes={n.children} /></del>;
    case "code": return <code><InText nodes={n.children} /></code>;
    case "pre": return <pre><InText nodes={n.children} /></pre>;
    case "quote": return <blockquote><InText nodes={n.children} /></blockquote>;
    case "user": case "group": case "channel": return <Mention kind={n.type} id={n.id} label={n.label} />;
    case "broadcast": return <Broadcast range={n.range} />;
    case "date": return <DateText {...n} />;
    case "link": return <Link url={n.url} label={n.label} />;
  }
}

export function Mrkdwn({ text, verbatim }: { text: string; verbatim?: boolean }) {
  const { seen } = useWorkspace();
  const channel = (name: string) => seen.channels.find((c) => !c.is_im && c.name === name)?.id;
  return <InText nodes={parse(text, { verbatim, channel })} />;
}

export const Plain = ({ text, emoji = true }: { text: string; emoji?: boolean }) => <InText nodes={plain(text, emoji) as Inline[]} />;

/** TextObject draws a plain_text or mrkdwn object. */
export function TextObject({ of }: { of: Json | undefined }) {
  if (!of) return null;
  if (of.type === "mrkdwn") return <Mrkdwn text={of.text} verbatim={of.verbatim} />;
  return <Plain text={of.text} emoji={of.emoji !== false} />;
}
