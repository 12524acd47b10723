// The simulated workspace. It knows nothing that /sim/ does not tell, and
// does nothing that /sim/ does not do.
import { blocks } from "./blocks.js";
import { composer } from "./composer.js";
import { showModal } from "./modal.js";
import { el, mrkdwn } from "./text.js";

const $ = (id) => document.getElementById(id);
const [firstPerson, firstChannel] = location.hash.slice(1).split("/");

const here = { user: firstPerson, channel: firstChannel, thread: null, read: {}, home: false };
const world = {
  people: [], channels: [], groups: [], bot: {}, get me() { return here.user; },
  name: (id) => world.people.find((p) => p.id === id)?.name ?? id,
  groupName: (id) => world.groups.find((g) => g.id === id)?.handle ?? id,
  channelName: (id) => world.channels.find((c) => c.id === id)?.name ?? id,
};

/** sim calls the control API; what goes wrong is said in a toast. */
export async function sim(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  try {
    const response = await fetch("/sim/" + path, options);
    const answer = await response.json();
    if (response.ok) return answer;
    toast(answer.error);
  } catch {
    toast("The workspace does not answer. Is it still running?");
  }
  return null;
}

export function toast(text) {
  const node = el("p", {}, text);
  $("toasts").append(node);
  setTimeout(() => node.remove(), 8000);
}

/** click uses an element; a confirm dialog comes first if it has one. */
export async function click(target, block, element, value, node, confirmed) {
  node?.classList.add("busy");
  const out = await sim("click", { ...target, user: here.user, action_id: element.action_id, block_id: block.block_id, value, confirmed });
  node?.classList.remove("busy");
  if (!out) return;
  if (out.confirm) {
    if (await ask(out.confirm)) await click(target, block, element, value, node, true);
    return;
  }
  node?.parentElement?.querySelector(".warning")?.remove();
  if (out.visible_error) {
    node?.after(el("span", { className: "warning", role: "alert", title: out.visible_error }, "⚠ " + out.visible_error));
  }
  if (out.url && /^https?:/i.test(out.url)) window.open(out.url, "_blank", "noopener");
  schedule();
}

function ask(confirm) {
  return new Promise((resolve) => {
    const dialog = $("confirm");
    let answer = false;
    dialog.replaceChildren(el("h2", {}, confirm.title.text),
      el("p", {}, confirm.text.type === "mrkdwn" ? mrkdwn(confirm.text.text, world) : confirm.text.text),
      el("div", { className: "buttons" },
        el("button", { type: "button", className: "act", onclick: () => dialog.close() }, confirm.deny.text),
        el("button", { type: "button", className: "act " + (confirm.style ?? "primary"), onclick: () => { answer = true; dialog.close(); } }, confirm.confirm.text)));
    dialog.addEventListener("close", () => resolve(answer), { once: true });
    dialog.showModal();
  });
}

function avatar(message) {
  const name = message.username || world.name(message.user);
  return el("span", { className: "avatar " + (message.bot_id ? "bot" : "p" + (name.length % 4)), "aria-hidden": "true" }, name[0].toUpperCase());
}

function line(message, inThread) {
  const ctx = { world, act: (block, element, value, node) => click({ channel: message.channel, ts: message.ts }, block, element, value, node) };
  const at = new Date(Number(message.ts) * 1000);
  const replies = message.reply_count ? `${message.reply_count} ${message.reply_count === 1 ? "reply" : "replies"}` : "Reply in thread";
  const attached = (message.attachments ?? []).map((a) => el("div", { className: "attachment" },
    a.blocks ? blocks(a.blocks, ctx) : mrkdwn(a.text ?? a.fallback ?? "", world)));
  return el("li", { className: message.is_ephemeral ? "ephemeral" : "" }, avatar(message),
    el("div", { className: "body" },
      message.is_ephemeral ? el("p", { className: "hint" }, "Only visible to you") : null,
      el("p", { className: "by" }, el("strong", {}, message.username || world.name(message.user)), message.bot_id ? el("span", { className: "badge" }, "app") : null,
        el("time", { dateTime: at.toISOString(), title: at.toLocaleString() }, at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }))),
      message.blocks?.length ? blocks(message.blocks, ctx) : el("div", {}, mrkdwn(message.text, world)),
      attached,
      message.edited && !message.blocks?.length ? el("small", { className: "hint" }, "(edited)") : null,
      message.reactions?.length ? el("p", { className: "reactions" }, message.reactions.map((r) => el("span", {}, `:${r.name}: ${r.count}`))) : null,
      inThread || message.is_ephemeral ? null : el("button", { type: "button", className: message.reply_count ? "link" : "link faint", onclick: () => openThread(message.thread_ts || message.ts) }, replies)));
}

