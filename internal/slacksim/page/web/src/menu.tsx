// Menus behind a "…" button.
import { useEffect, useId, useRef, useState, type ReactNode } from "react";
import { Icon } from "./icons";

export interface Entry { value: string; label: ReactNode; description?: ReactNode }

interface Props { label: string; entries: Entry[]; busy?: boolean; className?: string; onPick(value: string): void; children?: ReactNode }

/** Menu opens on its button: arrows move, Enter chooses, Escape closes. */
export function Menu({ label, entries, busy, className = "act square", onPick, children }: Props) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLSpanElement>(null);
  const id = useId();
  useEffect(() => {
    if (!open) return;
    root.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const away = (e: Event) => { if (!root.current?.contains(e.target as HTMLElement)) setOpen(false); };
    document.addEventListener("pointerdown", away);
    document.addEventListener("focusin", away);
    return () => { document.removeEventListener("pointerdown", away); document.removeEventListener("focusin", away); };
  }, [open]);
  const shut = () => { setOpen(false); root.current?.querySelector("button")?.focus(); };
  function onKeyDown(e: React.KeyboardEvent) {
    if (!open) {
      if (e.key === "ArrowDown") { e.preventDefault(); setOpen(true); }
      return;
    }
    const items = [...root.current!.querySelectorAll<HTMLElement>("[role=menuitem]")];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[e.key];
    if (to !== undefined) { e.preventDefault(); items.at(to % items.length)!.focus(); }
    if (e.key === "Escape") { e.preventDefault(); e.stopPropagation(); shut(); }
  }
  return (
    <span className="menu-root" ref={root} onKeyDown={onKeyDown}>
      <button type="button" className={className} aria-label={label} aria-haspopup="menu" aria-expanded={open} aria-controls={open ? id : undefined} aria-busy={busy} onClick={() => setOpen(!open)}><Icon name="more" /></button>
      {open && (
        <span className="menu" role="menu" id={id}>
          {entries.map((e) => (
            <button key={e.value} type="button" role="menuitem" tabIndex={-1} onClick={() => { shut(); onPick(e.value); }}>
              {e.label}{e.description && <small>{e.description}</small>}
            </button>
          ))}
        </span>
      )}
      {children}
    </span>
  );
}
