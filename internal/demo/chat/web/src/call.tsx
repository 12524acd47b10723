import { useRef, useState } from "react";
import type { Approval, Person } from "./server";

const states: Record<string, string> = {
  waiting: "Waiting for approval", approved: "Approved", denied: "Denied", expired: "Expired", withdrawn: "Withdrawn",
  superseded: "Superseded", refused: "Refused by the policy", in_doubt: "In doubt", confirmed: "Confirmed", unknown: "Not known",
};

const severities: Record<string, string> = { low: "Low risk", high: "High risk", irreversible: "Irreversible", "": "Risk not stated" };

const verdicts: Record<string, string> = {
  approve: "approved", deny: "denied", run_again: "run again", happened: "confirmed", give_up: "given up",
};

const unsure = "The connection was lost, and it is not known whether your decision counts. Decide again.";

type Props = { name: string; state: string; input: unknown; output: unknown; error?: string; approval?: Approval; asker: string; people: Person[];
  onDecide: (approved: boolean, reason: string) => Promise<string> };

/** A Call is a call of a tool, with buttons while people can decide it. */
export function Call({ name, state, input, output, error, approval: a, asker, people, onDecide }: Props) {
  const [reason, setReason] = useState("");
  const [said, setSaid] = useState("");
  const [busy, setBusy] = useState(false);
  const who = (id: string) => people.find((p) => p.id === id)?.name ?? id;
  const section = useRef<HTMLElement>(null);
  const decide = async (approved: boolean) => {
    section.current?.focus(); // the button is disabled now, and gone later: who works with the keyboard goes on from here
    setBusy(true);
    setSaid(await onDecide(approved, reason).catch(() => unsure));
    setBusy(false);
  };
  const done = state === "output-available" ? "Done" : state === "output-error" ? "Failed" : state === "input-streaming" ? "Being written" : "";
  const result = typeof output === "string" ? output : JSON.stringify(output, null, 2);
  if (!a) {
    return (
      <section className="step" aria-label={name}>
        <details open={state === "input-streaming"}>
          <summary><h3>{name}</h3> <span className="state">{done || "Running"}</span></summary>
          <pre>{JSON.stringify(input)}</pre>
          {(error || state === "output-available") && <pre>{error ?? result}</pre>}
        </details>
      </section>
    );
  }
  return (
    <section ref={section} tabIndex={-1} className={`request ${a.status}`} aria-label={a.summary ?? name}>
      <h3>{a.summary ?? name}</h3>
      <small>{asker} asked for this · <span className={a.severity}>{severities[a.severity ?? ""] ?? a.severity}</span></small>
      <p><code>{name}</code> with exactly these arguments:</p>
      <pre>{a.arguments ?? JSON.stringify(input)}</pre>
      {a.why && a.status === "waiting" && <p>Why this needs approval: {a.why}</p>}
      <p>
        <span className="state">{states[a.status] ?? a.status}</span>
        {a.status === "waiting" && a.progress ? ` · ${a.progress} ${a.progress.endsWith(" of 1") ? "approval" : "approvals"}` : ""}
        {a.decisions?.map((d) => ` · ${verdicts[d.verdict] ?? d.verdict} by ${who(d.by)}${d.reason ? `: ${d.reason}` : ""}`)}
        {done && ` · ${done}`}
      </p>
      {a.reason && a.status !== "denied" && <p>{a.reason}</p>}
      {error && <p>{error}</p>}
      {state === "output-available" && <pre>{result}</pre>}
      {a.status === "waiting" && (
        <div className="buttons">
          <input aria-label="Reason" placeholder="Reason (optional)" value={reason} onChange={(e) => setReason(e.target.value)} />
          <button className="primary" disabled={busy} onClick={() => decide(true)}>Approve</button>
          <button className="danger" disabled={busy} onClick={() => decide(false)}>Deny</button>
        </div>
      )}
      {said && (said !== unsure || a.status === "waiting") && <p role="alert">{said}</p>}
    </section>
  );
}
