// Blocks as DOM. act(block, element, value, node) is called when a person
// uses an element; draft holds what is entered into a view.
import { channelMention, date, el, emojiOf, groupMention, lines, safeLink, textObject, userMention } from "./text.js";

const styleClass = { bold: "strong", italic: "em", strike: "del", underline: "u", code: "code" };

function styled(node, style) {
  for (const [name, tag] of Object.entries(styleClass)) if (style?.[name]) node = el(tag, {}, node);
  return node;
}

function richInline(part, ctx) {
  const { world } = ctx;
  const node = {
    text: () => el("span", {}, lines(part.text, false)),
    link: () => safeLink(part.url, part.text || part.url),
    user: () => userMention(part.user_id, world),
    usergroup: () => groupMention(part.usergroup_id, world),
    channel: () => channelMention(part.channel_id, world),
    broadcast: () => el("span", { className: "mention me" }, "@" + part.range),
    emoji: () => el("span", {}, emojiOf(part.name)),
    date: () => el("time", { title: part.fallback }, date(part.timestamp, part.format, part.fallback)),
    color: () => el("code", {}, part.value),
  }[part.type];
  return node ? styled(node(), part.style) : "";
}

function richText(block, ctx) {
  const inner = (item) => item.elements.map((p) => richInline(p, ctx));
  return el("div", { className: "rich" }, block.elements.map((item) => {
    switch (item.type) {
      case "rich_text_preformatted": return el("pre", {}, item.elements.map((p) => (p.type === "text" ? p.text : richInline(p, ctx))));
      case "rich_text_quote": return el("blockquote", {}, inner(item));
      case "rich_text_list": {
        const list = el(item.style === "ordered" ? "ol" : "ul", { className: `indent-${item.indent ?? 0}`, start: item.style === "ordered" ? 1 + (item.offset ?? 0) : undefined },
          item.elements.map((s) => el("li", {}, inner(s))));
        return list;
      }
      default: return el("p", {}, inner(item));
    }
  }));
}

/** fold hides the tail of something long behind "Show more". */
function fold(node, text) {
  if ((text ?? "").length < 700 && (text ?? "").split("\n").length < 12) return node;
  node.classList.add("folded");
  const more = el("button", { type: "button", className: "link", onclick: () => {
    more.textContent = node.classList.toggle("folded") ? "Show more" : "Show less";
  } }, "Show more");
  return el("div", {}, node, more);
}

const optionsOf = (element) => [...(element.options ?? []), ...(element.option_groups ?? []).flatMap((g) => g.options)];

function choices(element, ctx) {
  const people = () => ctx.world.people.filter((p) => !p.deleted).map((p) => [p.id, "@" + p.name]);
  const channels = () => ctx.world.channels.filter((c) => !c.is_im).map((c) => [c.id, "#" + c.name]);
  if (element.type.endsWith("users_select")) return people();
  if (element.type.endsWith("conversations_select") || element.type.endsWith("channels_select")) return channels();
  return optionsOf(element).map((o) => [o.value, o.text.text]);
}

/** current is what an element holds now, as plain values. */
function current(block, element, ctx) {
  const drafted = ctx.draft?.[block.block_id]?.[element.action_id];
  if (drafted !== undefined) return drafted;
  const state = ctx.values?.[block.block_id]?.[element.action_id] ?? {
    selected_option: element.initial_option, selected_options: element.initial_options, value: element.initial_value,
  };
  if (state.selected_options) return state.selected_options.map((o) => o.value);
  for (const name of ["selected_users", "selected_conversations", "selected_channels"]) if (state[name]) return state[name];
  if (state.rich_text_value) return state.rich_text_value.elements.flatMap((s) => s.elements.map((p) => p.text ?? "")).join("");
  return state.value ?? state.selected_option?.value ?? state.selected_user ?? state.selected_conversation ??
    state.selected_channel ?? state.selected_date ?? state.selected_time ?? state.selected_date_time ?? "";
}

