// Inspector: what happens behind the messages.
import { useId, useRef, useState, type KeyboardEvent } from "react";
import { Icon } from "./icons";
import { Documents, Timeline, useInspection } from "./inspection";
import { Requests } from "./requests";

const tabs = { timeline: "Timeline", redis: "Redis", requests: "Requests" } as const;
type Tab = keyof typeof tabs;
const order = Object.keys(tabs) as Tab[];

export function Inspector({ onClose }: { onClose(): void }) {
  const inspection = useInspection();
  const [tab, setTab] = useState<Tab>("timeline");
  const id = useId();
  return (
    <aside className="inspector pane" aria-label="Inspector">
      <header><h2>Inspector</h2><button type="button" className="icon" aria-label="Close" onClick={onClose}><Icon name="close" /></button></header>
      {inspection === null && <Requests />}
      {inspection && (
        <>
          <Tabs id={id} tab={tab} onTab={setTab} />
          <div className="panel" role="tabpanel" id={id + "panel"} aria-labelledby={id + tab}>
            {tab === "timeline" && <Timeline of={inspection.timeline} />}
            {tab === "redis" && <Documents of={inspection.documents} omitted={inspection.omitted} />}
            {tab === "requests" && <Requests />}
          </div>
        </>
      )}
    </aside>
  );
}

function Tabs({ id, tab, onTab }: { id: string; tab: Tab; onTab(tab: Tab): void }) {
  const list = useRef<HTMLDivElement>(null);
  const keys = (e: KeyboardEvent) => {
    const at = order.indexOf(tab);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[e.key];
    if (to === undefined || e.altKey || e.ctrlKey || e.metaKey) return;
    e.preventDefault();
    const next = order.at(to % order.length)!;
    onTab(next);
    (list.current?.children[order.indexOf(next)] as HTMLElement | undefined)?.focus();
  };
  return (
    <div className="tabs" role="tablist" aria-label="Inspector" ref={list} onKeyDown={keys}>
      {order.map((name) => <button key={name} type="button" role="tab" id={id + name} aria-controls={id + "panel"} aria-selected={tab === name} tabIndex={tab === name ? 0 : -1} onClick={() => onTab(name)}>{tabs[name]}</button>)}
    </div>
  );
}
