// The composer: a text field that sends messages and slash commands, and
// completes names after @.
import { el } from "./text.js";

/** composer builds one into form. */
export function composer(form, label, { here, world, sim, toast, thread, schedule }) {
  const menu = el("ul", { className: "complete", role: "listbox", hidden: true });
  const area = el("textarea", { rows: 1, placeholder: label + "… @mention or /command", "aria-label": label });
  const at = el("button", { type: "button", className: "icon", title: "Mention", "aria-label": "Mention somebody", onclick: () => insert("@") }, "@");
  form.append(menu, area, at, el("button", { type: "submit", className: "act primary" }, "Send"));
  let chosen = 0;

  function word() {
    const before = area.value.slice(0, area.selectionStart);
    return /(^|\s)@([\w.-]*)$/.exec(before)?.[2];
  }

  function insert(text) {
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    area.focus();
    suggest();
  }

  function suggest() {
    const typed = word();
    const names = [...world.people.filter((p) => !p.deleted).sort((a, b) => (b.is_bot ?? false) - (a.is_bot ?? false)).map((p) => p.name), ...world.groups.map((g) => g.handle)];
    const found = typed === undefined ? [] : names.filter((n) => n.startsWith(typed.toLowerCase()) && n !== typed);
    chosen = Math.min(chosen, Math.max(found.length - 1, 0));
    menu.hidden = !found.length;
    menu.replaceChildren(...found.map((name, i) => el("li", {
      role: "option", "aria-selected": String(i === chosen), onmousedown: (e) => { e.preventDefault(); take(name); },
    }, "@" + name)));
  }

  function take(name) {
    const typed = word() ?? "";
    area.setRangeText(name + " ", area.selectionStart - typed.length, area.selectionStart, "end");
    menu.hidden = true;
    area.focus();
  }

  area.addEventListener("input", () => { chosen = 0; suggest(); });
  area.addEventListener("blur", () => { menu.hidden = true; });
  area.addEventListener("keydown", (e) => {
    if (e.isComposing) return;
    if (!menu.hidden) {
      const move = { ArrowDown: 1, ArrowUp: -1 }[e.key];
      if (move) {
        chosen = (chosen + move + menu.children.length) % menu.children.length;
        e.preventDefault();
        suggest();
        return;
      }
      if (e.key === "Tab" || e.key === "Enter") {
        e.preventDefault();
        take(menu.children[chosen].textContent.slice(1));
        return;
      }
      if (e.key === "Escape") {
        menu.hidden = true;
        return;
      }
    }
    if (e.key === "Enter" && !e.shiftKey) {
      e.preventDefault();
      form.requestSubmit();
    }
  });

  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    const text = area.value.trim();
    if (!text) return;
    const target = { user: here.user, channel: here.channel, thread_ts: thread() };
    const command = /^(\/[\w-]+)\s*([\s\S]*)$/.exec(text);
    area.value = "";
    const out = command ? await sim("command", { ...target, command: command[1], text: command[2] }) : await sim("post", { ...target, text });
    if (!out && !area.value) area.value = text;
    if (out?.visible_error) toast(out.visible_error);
    schedule();
  });
}