/** fill shows messages in a list and leaves alone what did not change. */
function fill(list, messages, inThread) {
  const bottom = list.scrollHeight - list.scrollTop - list.clientHeight < 80;
  const known = new Map([...list.children].map((node) => [node.key, node]));
  const nodes = messages.map((m) => {
    const key = JSON.stringify([here.user, m]);
    const node = known.get(key) ?? line(m, inThread);
    node.key = key;
    return node;
  });
  const same = nodes.length === list.children.length && nodes.every((n, i) => n === list.children[i]);
  if (!same) list.replaceChildren(...nodes);
  if (bottom && !same) list.scrollTop = list.scrollHeight;
}

function openThread(ts) {
  here.thread = ts;
  schedule();
  $("reply").querySelector("textarea").focus();
}

function go(channel, home = false) {
  Object.assign(here, { channel, home, thread: null });
  schedule();
}

function showChannels(latest) {
  const mine = world.channels.filter((c) => c.members.includes(here.user));
  const item = (c, label) => el("li", {}, el("button", {
    type: "button", "aria-current": c.id === here.channel && !here.home ? "page" : undefined,
    className: latest[c.id] > (here.read[c.id] ?? "") && c.id !== here.channel ? "unread" : "", onclick: () => go(c.id),
  }, label));
  const home = el("li", {}, el("button", {
    type: "button", "aria-current": here.home ? "page" : undefined,
    onclick: async () => { await sim("home", { user: here.user }); go(here.channel, true); },
  }, "⌂ " + world.name(world.bot.id) + " home"));
  $("channels").replaceChildren(...mine.filter((c) => !c.is_im).map((c) => item(c, (c.is_private ? "🔒 " : "# ") + c.name)),
    ...mine.filter((c) => c.is_im).map((c) => item(c, "✉ " + world.name(world.bot.id))), home);
}

async function refresh() {
  const state = await sim("state");
  if (!state) return;
  Object.assign(world, { people: state.people, channels: state.channels, groups: state.groups, bot: state.bot });
  const able = state.people.filter((p) => !p.deleted && !p.is_bot);
  if (!able.some((p) => p.id === here.user)) here.user = (able.find((p) => p.name === here.user) ?? able[0]).id;
  const mine = state.channels.filter((c) => c.members.includes(here.user));
  if (!mine.some((c) => c.id === here.channel)) here.channel = mine[0]?.id;
  history.replaceState(null, "", `#${here.user}/${here.channel}`);
  if ($("person").children.length !== able.length) {
    $("person").replaceChildren(...able.map((p) => el("option", { value: p.id }, `${p.real_name || p.name} (@${p.name})`)));
  }
  $("person").value = here.user;
  $("team").textContent = state.team;

  const lists = await Promise.all(mine.map((c) => sim(`messages?user=${here.user}&channel=${c.id}`)));
  const latest = {};
  mine.forEach((c, i) => { latest[c.id] = lists[i]?.messages.at(-1)?.ts ?? ""; });
  const all = lists[mine.findIndex((c) => c.id === here.channel)]?.messages ?? [];
  here.read[here.channel] = latest[here.channel];
  showChannels(latest);

  const channel = mine.find((c) => c.id === here.channel);
  const views = (await sim(`views?user=${here.user}`)) ?? { views: [] };
  $("where").textContent = here.home ? `${world.name(world.bot.id)} home` : channel?.is_im ? world.name(world.bot.id) : "# " + channel?.name;
  $("home").hidden = !here.home;
  for (const id of ["messages", "suggestions", "composer"]) $(id).hidden = here.home;
  if (here.home) {
    const ctx = { world, values: views.home?.values, act: (b, e, value, node) => click({ view_id: views.home.id }, b, e, value, node) };
    $("home").replaceChildren(...(views.home ? blocks(views.home.blocks, ctx) : [el("p", { className: "hint" }, "The app has published nothing here yet.")]));
  }
  fill($("messages"), all.filter((m) => !m.thread_ts || m.thread_ts === m.ts || m.is_ephemeral && !all.some((r) => r.ts === m.thread_ts)));
  $("thread").hidden = !here.thread;
  if (here.thread) fill($("replies"), all.filter((m) => m.ts === here.thread || m.thread_ts === here.thread), true);

  const fresh = !here.home && !all.length;
  $("suggestions").replaceChildren(...(fresh ? state.suggestions : []).map((text) => el("button", {
    type: "button", onclick: () => sim("post", { user: here.user, channel: here.channel, text }),
  }, text)));
  showModal($("modal"), views.views, { world, user: here.user, schedule });
}

let timer = 0;
let running = Promise.resolve();
/** schedule looks again soon; several changes are one look. */
export function schedule() {
  clearTimeout(timer);
  timer = setTimeout(() => { running = running.then(refresh, refresh); }, 30);
}

$("person").addEventListener("change", (e) => { here.user = e.target.value; here.thread = null; schedule(); });
$("close-thread").addEventListener("click", () => { here.thread = null; schedule(); });
composer($("composer"), "Message", { here, world, sim, toast, thread: () => undefined, schedule });
composer($("reply"), "Reply", { here, world, sim, toast, thread: () => here.thread, schedule });
window.addEventListener("hashchange", () => { [here.user, here.channel] = location.hash.slice(1).split("/"); schedule(); });
new EventSource("/sim/events").addEventListener("message", schedule);
schedule();
