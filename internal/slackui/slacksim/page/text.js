// Text as Slack shows it. Everything ends up in text nodes; no message text
// is ever parsed as HTML.

/** el makes an element; strings among the children become text nodes. */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && !name.includes("-")) node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

/** decode undoes Slack's escaping, once. */
export function decode(text) {
  return text.replace(/&(amp|lt|gt);/g, (_, name) => ({ amp: "&", lt: "<", gt: ">" })[name]);
}

const emoji = {
  white_check_mark: "✅", x: "❌", warning: "⚠️", eyes: "👀", hourglass: "⌛", hourglass_flowing_sand: "⏳",
  lock: "🔒", robot_face: "🤖", rocket: "🚀", tada: "🎉", "+1": "👍", "-1": "👎", bell: "🔔", no_entry: "⛔",
  large_green_circle: "🟢", large_yellow_circle: "🟡", red_circle: "🔴", wave: "👋", mag: "🔍", pencil2: "✏️",
};
export const emojiOf = (name) => emoji[name] ?? `:${name}:`;
const withEmoji = (text) => text.replace(/:([a-z0-9_+-]+):/g, (all, name) => emoji[name] ?? all);

/** safeLink makes a link only of addresses that a click may open. */
export function safeLink(url, label) {
  if (!/^(https?|mailto|slack):/i.test(url)) return document.createTextNode(label);
  return el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, label);
}

/** date formats <!date^…> and rich text dates. */
export function date(timestamp, format, fallback) {
  const at = new Date(Number(timestamp) * 1000);
  if (Number.isNaN(at.getTime())) return fallback ?? "";
  const day = (options) => at.toLocaleDateString("en", options);
  const days = Math.round((new Date(at).setHours(0, 0, 0, 0) - new Date().setHours(0, 0, 0, 0)) / 86400000);
  const near = { "-1": "yesterday", 0: "today", 1: "tomorrow" }[days];
  const minutes = Math.round((at - Date.now()) / 60000);
  const size = Math.abs(minutes) < 60 ? [minutes, "minute"] : Math.abs(minutes) < 1440 ? [Math.round(minutes / 60), "hour"] : [days, "day"];
  const long = { weekday: "long", month: "long", day: "numeric", year: "numeric" };
  const parts = {
    date_num: at.toISOString().slice(0, 10),
    date_slash: day({ month: "2-digit", day: "2-digit", year: "numeric" }),
    date: day({ month: "long", day: "numeric", year: "numeric" }),
    date_short: day({ month: "short", day: "numeric", year: "numeric" }),
    date_long: day(long),
    time: at.toLocaleTimeString("en", { hour: "numeric", minute: "2-digit" }),
    time_secs: at.toLocaleTimeString("en", { hour: "numeric", minute: "2-digit", second: "2-digit" }),
    ago: new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(size[0], size[1]),
  };
  for (const name of ["date", "date_short", "date_long"]) parts[name + "_pretty"] = near ?? parts[name];
  return format.replace(/\{([a-z_]+)\}/g, (all, name) => parts[name] ?? all);
}

/** mention shows what an id stands for. */
function mention(name, self) {
  return el("span", { className: self ? "mention me" : "mention" }, name);
}
export const userMention = (id, world) => mention("@" + world.name(id), id === world.me);
export const groupMention = (id, world) => mention("@" + world.groupName(id), false);
export const channelMention = (id, world) => mention("#" + world.channelName(id), false);

/** entity shows what stands between < and >. */
function entity(body, world) {
  const bar = body.indexOf("|");
  const target = bar < 0 ? body : body.slice(0, bar);
  const label = bar < 0 ? "" : decode(body.slice(bar + 1));
  if (target.startsWith("@")) return userMention(target.slice(1), world);
  if (target.startsWith("#")) return channelMention(target.slice(1), world);
  if (target.startsWith("!subteam^")) return groupMention(target.slice(9), world);
  if (target.startsWith("!date^")) {
    const [, timestamp, format, link] = target.split("^");
    const shown = date(timestamp, decode(format ?? ""), label);
    const node = link ? safeLink(decode(link), shown) : el("time", {}, shown);
    node.title = label;
    return node;
  }
  if (target.startsWith("!")) return mention("@" + target.slice(1), true);
  return safeLink(decode(target), label || decode(target));
}

const styles = [
  [/^\*(?!\s)([^*\n]+?)\*(?![\w*])/, "strong"],
  [/^_(?!\s)([^_\n]+?)_(?![\w_])/, "em"],
  [/^~(?!\s)([^~\n]+?)~(?![\w~])/, "del"],
];

/** inline renders mrkdwn within a line; its argument is still escaped. */
function inline(text, world) {
  const nodes = [];
  let plain = "";
  const flush = () => {
    if (plain) nodes.push(withEmoji(decode(plain)));
    plain = "";
  };
  for (let at = 0; at < text.length; ) {
    const rest = text.slice(at);
    const code = /^`([^`\n]+)`/.exec(rest);
    const angle = /^<([^<>\n]+)>/.exec(rest);
    if (code || angle) {
      flush();
      nodes.push(code ? el("code", {}, decode(code[1])) : entity(angle[1], world));
      at += (code ?? angle)[0].length;
      continue;
    }
    const opens = at === 0 || !/\w/.test(text[at - 1]);
    const style = opens && styles.map(([pattern, tag]) => [pattern.exec(rest), tag]).find(([m]) => m);
    if (style) {
      flush();
      nodes.push(el(style[1], {}, inline(style[0][1], world)));
      at += style[0][0].length;
      continue;
    }
    plain += text[at++];
  }
  flush();
  return nodes;
}

/** mrkdwn renders Slack's markup as DOM nodes. */
export function mrkdwn(text, world) {
  const nodes = [];
  text.split(/```/).forEach((part, i, all) => {
    if (i % 2 === 1 && i < all.length - 1) {
      nodes.push(el("pre", {}, decode(part.replace(/^\n|\n$/g, ""))));
      return;
    }
    const source = i % 2 === 1 ? "```" + part : part;
    let quote = null;
    source.split("\n").forEach((line, n) => {
      const quoted = /^&gt; ?(.*)/.exec(line);
      if (quoted) {
        if (!quote) nodes.push((quote = el("blockquote")));
        else quote.append(el("br"));
        quote.append(...inline(quoted[1], world));
        return;
      }
      if (n > 0 && !quote) nodes.push(el("br"));
      quote = null;
      nodes.push(...inline(line, world));
    });
  });
  return nodes;
}

/** lines renders plain text, where only newlines mean something. */
export function lines(text, useEmoji = true) {
  return text.split("\n").flatMap((line, i) => (i ? [el("br")] : []).concat(useEmoji ? withEmoji(line) : line));
}

/** textObject renders a plain_text or mrkdwn object. */
export function textObject(object, world) {
  if (!object) return [];
  return object.type === "mrkdwn" ? mrkdwn(object.text, world) : lines(object.text, object.emoji !== false);
}
