// rich_text blocks: their text is never parsed.
import { Fragment, type ReactNode } from "react";
import { emojiOf } from "./emoji";
import type { Json } from "./sim";
import { Broadcast, DateText, Emoji, Link, Mention, Plain } from "./text";

const tags = [["bold", "strong"], ["italic", "em"], ["strike", "del"], ["underline", "u"], ["code", "code"]] as const;

function styled(content: ReactNode, style: Json | undefined): ReactNode {
  for (const [name, Tag] of tags) if (style?.[name]) content = <Tag>{content}</Tag>;
  return content;
}

function part(e: Json): ReactNode {
  switch (e.type) {
    case "text": return <Plain text={e.text} emoji={false} />;
    case "link": return <Link url={e.url} label={e.text || e.url} />;
    case "user": return <Mention kind="user" id={e.user_id} />;
    case "usergroup": return <Mention kind="group" id={e.usergroup_id} />;
    case "channel": return <Mention kind="channel" id={e.channel_id} />;
    case "broadcast": return <Broadcast range={e.range} />;
    case "emoji": return e.unicode && !emojiOf(e.name) ? String.fromCodePoint(...String(e.unicode).split("-").map((c) => parseInt(c, 16))) : <Emoji name={e.name} />;
    case "date": return <DateText timestamp={e.timestamp} format={e.format} fallback={e.fallback ?? ""} url={e.url} />;
    case "color": return <code>{e.value}</code>;
    case "canvas_user_mention": return <Mention kind="user" id={e.user_id} />;
    case "tag": return <code>{e.text}</code>;
    default: return e.url ? <Link url={e.url} label={e.text || e.url} /> : <code>{e.text ?? e.file_id ?? String(e.type)}</code>;
  }
}

const Parts = ({ of }: { of: Json[] }) => of.map((e, i) => <Fragment key={i}>{styled(part(e), e.style)}</Fragment>);

const marks = ["decimal", "lower-alpha", "lower-roman"];

function section(e: Json, key: number): ReactNode {
  switch (e.type) {
    case "rich_text_preformatted":
      return <pre key={key} tabIndex={-1}>{e.elements.map((p: Json, i: number) => (p.type === "text" ? <Fragment key={i}>{p.text}</Fragment> : <Fragment key={i}>{part(p)}</Fragment>))}</pre>;
    case "rich_text_quote":
      return <blockquote key={key}><Parts of={e.elements} /></blockquote>;
    case "rich_text_list": {
      const indent = Math.min(e.indent ?? 0, 8);
      const items = e.elements.map((s: Json, i: number) => <li key={i}><Parts of={s.elements} /></li>);
      const style = { marginInlineStart: indent * 22 };
      return e.style === "ordered"
        ? <ol key={key} start={1 + (e.offset ?? 0)} style={{ ...style, listStyleType: marks[indent % 3] }}>{items}</ol>
        : <ul key={key} style={{ ...style, listStyleType: ["disc", "circle", "square"][indent % 3] }}>{items}</ul>;
    }
    default:
      return <p key={key}><Parts of={e.elements ?? []} /></p>;
  }
}

/** RichText draws a rich_text block or value. */
export const RichText = ({ of }: { of: Json }) => <div className="rich">{of.elements.map(section)}</div>;
