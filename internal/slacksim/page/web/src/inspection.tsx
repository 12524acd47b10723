// What happens inside the app, if the program that runs it provides that.
import { useEffect, useState } from "react";
import { clock } from "./dates";
import { sim, SimError, type InspectionDocument, type InspectionEvent, type Inspection } from "./sim";
import { useTail } from "./tail";
import { useWorkspace } from "./workspace";

/** looks are how long after a change of the workspace to look: once soon, and once the app has stored what followed. */
const looks = { soon: 150, settled: 1500 };

/** useInspection returns what happens inside the app: null if the server has no inspector, undefined until the first answer. */
export function useInspection(): Inspection | null | undefined {
  const { seen, say } = useWorkspace();
  const [inspection, setInspection] = useState<Inspection | null>();
  useEffect(() => {
    if (inspection === null) return;
    let over = false;
    const stop = () => { over = true; timers.forEach(clearTimeout); };
    const read = () => sim<Inspection>("inspection").then((answer) => { if (!over) setInspection(answer); }, (e: Error) => {
      if (over) return;
      if (!(e instanceof SimError && e.status === 404)) return say(e.message);
      stop(); // the server has no inspector: do not ask again
      setInspection(null);
    });
    const timers = Object.values(looks).map((ms) => setTimeout(read, ms));
    return stop;
  }, [seen]);
  return inspection;
}

export function Timeline({ of: events }: { of: InspectionEvent[] }) {
  const { seen } = useWorkspace();
  const box = useTail<HTMLDivElement>(events.length);
  const runs = [...new Set(events.map((e) => e.run))];
  return (
    <>
      <p className="hint">What the bot and people did, from the stored events. Nothing waits in memory: a run ends, and a new run resumes it.</p>
      <div className="entries" ref={box} tabIndex={0} role="region" aria-label="Timeline">
        {events.length === 0 && <p className="hint">Nothing yet. Ask the agent for something.</p>}
        <ol className="timeline">
          {events.map((e, i) => (
            <li key={i} className={e.tone}>
              <time dateTime={e.at}>{clock(new Date(e.at), seen.me.tz, true)}</time>
              <strong>{e.what}</strong>
              {e.detail && <p>{e.detail}</p>}
              {e.run && e.run !== events[i - 1]?.run && <small title={e.run}>Run {runs.indexOf(e.run) + 1} of {runs.length}</small>}
            </li>
          ))}
        </ol>
      </div>
    </>
  );
}

/** kind is the word that says what a document is: "batch" of "app:{p17}:batch:…". */
function kind(key: string): [kind: string, rest: string] {
  const [name = "", ...rest] = key.replace(/^[^{]*\{[^}]*\}:/, "").split(":");
  return [name, rest.join(":")];
}

const many = 6; // documents of one kind, more are folded into one line

/** groups are the documents by kind, in their order. */
function groups(documents: InspectionDocument[]): [kind: string, documents: InspectionDocument[]][] {
  const by = new Map<string, InspectionDocument[]>();
  for (const d of documents) by.set(kind(d.key)[0], [...(by.get(kind(d.key)[0]) ?? []), d]);
  return [...by];
}

const size = (bytes: number) => (bytes < 1024 ? bytes + " B" : (bytes / 1024).toFixed(1) + " KB");

export function Documents({ of: documents, omitted }: { of: InspectionDocument[]; omitted?: number }) {
  return (
    <>
      <p className="hint">Everything that the bot knows, as Redis has it now. Any bot that starts on this Redis continues from here.</p>
      <div className="entries" tabIndex={0} role="region" aria-label="Redis">
        {documents.length === 0 && <p className="hint">Nothing yet. Ask the agent for something.</p>}
        {groups(documents).map(([name, list]) => list.length > many
          ? <details key={name} className="entry document"><summary><strong>{name}</strong><span className="key">{list.length} of this kind</span></summary><div className="group">{list.map((d) => <Document key={d.key} of={d} />)}</div></details>
          : list.map((d) => <Document key={d.key} of={d} />))}
        {omitted ? <p className="hint">{omitted} more are not shown.</p> : null}
      </div>
    </>
  );
}

function Document({ of: d }: { of: InspectionDocument }) {
  const [open, setOpen] = useState(false);
  const [name, rest] = kind(d.key);
  return (
    <details className="entry document" onToggle={(t) => setOpen(t.currentTarget.open)}>
      <summary>
        <strong>{name}</strong>
        <span className="key">{rest}</span>
        <span className="badge">{d.type}</span>
        <span className="size">{size(d.bytes)}</span>
      </summary>
      {open && (
        <>
          <p className="url">{d.key}</p>
          <pre tabIndex={0} aria-label={"Value of " + d.key}>{d.value}</pre>
        </>
      )}
    </details>
  );
}
