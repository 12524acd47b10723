// The modal on top of a person's stack.
import { click, sim } from "./app.js";
import { blocks } from "./blocks.js";
import { el } from "./text.js";

let shown = ""; // which version of which view is on screen
const drafts = new Map(); // what was entered but not submitted, by view
let trouble = "";

/** showModal shows the last view of the stack, or closes the dialog. */
export function showModal(dialog, stack, { world, user, schedule }) {
  const view = stack.at(-1);
  if (!view) {
    shown = "";
    drafts.clear();
    if (dialog.open) dialog.close();
    return;
  }
  const version = JSON.stringify([user, view.id, view.hash, view.errors, trouble]);
  if (version === shown) return;
  shown = version;
  const draft = drafts.get(view.id) ?? {};
  drafts.set(view.id, draft);

  const set = (block, element, value) => {
    (draft[block.block_id] ??= {})[element.action_id] = value;
  };
  const act = (block, element, value, node) => {
    if (value !== undefined) set(block, element, value);
    if (block.type === "input" && !block.dispatch_action) return;
    click({ view_id: view.id }, block, element, value, node);
  };
  const close = async (clear) => {
    await sim("close", { user, view_id: view.id, clear });
    trouble = "";
    schedule();
  };
  const submit = async (e) => {
    e.preventDefault();
    form.classList.add("busy");
    const out = await sim("submit", { user, view_id: view.id, values: entered(view, draft) });
    form.classList.remove("busy");
    trouble = out?.visible_error ?? "";
    if (out && !out.errors && !out.visible_error) drafts.delete(view.id);
    schedule();
  };
  const form = el("form", { onsubmit: submit, noValidate: true },
    el("header", {}, el("h2", {}, view.title), el("button", { type: "button", className: "icon", "aria-label": "Close", onclick: () => close(true) }, "✕")),
    el("div", { className: "content" },
      trouble ? el("p", { className: "alert error", role: "alert" }, trouble) : null,
      blocks(view.blocks, { world, values: view.values, errors: view.errors, draft, set, act })),
    el("footer", { className: "buttons" },
      el("button", { type: "button", className: "act", onclick: () => close(false) }, view.close || "Cancel"),
      view.submit ? el("button", { type: "submit", className: "act primary" }, view.submit) : null));
  const focused = dialog.contains(document.activeElement) ? document.activeElement.id : "";
  dialog.replaceChildren(form);
  if (!dialog.open) dialog.showModal();
  const target = dialog.querySelector("[aria-invalid] input, input[aria-invalid], textarea[aria-invalid], select[aria-invalid]") || (focused && document.getElementById(focused)) ||
    dialog.querySelector("[autofocus]") || dialog.querySelector(".content input, .content textarea, .content select");
  if (target) target.focus();
  dialog.oncancel = (e) => {
    e.preventDefault();
    close(false);
  };
}

/** entered is the part of a draft that the view still has inputs for. */
function entered(view, draft) {
  const values = {};
  for (const block of view.blocks) {
    const value = draft[block.block_id]?.[block.element?.action_id];
    if (block.type === "input" && value !== undefined) values[block.block_id] = { [block.element.action_id]: value };
  }
  return values;
}
