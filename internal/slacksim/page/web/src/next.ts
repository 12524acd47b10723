// What the story in a channel has come to, read from what one person sees.
import type { Json, Message, Person, State } from "./sim";

/** Next is where the newest story stands, and what that allows to be said. */
export type Next =
  | { kind: "nothing" }
  | { kind: "refused"; ask: Message; instead?: Person }
  | { kind: "decide"; card: Message; groups: string[]; approvers: Person[]; later: Person[]; editable: boolean; outsider?: Person }
  | { kind: "many"; card: Message }
  | { kind: "work"; ask: Message; outcome: Outcome }
  | { kind: "read"; ask: Message; last: Message; outcome: Outcome };

/** Outcome is how the calls of a request ended; "none": no card has asked for anything that is settled. */
export type Outcome = "none" | "decided" | "undecided";

/** decisive says whether the blocks hold a button that decides something. */
export const decisive = (blocks: Json[] | undefined) => buttons(blocks ?? []).some((e) => e.style);

const buttons = (blocks: Json[]): Json[] => blocks.filter((b) => b.type === "actions").flatMap((b) => b.elements).filter((e) => e.type === "button");

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
    const blocks = card.blocks ?? [];
    if (!lines(blocks).some(counts)) return { kind: "many", card };
    const { now, later, groups } = approversIn(blocks, state);
    const who = (ids: Set<string>) => people.filter((p) => ids.has(p.id));
    const named = new Set([...now, ...later, ask?.user]);
    return {
      kind: "decide", card, groups, approvers: who(now), later: who(later), editable: buttons(blocks).some((b) => /^Edit/.test(b.text?.text)),
      outsider: ask && people.find((p) => !named.has(p.id) && !p.is_restricted),
    };
  }
  if (!ask || !last) return { kind: "nothing" };
  const outcome = outcomeOf(within.filter((m) => m.ts > ask.ts));
  if (!last.bot_id || within.some(reports)) return { kind: "work", ask, outcome };
  return { kind: "read", ask, last, outcome };
}

/** reports says whether a message of the app tells how far a request is, which is no answer. An answer begins with the agent's name and a colon. */
const reports = (m: Message) => !!m.bot_id && /^(<@\w+> wrote on the web\. )?(Queued\b|Waiting for |Everything is decided\. The agent continues|(Everything is decided\. )?[^\s:]+ is (about to start|thinking|working)\.$)/.test(m.text);

/** lines lists the lines of the rich text in blocks, those of lists too, each as its elements. */
const lines = (blocks: Json[]): Json[][] => {
  const of = (e: Json): Json[][] => (e.type === "rich_text_section" ? [e.elements] : e.type === "rich_text_list" ? e.elements.flatMap(of) : []);
  return blocks.filter((b) => b.type === "rich_text").flatMap((b) => b.elements).flatMap(of);
};

const texts = (test: RegExp) => (e: Json) => e.type === "text" && test.test(e.text);

/** counts says whether a line counts approvals. */
const counts = (line: Json[]) => line.some(texts(/: \d+ of \d+ approval/));

/** approversIn reads who can still approve from the lines that count approvals, and who is asked only after others. */
function approversIn(blocks: Json[], state: State): { now: Set<string>; later: Set<string>; groups: string[] } {
  const now = new Set<string>();
  const later = new Set<string>();
  const groups = new Set<string>();
  for (const call of callsIn(blocks)) {
    const list = lines(call).filter(counts).flatMap(quorumsIn);
    const out = new Set([...list.flatMap((q) => q.did), ...ruledOut(call)]); // one person, one approval
    for (const q of list.filter((q) => q.from.length)) {
      for (const e of q.from) {
        const group = e.type === "usergroup" && state.groups.find((g) => g.id === e.usergroup_id);
        if (group && !q.later) groups.add(group.handle);
        for (const id of group ? group.users : e.type === "user" ? [e.user_id as string] : []) if (!out.has(id)) (q.later ? later : now).add(id);
      }
    }
  }
  return { now, later, groups: [...groups] };
}

/** callsIn parts the blocks of a card: those of an open call end with its buttons. */
function callsIn(blocks: Json[]): Json[][] {
  const calls: Json[][] = [[]];
  for (const b of blocks) {
    calls.at(-1)!.push(b);
    if (b.type === "actions") calls.push([]);
  }
  return calls;
}

/** quorumsIn reads a line: who approved, and from whom more is needed. */
function quorumsIn(line: Json[]): { did: string[]; from: Json[]; later: boolean }[] {
  const starts = line.flatMap((e, i) => (counts([e]) ? [i] : []));
  return starts.map((start, i) => {
    const part = line.slice(start, starts[i + 1] ?? line.length);
    const from = part.findIndex(texts(/, from $/)); // -1: complete
    const users = (list: Json[]) => list.filter((e) => e.type === "user").map((e) => e.user_id as string);
    return { did: users(from < 0 ? part : part.slice(0, from)), from: from < 0 ? [] : part.slice(from), later: line.some(texts(/asked once /)) };
  });
}

/** ruledOut are those of whom the card says that they can't approve, or have denied. */
function ruledOut(blocks: Json[]): string[] {
  const fine = blocks.filter((b) => b.type === "context").map((b) => b.elements.map((e: Json) => (e.type === "mrkdwn" ? e.text : "")).join(" · "));
  const may = fine.flatMap((t) => t.split(" · ")).filter((t) => t.endsWith("can't approve")).flatMap((t) => [...t.matchAll(/<@(\w+)>/g)].map((m) => m[1]!));
  const denied = lines(blocks).filter((l) => l[0]?.type === "user" && l.slice(1).some(texts(/^ denied it/))).map((l) => l[0]!.user_id as string);
  return [...may, ...denied];
}

function outcomeOf(thread: Message[]): Outcome {
  const bold = thread.filter((m) => m.bot_id).flatMap((m) => lines(m.blocks ?? [])).flat().filter((e) => e.type === "text" && e.style?.bold).map((e) => e.text as string);
  if (bold.some((t) => /^\W*(Approved|Denied)$/.test(t))) return "decided";
  return bold.some((t) => /^\W*(Expired|Withdrawn|Superseded)$/.test(t)) ? "undecided" : "none";
}
