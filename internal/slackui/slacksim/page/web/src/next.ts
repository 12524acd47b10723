// What the story in a channel has come to, read from what one person sees.
import type { Json, Message, Person, State } from "./sim";

/** Next is where the newest story stands, and what that allows to be said. */
export type Next =
  | { kind: "nothing" }
  | { kind: "refused"; ask: Message; instead?: Person }
  | { kind: "sign"; card: Message; groups: string[]; signers: Person[]; outsider?: Person }
  | { kind: "work"; ask: Message }
  | { kind: "read"; ask: Message; last: Message; outcome: Outcome };

/** Outcome is how the calls of a thread ended; "none": no card asked for anything. */
export type Outcome = "none" | "signed" | "unsigned";

/** decisive says whether the blocks hold a button that decides something. */
export const decisive = (blocks: Json[] | undefined) => (blocks ?? []).some((b) => b.type === "actions" && b.elements.some((e: Json) => e.type === "button" && e.style));

export function nextOf(state: State, me: Person, messages: Message[]): Next {
  const people = state.people.filter((p) => !p.deleted && !p.is_bot);
  const all = messages.filter((m) => !m.is_ephemeral);
  const ask = all.findLast((m) => !m.bot_id && JSON.stringify(m.blocks ?? m.text).includes(state.bot.id));
  const root = ask?.thread_ts ?? ask?.ts;
  const within = all.filter((m) => m.ts === root || m.thread_ts === root);
  const last = within.at(-1);
  const refused = ask && ask.user === me.id && last?.ts === ask.ts && messages.some((m) => m.is_ephemeral && m.bot_id && m.ts > ask.ts);
  if (refused) return { kind: "refused", ask, instead: people.find((p) => p.id !== me.id && !p.is_restricted) };

  const card = all.findLast((m) => m.bot_id && decisive(m.blocks));
  if (card) {
    const { ids, groups } = signersIn(card.blocks ?? [], state);
    const signers = people.filter((p) => ids.includes(p.id));
    return { kind: "sign", card, groups, signers, outsider: people.find((p) => !ids.includes(p.id) && p.id !== ask?.user && !p.is_restricted) };
  }
  if (!ask || !last) return { kind: "nothing" };
  if (!last.bot_id) return { kind: "work", ask };
  return { kind: "read", ask, last, outcome: outcomeOf(within) };
}

/** sections lists the lines of the rich text in blocks, each as its elements. */
const sections = (blocks: Json[]): Json[][] => blocks.filter((b) => b.type === "rich_text").flatMap((b) => b.elements).filter((s) => s.type === "rich_text_section").map((s) => s.elements);

/** signersIn reads who may still sign from the lines that count signatures, and from nothing else. */
function signersIn(blocks: Json[], state: State): { ids: string[]; groups: string[] } {
  const ids = new Set<string>();
  const groups = new Set<string>();
  for (const line of sections(blocks)) {
    if (!line.some((e) => e.type === "text" && /: \d+ of \d+ signature/.test(e.text))) continue;
    const from = line.findIndex((e) => e.type === "text" && /, from $/.test(e.text));
    if (from < 0) continue; // complete
    const did = line.slice(0, from).map((e) => e.user_id);
    for (const e of line.slice(from)) {
      const group = e.type === "usergroup" && state.groups.find((g) => g.id === e.usergroup_id);
      if (group) groups.add(group.handle);
      for (const id of group ? group.users : e.type === "user" ? [e.user_id as string] : []) if (!did.includes(id)) ids.add(id);
    }
  }
  for (const b of blocks) {
    if (b.type !== "context") continue;
    for (const m of JSON.stringify(b.elements).matchAll(/<@(\w+)> may not sign/g)) ids.delete(m[1]!);
  }
  return { ids: [...ids], groups: [...groups] };
}

function outcomeOf(thread: Message[]): Outcome {
  const bold = thread.filter((m) => m.bot_id).flatMap((m) => sections(m.blocks ?? [])).flat().filter((e) => e.type === "text" && e.style?.bold).map((e) => e.text as string);
  if (bold.some((t) => /^\W*(Approved|Denied)$/.test(t))) return "signed";
  return bold.some((t) => /^\W*(Expired|Withdrawn)$/.test(t)) ? "unsigned" : "none";
}
