// Slack's mrkdwn as a tree. The text stays escaped while it is cut into
// tokens and is decoded once afterwards, so that "&lt;!channel&gt;" is text
// and only a real "<!channel>" is a mention.

export type Inline =
  | { type: "text"; text: string }
  | { type: "break" }
  | { type: "emoji"; name: string }
  | { type: "bold" | "italic" | "strike" | "code"; children: Inline[] }
  | { type: "user" | "group" | "channel"; id: string; label: string }
  | { type: "broadcast"; range: string }
  | { type: "date"; timestamp: number; format: string; url: string; fallback: string }
  | { type: "link"; url: string; label: string };

export type Node = Inline | { type: "quote" | "pre"; children: Inline[] };

export interface Options {
  /** Leave plain text alone: neither URLs nor #names become links. */
  verbatim?: boolean;
  /** The id of the channel with this name, if there is one. */
  channel?: (name: string) => string | undefined;
}

/** decode undoes Slack's escaping, once. */
export function decode(text: string): string {
  return text.replace(/&(amp|lt|gt);/g, (_, name: string) => ({ amp: "&", lt: "<", gt: ">" })[name]!);
}

/** parse reads a whole mrkdwn text. */
export function parse(text: string, options: Options = {}): Node[] {
  const nodes: Node[] = [];
  const parts = text.split("```");
  for (let i = 0; i < parts.length; i++) {
    const fenced = i % 2 === 1;
    if (fenced && i < parts.length - 1 && parts[i]!.trim() !== "") {
      nodes.push({ type: "pre", children: literal(parts[i]!.replace(/^\n|\n$/g, "")) });
      if (parts[i + 1]!.startsWith("\n")) parts[i + 1] = parts[i + 1]!.slice(1);
      continue;
    }
    const source = fenced ? "```" + parts[i]! + (i < parts.length - 1 ? "```" : "") : parts[i]!;
    const before = nodes.at(-1);
    if (source !== "") lines(source, options, nodes, before !== undefined && before.type !== "pre");
  }
  return nodes;
}

function lines(source: string, options: Options, nodes: Node[], goesOn: boolean) {
  let quote: Inline[] | null = null;
  let toTheEnd = false;
  source.split("\n").forEach((line, n) => {
    const mark = toTheEnd ? "" : /^(?:&gt;|>){3} ?/.exec(line)?.[0] ?? /^(?:&gt;|>) ?/.exec(line)?.[0];
    if (mark !== undefined && !(goesOn && n === 0)) {
      toTheEnd ||= /^(?:&gt;|>){3}/.test(mark);
      if (quote) quote.push({ type: "break" });
      else nodes.push({ type: "quote", children: (quote = []) });
      quote.push(...inline(line.slice(mark.length), options));
      return;
    }
    if (n > 0 && !quote) nodes.push({ type: "break" });
    quote = null;
    nodes.push(...inline(line, options));
  });
}

