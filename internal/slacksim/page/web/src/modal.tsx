// The modal on top of a person's stack.
import { useEffect, useRef, useState } from "react";
import { Blocks } from "./blocks";
import { Dialog } from "./dialogs";
import { Icon } from "./icons";
import { sim, type SubmitOutcome, type View } from "./sim";
import { SurfaceProvider, type Entered } from "./surface";
import { useClick, useSuggest } from "./click";
import { useWorkspace } from "./workspace";

type Draft = Record<string, Record<string, Entered>>;

/** Modals shows the last view of the stack. */
export function Modals({ stack }: { stack: View[] }) {
  const { seen } = useWorkspace();
  const [drafts, setDrafts] = useState<Record<string, Draft>>({});
  const top = stack.at(-1);
  useEffect(() => { if (!top) setDrafts({}); }, [!top]);
  if (!top) return null;
  return (
    <Dialog key={seen.me.id} label={top.title ?? "Form"} className="modal" onCancel={() => void close(top, seen.me.id, false)}>
      <Form key={top.id} view={top} depth={stack.length} draft={drafts[top.id] ?? {}}
        setDraft={(change) => setDrafts((all) => ({ ...all, [top.id]: change(all[top.id] ?? {}) }))} />
    </Dialog>
  );
}

const close = (view: View, user: string, clear: boolean) => sim("close", { user, view_id: view.id, clear }).catch(() => undefined);

function Form({ view, depth, draft, setDraft }: { view: View; depth: number; draft: Draft; setDraft(change: (d: Draft) => Draft): void }) {
  const { seen, look } = useWorkspace();
  const click = useClick({ view_id: view.id });
  const suggest = useSuggest({ view_id: view.id });
  const [trouble, setTrouble] = useState("");
  const [busy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const errors = JSON.stringify(view.errors ?? {});
  const user = seen.me.id;

  useEffect(() => {
    const find = (s: string) => form.current?.querySelector<HTMLElement>(s);
    const first = find(".wrong .field, .wrong input") ?? find("[data-focus]") ?? find(".content .field, .content input") ?? find("footer button");
    if (errors !== "{}" || !form.current?.contains(document.activeElement) || document.activeElement?.tagName === "BUTTON") first?.focus();
  }, [errors]);
  useEffect(() => { // another page: what had the focus is gone
    if (form.current?.contains(document.activeElement)) return;
    content.current?.scrollTo(0, 0);
    content.current?.focus();
  }, [view.hash]);

  async function submit(e: React.FormEvent) {
    e.preventDefault();
    if (busy) return;
    setBusy(true);
    setTrouble("");
    try {
      const out = await sim<SubmitOutcome>("submit", { user, view_id: view.id, values: entered(view, draft) });
      setTrouble(out.visible_error ?? "");
    } catch (e) {
      setTrouble((e as Error).message); // a notice would be behind the modal
    }
    setBusy(false);
    look();
  }

  const surface = {
    id: view.id, act: click, suggest, values: view.values, errors: view.errors,
    entered: (b: { block_id?: string }, e: { action_id?: string }) => draft[b.block_id!]?.[e.action_id!],
    enter: (b: { block_id?: string }, e: { action_id?: string }, value: Entered) =>
      setDraft((d) => ({ ...d, [b.block_id!]: { ...d[b.block_id!], [e.action_id!]: value } })),
  };
  return (
    <form ref={form} onSubmit={(e) => void submit(e)} noValidate aria-busy={busy}>
      <header>
        {depth > 1 && <button type="button" className="icon" aria-label="Back" onClick={() => void close(view, user, false)}><Icon name="back" /></button>}
        <h2>{view.title}</h2>
        <span className="as">as {seen.me.real_name}</span>
        <button type="button" className="icon" aria-label="Close" onClick={() => void close(view, user, true)}><Icon name="close" /></button>
      </header>
      <div className="content" ref={content} tabIndex={-1}>
        {trouble && <p className="alert error" role="alert">{trouble}</p>}
        <SurfaceProvider value={surface}><Blocks of={view.blocks} /></SurfaceProvider>
      </div>
      <footer>
        <button type="button" className="act" onClick={() => void close(view, user, false)}>{view.close || "Cancel"}</button>
        {view.submit && <button type="submit" className="act primary" aria-busy={busy}>{view.submit}</button>}
      </footer>
    </form>
  );
}

/** entered is the part of a draft that the view still has inputs for. */
function entered(view: View, draft: Draft): Draft {
  const values: Draft = {};
  for (const b of view.blocks) {
    const value = b.type === "input" ? draft[b.block_id]?.[b.element.action_id] : undefined;
    if (value !== undefined) values[b.block_id] = { [b.element.action_id]: value };
  }
  return values;
}
