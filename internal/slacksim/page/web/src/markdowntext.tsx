// markdown blocks on screen. Like all text they become text nodes only.
import { Fragment, type ReactNode } from "react";
import { markdown, type Part, type Span } from "./markdown";
import { Link } from "./text";

/** Markdown draws a Markdown text. */
export const Markdown = ({ text }: { text: string }) => <div className="rich markdown"><Parts of={markdown(text)} /></div>;

const Parts = ({ of }: { of: Part[] }) => of.map((p, i) => <Fragment key={i}>{part(p)}</Fragment>);
const Spans = ({ of }: { of: Span[] }) => of.map((s, i) => <Fragment key={i}>{span(s)}</Fragment>);

function part(p: Part): ReactNode {
  switch (p.type) {
    case "heading": return p.level < 3 ? <h4><Spans of={p.children} /></h4> : <h5><Spans of={p.children} /></h5>;
    case "paragraph": return <p><Spans of={p.children} /></p>;
    case "fence": return <pre tabIndex={-1}>{p.text}</pre>;
    case "rule": return <hr />;
    case "quote": return <blockquote><Parts of={p.parts} /></blockquote>;
    case "list": {
      const items = p.items.map((parts, i) => <li key={i}><Parts of={parts} /></li>);
      return p.start === undefined ? <ul>{items}</ul> : <ol start={p.start}>{items}</ol>;
    }
    case "table":
      return (
        <div className="scroll" tabIndex={0} role="region" aria-label="Table">
          <table>
            <thead><tr>{p.head.map((c, i) => <th key={i} scope="col"><Spans of={c} /></th>)}</tr></thead>
            <tbody>{p.rows.map((row, n) => <tr key={n}>{row.map((c, i) => <td key={i}><Spans of={c} /></td>)}</tr>)}</tbody>
          </table>
        </div>
      );
  }
}

const tags = { bold: "strong", italic: "em", strike: "del" } as const;

function span(s: Span): ReactNode {
  switch (s.type) {
    case "text": return s.text;
    case "code": return <code>{s.text}</code>;
    case "break": return <br />;
    case "link": {
      if (!/^(https?:\/\/|mailto:)/i.test(s.url)) return <Link url={s.url} label={flat(s.children)} />;
      return <><Link url={s.url} label={s.url}><Spans of={s.children} /></Link>{flat(s.children) !== s.url && <span className="target"> ({s.url})</span>}</>;
    }
    default: {
      const Tag = tags[s.type];
      return <Tag><Spans of={s.children} /></Tag>;
    }
  }
}

const flat = (of: Span[]): string => of.map((s) => (s.type === "break" ? " " : "text" in s ? s.text : flat(s.children))).join("");