function button(block, element, ctx, label, className) {
  const node = el("button", {
    type: "button", className: `act ${element.style ?? ""} ${className ?? ""}`, "aria-label": element.accessibility_label,
    onclick: () => ctx.act(block, element, undefined, node),
  }, label);
  return node;
}

function select(block, element, ctx) {
  const multiple = element.type.startsWith("multi_");
  const overflow = element.type === "overflow";
  const held = current(block, element, ctx);
  const chosen = overflow ? [] : [held].flat();
  const node = el("select", { multiple, size: multiple ? 4 : undefined, "aria-label": element.placeholder?.text ?? (overflow ? "More actions" : "Choose"), className: overflow ? "overflow" : "" },
    multiple ? [] : el("option", { value: "" }, overflow ? "⋯" : element.placeholder?.text ?? "Choose…"),
    choices(element, ctx).map(([value, label]) => el("option", { value, selected: chosen.includes(value) }, label)));
  node.addEventListener("change", () => {
    const value = multiple ? [...node.selectedOptions].map((o) => o.value) : node.value;
    if (overflow) node.value = "";
    if (value !== "") ctx.act(block, element, value, node);
    else ctx.set?.(block, element, value);
  });
  return node;
}

function options(block, element, ctx, kind) {
  const chosen = [current(block, element, ctx)].flat();
  const group = el("div", { className: "options", role: kind === "radio" ? "radiogroup" : "group" });
  const name = `${block.block_id}-${element.action_id}-${Math.random()}`;
  group.append(...element.options.map((o) => el("label", {},
    el("input", { type: kind, name, value: o.value, checked: chosen.includes(o.value), onchange: () => {
      const all = [...group.querySelectorAll("input:checked")].map((i) => i.value);
      ctx.act(block, element, kind === "radio" ? all[0] : all, group);
    } }),
    el("span", {}, textObject(o.text, ctx.world), o.description ? el("small", {}, textObject(o.description, ctx.world)) : null))));
  return group;
}

function field(block, element, ctx) {
  const type = {
    email_text_input: "email", url_text_input: "url", number_input: "text", datepicker: "date", timepicker: "time",
    datetimepicker: "datetime-local",
  }[element.type] ?? "text";
  const long = element.multiline || element.type === "rich_text_input";
  const node = el(long ? "textarea" : "input", {
    placeholder: element.placeholder?.text ?? "", rows: long ? 5 : undefined, value: current(block, element, ctx),
    autofocus: element.focus_on_load, inputMode: element.type === "number_input" ? "decimal" : undefined,
  });
  if (!long) node.type = type;
  const value = () => (type === "datetime-local" && node.value ? String(Math.floor(new Date(node.value) / 1000)) : node.value);
  node.addEventListener("input", () => ctx.set?.(block, element, value()));
  if (["date", "time", "datetime-local"].includes(type)) node.addEventListener("change", () => ctx.act(block, element, value(), node));
  return node;
}

export function element(block, e, ctx) {
  switch (e.type) {
    case "button": return button(block, e, ctx, textObject(e.text, ctx.world));
    case "workflow_button": return button(block, e, ctx, textObject(e.text, ctx.world));
    case "icon_button": return button(block, e, ctx, ["🗑 ", ...textObject(e.text, ctx.world)], "quiet");
    case "image": return el("img", { src: e.image_url ?? "", alt: e.alt_text, className: "small" });
    case "radio_buttons": return options(block, e, ctx, "radio");
    case "checkboxes": return options(block, e, ctx, "checkbox");
    case "feedback_buttons": return el("span", {}, [e.positive_button, e.negative_button].map((b) => {
      const node = el("button", { type: "button", className: "act", onclick: () => ctx.act(block, e, b.value, node) }, textObject(b.text, ctx.world));
      return node;
    }));
    default: return e.type === "overflow" || e.type.endsWith("_select") ? select(block, e, ctx) : field(block, e, ctx);
  }
}