const entity = /^<([^\s<>][^<>\n]*)>/;
const code = /^`([^`\n]+)`/;
const marks: Record<string, "bold" | "italic" | "strike"> = { "*": "bold", _: "italic", "~": "strike" };
const word = /[\p{L}\p{N}_]/u;

/** inline reads one line, which is still escaped. */
function inline(line: string, options: Options): Inline[] {
  const nodes: Inline[] = [];
  let plain = "";
  const flush = () => {
    if (plain) nodes.push(...words(plain, options));
    plain = "";
  };
  for (let at = 0; at < line.length; ) {
    const rest = line.slice(at);
    const angle = entity.exec(rest);
    const ticks = code.exec(rest);
    const end = marks[line[at]!] ? closing(line, at) : -1;
    if (angle) {
      flush();
      nodes.push(meaning(angle[1]!));
      at += angle[0].length;
    } else if (ticks) {
      flush();
      nodes.push({ type: "code", children: literal(ticks[1]!) });
      at += ticks[0].length;
    } else if (end > 0) {
      flush();
      nodes.push({ type: marks[line[at]!]!, children: inline(line.slice(at + 1, end), options) });
      at = end + 1;
    } else {
      plain += line[at++];
    }
  }
  flush();
  return nodes;
}

/** closing finds where the style that opens at a position ends, or -1. */
function closing(line: string, open: number): number {
  const mark = line[open]!;
  const next = line[open + 1] ?? " ";
  if ((open > 0 && word.test(line[open - 1]!) && line[open - 1] !== "_") || line[open - 1] === mark || /\s/.test(next) || next === mark) return -1;
  for (let at = open + 1; at < line.length; at++) {
    const atom = entity.exec(line.slice(at)) ?? code.exec(line.slice(at));
    if (atom) {
      at += atom[0].length - 1;
      continue;
    }
    const after = line[at + 1] ?? " ";
    if (line[at] === mark && !/\s/.test(line[at - 1]!) && (!word.test(after) || marks[after]) && after !== mark) return at;
  }
  return -1;
}

/** literal reads code: entities live in it, styles and emoji do not. */
function literal(text: string): Inline[] {
  return text.split(/(<[^\s<>][^<>\n]*>)/).flatMap((part): Inline[] => {
    const angle = entity.exec(part);
    if (angle && angle[0] === part) return [meaning(angle[1]!)];
    return part ? [{ type: "text", text: decode(part) }] : [];
  });
}

/** meaning is what stands between < and >. */
function meaning(body: string): Inline {
  const bar = body.indexOf("|");
  const target = bar < 0 ? body : body.slice(0, bar);
  const label = bar < 0 ? "" : decode(body.slice(bar + 1));
  if (/^@[UW]/.test(target)) return { type: "user", id: target.slice(1), label };
  if (/^#[CDG]/.test(target)) return { type: "channel", id: target.slice(1), label };
  if (target.startsWith("!subteam^")) return { type: "group", id: target.slice("!subteam^".length), label };
  if (target.startsWith("!date^")) {
    const [, timestamp, format, url] = target.split("^");
    return { type: "date", timestamp: Number(timestamp), format: decode(format ?? ""), url: decode(url ?? ""), fallback: label };
  }
  if (/^!(channel|here|everyone)$/.test(target)) return { type: "broadcast", range: target.slice(1) };
  if (target.startsWith("!")) return { type: "text", text: label || `<${decode(body)}>` };
  if (!/^[a-z][a-z0-9+.-]*:/i.test(target)) return { type: "text", text: `<${decode(body)}>` };
  return { type: "link", url: decode(target), label: label || decode(target) };
}

const address = /https?:\/\/[^\s<>|`]*[^\s<>|`.,:;!?)'"*_~]/;

/** words reads plain text, in which addresses and #names may become links. */
function words(text: string, options: Options): Inline[] {
  if (options.verbatim) return emoji(decode(text));
  return text.split(new RegExp(`(${address.source}|(?<![\\w&])#[a-z0-9][a-z0-9_-]*)`)).flatMap((part): Inline[] => {
    if (address.test(part)) return [{ type: "link", url: decode(part), label: decode(part) }];
    const id = part.startsWith("#") ? options.channel?.(part.slice(1)) : undefined;
    return id ? [{ type: "channel", id, label: part.slice(1) }] : emoji(decode(part));
  });
}

/** emoji reads text that is decoded already. */
export function emoji(text: string): Inline[] {
  return text.split(/(:[a-z0-9_+'-]+:)/).flatMap((part): Inline[] => {
    if (/^:[a-z0-9_+'-]+:$/.test(part)) return [{ type: "emoji", name: part.slice(1, -1) }];
    return part ? [{ type: "text", text: part }] : [];
  });
}

/** plain reads a plain_text object: nothing in it is markup but emoji. */
export function plain(text: string, withEmoji = true): Inline[] {
  return text.split("\n").flatMap((line, n): Inline[] => {
    const nodes: Inline[] = withEmoji ? emoji(line) : line ? [{ type: "text", text: line }] : [];
    return n > 0 ? [{ type: "break" }, ...nodes] : nodes;
  });
}

/** flat is what a notification would say: the text without its markup. */
export function flat(nodes: Node[], name: (node: Inline) => string): string {
  return nodes.map((n) => {
    switch (n.type) {
      case "text": return n.text;
      case "break": return " ";
      case "link": return n.label;
      case "user": case "group": case "channel": case "broadcast": case "date": case "emoji": return name(n);
      default: return flat(n.children, name);
    }
  }).join("");
}
