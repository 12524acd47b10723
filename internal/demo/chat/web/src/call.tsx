import { useState } from "react";
import type { Approval, Person } from "./server";

const states: Record<string, string> = {
  waiting: "Waiting for approval", approved: "Approved", denied: "Denied", expired: "Expired", withdrawn: "Withdrawn",
  superseded: "Superseded", refused: "Refused by the policy", in_doubt: "In doubt", confirmed: "Confirmed", unknown: "Not known",
};

type Props = { name: string; state: string; input: unknown; output: unknown; error?: string; approval?: Approval; people: Person[];
  onDecide: (approved: boolean, reason: string) => Promise<string> };

/** A Call is a call of a tool, with buttons while people can decide it. */
export function Call({ name, state, input, output, error, approval: a, people, onDecide }: Props) {
  const [reason, setReason] = useState("");
  const [said, setSaid] = useState("");
  const [busy, setBusy] = useState(false);
  const who = (id: string) => people.find((p) => p.id === id)?.name ?? id;
  const decide = async (approved: boolean) => {
    setBusy(true);
    setSaid(await onDecide(approved, reason).catch(String));
    setBusy(false);
  };
  const done = state === "output-available" ? "Done" : state === "output-error" ? "Failed" : state === "input-streaming" ? "Being written" : "";
  return (
    <section className="call" aria-label={a?.summary ?? name}>
      <h3>{a?.summary ?? name}</h3>
      <pre>{a?.arguments ?? JSON.stringify(input)}</pre>
      {a ? (
        <p>
          <span className="state">{states[a.status] ?? a.status}</span>
          {a.status === "waiting" && a.progress ? ` · ${a.progress} approvals` : ""}
          {a.decisions?.map((d) => ` · ${d.verdict === "approve" ? "approved" : "denied"} by ${who(d.by)}${d.reason ? `: ${d.reason}` : ""}`)}
          {done && ` · ${done}`}
        </p>
      ) : <p>{done || "Running"}</p>}
      {a?.why && a.status === "waiting" && <p>Why this needs approval: {a.why}</p>}
      {a?.reason && <p>{a.reason}</p>}
      {error && <p>{error}</p>}
      {state === "output-available" && !a && <details><summary>Result</summary><pre>{typeof output === "string" ? output : JSON.stringify(output, null, 2)}</pre></details>}
      {a?.status === "waiting" && (
        <div className="buttons">
          <input aria-label="Reason" placeholder="Reason (optional)" value={reason} onChange={(e) => setReason(e.target.value)} />
          <button disabled={busy} onClick={() => decide(true)}>Approve</button>
          <button disabled={busy} onClick={() => decide(false)}>Deny</button>
        </div>
      )}
      {said && <p role="alert">{said}</p>}
    </section>
  );
}