function input(block, ctx) {
  const error = ctx.errors?.[block.block_id];
  const control = element(block, block.element, ctx);
  const id = "input-" + block.block_id;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(control.tagName)) control.id = id;
  if (error) control.setAttribute("aria-invalid", "true");
  control.setAttribute("aria-describedby", id + "-note");
  return el("div", { className: "input" + (error ? " wrong" : "") },
    el("label", { htmlFor: id }, textObject(block.label, ctx.world), block.optional ? el("small", {}, " (optional)") : null),
    control,
    el("p", { id: id + "-note", className: error ? "error" : "hint" }, error ?? textObject(block.hint, ctx.world)));
}

const image = (b, ctx) => el("figure", {}, b.title ? el("figcaption", {}, textObject(b.title, ctx.world)) : null, el("img", { src: b.image_url ?? "", alt: b.alt_text }));

const table = (b, ctx) => el("div", { className: "scroll" }, el("table", {}, b.rows.map((row, i) => el("tr", {}, row.map((cell) =>
  el(i === 0 ? "th" : "td", {}, cell.type === "rich_text" ? richText(cell, ctx) : String(cell.text ?? cell.value)))))));

const kinds = {
  header: (b, ctx) => el("h3", {}, textObject(b.text, ctx.world)),
  divider: () => el("hr"),
  section: (b, ctx) => el("div", { className: "section" },
    el("div", {}, b.text ? fold(el("div", {}, textObject(b.text, ctx.world)), b.text.text) : null,
      b.fields ? el("div", { className: "fields" }, b.fields.map((f) => el("div", {}, textObject(f, ctx.world)))) : null),
    b.accessory ? element(b, b.accessory, ctx) : null),
  context: (b, ctx) => el("div", { className: "context" }, b.elements.map((e) =>
    e.type === "image" ? element(b, e, ctx) : el("span", {}, textObject(e, ctx.world)))),
  actions: (b, ctx) => el("div", { className: "actions" }, b.elements.map((e) => element(b, e, ctx))),
  context_actions: (b, ctx) => el("div", { className: "actions" }, b.elements.map((e) => element(b, e, ctx))),
  rich_text: (b, ctx) => fold(richText(b, ctx), b.elements.flatMap((s) => (s.elements ?? []).map((p) => p.text ?? "")).join("")),
  input,
  image,
  alert: (b, ctx) => el("div", { className: "alert " + (b.level ?? "default"), role: "note" }, textObject(b.text, ctx.world)),
  markdown: (b) => el("div", {}, lines(b.text)),
  table,
  data_table: (b, ctx) => el("div", {}, el("small", {}, b.caption), table(b, ctx)),
  card: (b, ctx) => el("div", { className: "card" }, b.title ? el("strong", {}, textObject(b.title, ctx.world)) : null,
    [b.subtitle, b.body, b.subtext].map((t) => (t ? el("div", {}, textObject(t, ctx.world)) : null)),
    b.actions ? el("div", { className: "actions" }, b.actions.map((e) => element(b, e, ctx))) : null),
  carousel: (b, ctx) => el("div", { className: "scroll row" }, b.elements.map((c) => kinds.card(c, ctx))),
  container: (b, ctx) => el("div", { className: "card" }, b.title ? el("strong", {}, textObject(b.title, ctx.world)) : null, blocks(b.child_blocks, ctx)),
  task_card: (b) => el("div", { className: "card" }, el("strong", {}, b.title), el("small", {}, " " + (b.status ?? ""))),
  plan: (b, ctx) => el("div", {}, el("strong", {}, b.title), (b.tasks ?? []).map((t) => kinds.task_card(t, ctx))),
  video: (b, ctx) => el("div", {}, safeLink(b.title_url ?? b.video_url, b.title.text), el("img", { src: b.thumbnail_url, alt: b.alt_text })),
};

/** blocks renders a list of blocks; one of an unknown type says so. */
export function blocks(list, ctx) {
  return list.map((b) => (kinds[b.type] ? kinds[b.type](b, ctx) : el("p", { className: "hint" }, `This page cannot show a ${b.type} block.`)));
}
