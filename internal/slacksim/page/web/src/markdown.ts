// Standard Markdown, as much of it as a markdown block shows, as a tree.
// Text is never taken for HTML, and nothing in it mentions anybody.

export type Span =
  | { type: "text"; text: string }
  | { type: "code"; text: string }
  | { type: "break" }
  | { type: "bold" | "italic" | "strike"; children: Span[] }
  | { type: "link"; url: string; children: Span[] };

export type Part =
  | { type: "heading"; level: number; children: Span[] }
  | { type: "paragraph"; children: Span[] }
  | { type: "fence"; text: string }
  | { type: "rule" }
  | { type: "quote"; parts: Part[] }
  | { type: "list"; start?: number; items: Part[][] }
  | { type: "table"; head: Span[][]; rows: Span[][][] };

const deepest = 8; // nested quotes, lists and styles; what is deeper is shown as it was written

const fence = /^ {0,3}(`{3,}|~{3,})[^`]*$/;
const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const rule = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const quote = /^ {0,3}> ?/;
const item = /^( {0,3})([-*+]|\d{1,9}[.)])( +|$)/;
const dashes = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

/** markdown reads a whole text. */
export function markdown(text: string, depth = 0): Part[] {
  const lines = text.replace(/\r\n?/g, "\n").replaceAll("\t", "    ").split("\n");
  if (depth > deepest) return [paragraph(lines, depth)];
  const parts: Part[] = [];
  for (let at = 0; at < lines.length;) {
    const line = lines[at]!;
    const opening = fence.exec(line);
    const title = heading.exec(line);
    const listed = rule.test(line) ? null : item.exec(line);
    if (!line.trim()) {
      at++;
    } else if (opening) {
      const end = lines.findIndex((l, n) => n > at && l.trim().startsWith(opening[1]!) && !l.trim().replaceAll(opening[1]![0]!, ""));
      parts.push({ type: "fence", text: lines.slice(at + 1, end < 0 ? undefined : end).join("\n") });
      at = end < 0 ? lines.length : end + 1;
    } else if (title) {
      parts.push({ type: "heading", level: title[1]!.length, children: spans(title[2]!) });
      at++;
    } else if (rule.test(line)) {
      parts.push({ type: "rule" });
      at++;
    } else if (quote.test(line)) {
      const end = until(lines, at, (l) => !quote.test(l));
      parts.push({ type: "quote", parts: markdown(lines.slice(at, end).map((l) => l.replace(quote, "")).join("\n"), depth + 1) });
      at = end;
    } else if (listed) {
      const [list, end] = readList(lines, at, depth);
      parts.push(list);
      at = end;
    } else if (line.includes("|") && dashes.test(lines[at + 1] ?? "") && lines[at + 1]!.includes("-")) {
      const end = until(lines, at + 2, (l) => !l.includes("|"));
      const head = cells(line);
      parts.push({ type: "table", head, rows: lines.slice(at + 2, end).map((l) => { const row = cells(l); return head.map((_, n) => row[n] ?? []); }) });
      at = end;
    } else {
      const end = until(lines, at + 1, (l) => !l.trim() || fence.test(l) || heading.test(l) || rule.test(l) || quote.test(l) || item.test(l));
      parts.push(paragraph(lines.slice(at, end), depth));
      at = end;
    }
  }
  return parts;
}

function until(lines: string[], from: number, stop: (line: string) => boolean): number {
  const n = lines.slice(from).findIndex(stop);
  return n < 0 ? lines.length : from + n;
}

const paragraph = (lines: string[], depth: number): Part => ({
  type: "paragraph",
  children: depth > deepest ? [{ type: "text", text: lines.join("\n") }] : spans(lines.map((l) => l.trim()).join("\n")),
});

