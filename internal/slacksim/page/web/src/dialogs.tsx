// Dialogs: the browser's own, which keep the focus inside, close on Escape
// and make what is behind them inert.
import { useLayoutEffect, useRef, type ReactNode } from "react";
import type { Json } from "./sim";
import { TextObject } from "./text";
import { Icon } from "./icons";

interface DialogProps { label: string; className?: string; onCancel(): void; children: ReactNode }

export function Dialog({ label, className, onCancel, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => { // before the content's effects, which set the focus
    const node = dialog.current!;
    const before = document.activeElement;
    node.showModal();
    return () => {
      node.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} className={className} aria-label={label}
      onCancel={(e) => { e.preventDefault(); e.stopPropagation(); onCancel(); }}
      onKeyDown={(e) => { if (e.key === "Escape") { e.preventDefault(); e.stopPropagation(); onCancel(); } }}>
      {children}
    </dialog>
  );
}

/** Confirm asks before an element is used. */
export function Confirm({ of, onAnswer }: { of: Json; onAnswer(yes: boolean): void }) {
  return (
    <Dialog label={of.title.text} className="confirm" onCancel={() => onAnswer(false)}>
      <header><h2><TextObject of={of.title} /></h2><button type="button" className="icon" aria-label="Close" onClick={() => onAnswer(false)}><Icon name="close" /></button></header>
      <div className="content"><p><TextObject of={of.text} /></p></div>
      <footer>
        <button type="button" className="act" onClick={() => onAnswer(false)}><TextObject of={of.deny} /></button>
        <button type="button" className={"act " + (of.style ?? "primary")} autoFocus onClick={() => onAnswer(true)}><TextObject of={of.confirm} /></button>
      </footer>
    </Dialog>
  );
}
