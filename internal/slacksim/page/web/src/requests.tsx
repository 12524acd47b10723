// The requests between the workspace and the app.
import { useEffect, useState } from "react";
import { clock } from "./dates";
import { sim, type LogEntry } from "./sim";
import { useTail } from "./tail";
import { useWorkspace } from "./workspace";

const filters = { all: "Everything", to_app: "Signed requests", from_app: "Web API calls" } as const;

/** pretty writes a body for reading: the form decoded, the JSON indented. */
export function pretty(body: string): string {
  const json = (text: string) => {
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return undefined;
    }
  };
  const whole = json(body);
  if (whole !== undefined) return whole;
  if (!/^[\w.%+-]+=/.test(body)) return body;
  return [...new URLSearchParams(body)].map(([name, value]) => `${name}: ${(/^[[{]/.test(value) && json(value)) || value}`).join("\n");
}

export function Requests() {
  const { seen, say } = useWorkspace();
  const [log, setLog] = useState<LogEntry[]>([]);
  const [filter, setFilter] = useState<keyof typeof filters>("all");
  useEffect(() => {
    let over = false;
    const timer = setTimeout(() => {
      sim<{ log: LogEntry[] }>("log").then((answer) => { if (!over) setLog(answer.log ?? []); }, (e: Error) => say(e.message));
    }, 150);
    return () => { over = true; clearTimeout(timer); };
  }, [seen]);
  const shown = log.filter((e) => filter === "all" || e.direction === filter);
  const box = useTail<HTMLDivElement>(shown.length);
  return (
    <>
      <p className="hint">The signed requests that Slack would send to the bot, and the Web API calls that the bot makes. Tokens are redacted.</p>
      <div className="filters" role="group" aria-label="Show">
        {Object.entries(filters).map(([name, label]) => <button key={name} type="button" aria-pressed={filter === name} onClick={() => setFilter(name as keyof typeof filters)}>{label}</button>)}
      </div>
      <div className="entries" ref={box} tabIndex={0} role="region" aria-label="Requests">
        {shown.length === 0 && <p className="hint">Nothing yet. Ask the agent for something.</p>}
        {shown.slice(-300).map((e) => <Entry key={e.seq} of={e} />)}
      </div>
    </>
  );
}

function Entry({ of: e }: { of: LogEntry }) {
  const { seen } = useWorkspace();
  const [open, setOpen] = useState(false);
  const bad = e.problem || !e.status || e.status >= 400 || /^\{"ok":false/.test(e.response ?? "");
  const signed = Object.keys(e.headers ?? {}).some((h) => /signature/i.test(h));
  return (
    <details className={"entry " + e.direction} onToggle={(t) => setOpen(t.currentTarget.open)}>
      <summary>
        <span className="way">{e.direction === "to_app" ? "Slack → bot" : "bot → Slack"}</span>
        <strong>{e.kind}</strong>
        {signed && <span className="badge">signed</span>}
        <span className={bad ? "status bad" : "status"}>{e.problem || e.status}</span>
        <time dateTime={e.at}>{clock(new Date(e.at), seen.me.tz, true)}</time>
      </summary>
      {open && (
        <>
          <p className="url">{e.method} {e.url}</p>
          {e.headers && <pre tabIndex={0} aria-label="Headers">{Object.entries(e.headers).map(([k, v]) => `${k}: ${v}`).join("\n")}</pre>}
          {e.request && <pre tabIndex={0} aria-label="Request">{pretty(e.request)}</pre>}
          {e.response && <><p className="url">answered {e.status}</p><pre tabIndex={0} aria-label="Answer">{pretty(e.response)}</pre></>}
        </>
      )}
    </details>
  );
}