/** readList reads the items of one list; what is indented below an item is part of it. */
function readList(lines: string[], from: number, depth: number): [Part, number] {
  const ordered = (mark: string) => /\d/.test(mark);
  const first = item.exec(lines[from]!)![2]!;
  const items: Part[][] = [];
  let at = from;
  for (;;) {
    const m = at < lines.length && !rule.test(lines[at]!) ? item.exec(lines[at]!) : null;
    if (!m || ordered(m[2]!) !== ordered(first)) break;
    const own = [lines[at]!.slice(m[0].length)];
    const indented = (l: string | undefined) => l !== undefined && /^ {2,}\S/.test(l) && !(item.test(l) && l.search(/\S/) <= m[1]!.length);
    for (at++; at < lines.length && (indented(lines[at]) || (!lines[at]!.trim() && indented(lines[at + 1]))); at++) {
      const l = lines[at]!;
      own.push(l.slice(Math.min(l.search(/\S|$/), m[0].length)));
    }
    items.push(markdown(own.join("\n"), depth + 1));
    if (at < lines.length && !lines[at]!.trim() && item.test(lines[at + 1] ?? "")) at++;
  }
  return [{ type: "list", ...(ordered(first) && { start: parseInt(first, 10) }), items }, at];
}

const cells = (line: string): Span[][] => line.trim().replace(/^\||(?<!\\)\|$/g, "").split(/(?<!\\)\|/).map((c) => spans(c.trim().replaceAll("\\|", "|")));

const styles = [["**", "bold"], ["__", "bold"], ["~~", "strike"], ["*", "italic"], ["_", "italic"]] as const;

/** spans reads the text of one paragraph. */
export function spans(text: string, depth = 0): Span[] {
  const out: Span[] = [];
  let said = "";
  const push = (s: Span) => {
    if (said) out.push({ type: "text", text: said });
    said = "";
    out.push(s);
  };
  for (let at = 0; at < text.length;) {
    const rest = text.slice(at);
    const escaped = /^\\([!-/:-@[-`{-~])/.exec(rest);
    const code = /^(`+)(?!`)([^`]|[^`][\s\S]{0,2000}?[^`])\1(?!`)/.exec(rest);
    const link = depth <= deepest ? /^!?\[((?:[^\[\]\\]|\\.){0,1000})\]\(<?([^\s()<>]{1,2000})>?(?: "[^"\n]{0,500}")?\)/.exec(rest) : null;
    const address = /^<(https?:\/\/[^\s<>]+|mailto:[^\s<>]+)>/i.exec(rest) ?? (/[\w/]/.test(text[at - 1] ?? " ") ? null : /^(https?:\/\/[^\s<>|`)\]]*[^\s<>|`.,:;!?)\]'"*_~])/i.exec(rest));
    const style = depth > deepest ? undefined : styles.map(([mark, type]) => ({ type, mark, end: closing(text, at, mark) })).find((s) => s.end > 0);
    if (escaped) {
      said += escaped[1];
      at += 2;
    } else if (code) {
      push({ type: "code", text: code[2]! });
      at += code[0].length;
    } else if (link) {
      push({ type: "link", url: link[2]!, children: link[1] ? spans(link[1], depth + 1) : [{ type: "text", text: link[2]! }] });
      at += link[0].length;
    } else if (address) {
      push({ type: "link", url: address[1]!, children: [{ type: "text", text: address[1]! }] });
      at += address[0].length;
    } else if (style) {
      push({ type: style.type, children: spans(text.slice(at + style.mark.length, style.end), depth + 1) });
      at = style.end + style.mark.length;
    } else if (rest[0] === "\n") {
      push({ type: "break" });
      at++;
    } else {
      const mark = /^(`+|\*+|_+|~+)/.exec(rest)?.[0] ?? /^[A-Za-z0-9 ,.]+?(?=h|$|[^A-Za-z0-9 ,.])/.exec(rest)?.[0] ?? rest[0]!;
      said += mark;
      at += mark.length;
    }
  }
  if (said) out.push({ type: "text", text: said });
  return out;
}

/** closing finds where a style that opens at from ends, or -1. */
function closing(text: string, from: number, mark: string): number {
  if (!text.startsWith(mark, from) || /\s/.test(text[from + mark.length] ?? " ") || text[from + mark.length] === mark[0]) return -1;
  if (mark[0] === "_" && /\w/.test(text[from - 1] ?? " ")) return -1;
  for (let at = text.indexOf(mark, from + mark.length); at > 0; at = text.indexOf(mark, at + 1)) {
    const after = text[at + mark.length] ?? " ";
    if (/[\s\\]/.test(text[at - 1]!) || (mark[0] === "_" && /\w/.test(after))) continue;
    if (mark.length === 1 && (after === mark || text[at - 1] === mark)) { at++; continue; }
    return at;
  }
  return -1;
}
