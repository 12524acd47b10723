// What the demo's server says and takes besides the stream of the chat.

export type Person = { id: string; name: string };
export type Setup = { people: Person[]; prompts: string[]; token: string };

/** An Approval is the data of a `data-approval` part. */
export type Approval = {
  approvalId?: string; toolCallId: string; toolName?: string; status: string; progress?: string; summary?: string; arguments?: string;
  why?: string; severity?: string; reason?: string; message?: string; expiresAt?: string;
  decisions?: { by: string; verdict: string; reason?: string }[];
};

/** The demo has no login: a page says as whom it acts, and proves that it is ours. */
export const headers = (token: string, person: string) => ({ "demo-person": person, "demo-token": token });

export async function setup(): Promise<Setup> {
  const r = await fetch("setup");
  if (!r.ok) throw new Error(await r.text());
  return r.json();
}

export async function history(chat: string, as: Record<string, string>) {
  const r = await fetch(`api/chat/${chat}`, { headers: as });
  if (r.status === 404) return []; // nothing was said yet
  if (!r.ok) throw new Error(await r.text());
  return (await r.json()).messages;
}

/** Decides a call, and returns what its person reads if it was refused. */
export async function decide(chat: string, approval: string, approved: boolean, reason: string, as: Record<string, string>): Promise<string> {
  const r = await fetch(`api/chat/${chat}/approvals/${approval}`, {
    method: "POST", headers: { ...as, "content-type": "application/json" }, body: JSON.stringify({ approved, reason: reason || undefined }),
  });
  return r.ok ? "" : (await r.json()).detail ?? "Something went wrong.";
}
