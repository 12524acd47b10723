import assert from "node:assert/strict";
import { test } from "node:test";
import { nextOf, type Next } from "../src/next";
import type { Json, Message, Person, State } from "../src/sim";

const person = (id: string, more: Partial<Person> = {}): Person => ({ id, name: id.toLowerCase(), real_name: id, ...more });
const [alice, bob, dave, gita] = [person("UALICE"), person("UBOB"), person("UDAVE"), person("UGITA", { is_restricted: true })] as const;
const state: State = { team: "t", bot: person("UBOT", { is_bot: true }), people: [gita, alice, bob, dave], channels: [], groups: [{ id: "SSRE", handle: "sre", name: "SRE", users: ["UALICE", "UBOB"] }], suggestions: ["@bot go"], now: 0 };

const ask = (user: Person): Message => ({ channel: "C", ts: "1.0", user: user.id, text: "<@UBOT> go" });
const bot = (ts: string, ...lines: Json[][]): Message => ({ channel: "C", ts, thread_ts: "1.0", user: "UBOT", bot_id: "B", text: "", blocks: [{ type: "rich_text", elements: lines.map((elements) => ({ type: "rich_text_section", elements })) }] });
const text = (text: string, bold = false) => ({ type: "text", text, ...(bold && { style: { bold } }) });
const user = (p: Person) => ({ type: "user", user_id: p.id });
const sre = { type: "usergroup", usergroup_id: "SSRE" };
const asks = (m: Message, context = ""): Message => ({ ...m, blocks: [...m.blocks!, { type: "context", elements: [{ type: "mrkdwn", text: context }] }, { type: "actions", elements: [{ type: "button", style: "primary" }] }] });

const told = (me: Person, ...messages: Message[]): Next => nextOf(state, me, messages);
const approvers = (...args: Parameters<typeof told>) => {
  const next = told(...args);
  assert.equal(next.kind, "decide");
  return next.kind === "decide" ? [next.groups.join(), next.approvers.map((p) => p.id).join()] : [];
};

test("a refusal is told to the person who was refused, and to nobody else", () => {
  const refusal: Message = { channel: "C", ts: "2.0", user: "UBOT", bot_id: "B", is_ephemeral: true, text: "no" };
  const next = told(gita, ask(gita), refusal);
  assert.equal(next.kind === "refused" && next.instead?.id, "UALICE");
  assert.equal(told(bob, ask(gita)).kind, "work");
  assert.equal(told(alice, { ...refusal, ts: "0.5" }, ask(alice)).kind, "work", "an older refusal is of something else");
});

test("who can approve is read from the line that counts approvals", () => {
  const quorum = (...from: Json[]) => [text("sre", true), text(": 0 of 1 approval"), text(", from "), ...from];
  assert.deepEqual(approvers(dave, ask(alice), asks(bot("2.0", [user(dave), text(" asked")], quorum(sre)))), ["sre", "UALICE,UBOB"]);
  assert.deepEqual(approvers(dave, ask(alice), asks(bot("2.0", quorum(sre)), "<@UALICE> can't approve")), ["sre", "UBOB"]);
  assert.deepEqual(approvers(alice, ask(alice), asks(bot("2.0", quorum(user(dave))))), ["", "UDAVE"]);
  assert.deepEqual(approvers(alice, ask(alice), asks(bot("2.0", [text("sre", true), text(": 1 of 2 approvals"), text(" by "), user(bob), text(", from "), sre]))), ["sre", "UALICE"], "who approved has approved");
  assert.deepEqual(approvers(bob, ask(alice), asks(bot("2.0", [text("Please look, "), user(bob)], quorum(user(dave))))), ["", "UDAVE"], "to be mentioned is not to be named");
});

test("who is asked first is told first, on a card with quorums in order", () => {
  const quorum = (name: string, so: string, after: string, ...from: Json[]) => [text(name, true), text(`: ${so} of 1 approval`), ...from, ...(after ? [text(", " + after)] : [])];
  const from = (...who: Json[]) => [text(", from "), ...who];
  const next = (...lines: Json[][]) => {
    const n = told(gita, ask(alice), asks(bot("2.0", ...lines)));
    return n.kind === "decide" ? [n.groups.join(), n.approvers.map((p) => p.id).join(), n.later.map((p) => p.id).join()] : [];
  };
  const last = quorum("security", "0", "asked once operations has approved", ...from(user(dave)));
  assert.deepEqual(next(quorum("operations", "0", "", ...from(sre)), last), ["sre", "UALICE,UBOB", "UDAVE"]);
  const approved = [text("operations", true), text(": 1 of 1 approval"), text(" by "), user(bob), text(", complete")];
  assert.deepEqual(next(approved, quorum("security", "0", "", ...from(user(dave), sre))), ["sre", "UALICE,UDAVE", ""], "an approval for one quorum does not count for another");
  assert.deepEqual(next(quorum("operations", "0", "", ...from(sre)), [user(bob), text(" denied it:")]), ["sre", "UALICE", ""]);
});

test("alternatives and editors are read too", () => {
  const any: Message = bot("2.0", [text("Any of:", true)]);
  any.blocks![0]!.elements.push({ type: "rich_text_list", elements: [{ type: "rich_text_section", elements: [text("leads", true), text(": 0 of 2 approvals"), text(", from "), user(dave), text("; together with "), text("sre", true), text(": 0 of 1 approval"), text(", from "), sre] }] });
  assert.deepEqual(approvers(gita, ask(alice), asks(any, "One denial stops it · <@UALICE> can't approve · <@UBOB>, <@UDAVE> edited it and can't approve · digest `x`")), ["sre", ""]);
  assert.deepEqual(approvers(gita, ask(alice), asks(any, "<@UALICE> can't approve")), ["sre", "UBOB,UDAVE"]);
});

test("a list of many is not a card that names approvers", () => {
  assert.equal(told(alice, ask(alice), asks(bot("2.0", [text("Tools: ", true)]))).kind, "many");
});

test("how far a request is, is no answer to it", () => {
  const says = (ts: string, text: string): Message => ({ ...bot(ts), text });
  const after = (...messages: Message[]) => {
    const next = told(alice, ask(alice), ...messages);
    return next.kind === "work" ? "work, " + next.outcome : next.kind;
  };
  for (const words of ["ops is about to start.", "ops is thinking.", "ops is working.", "<@UALICE> wrote on the web. ops is working.", "Waiting for approval of 2 calls. The card is in this thread.", "Queued behind 2 requests in this thread."]) {
    assert.equal(after(says("2.0", words)), "work, none", words);
  }
  const card = bot("3.0", [text("✅ Approved", true), text(" by "), user(bob)]);
  for (const words of ["Everything is decided. The agent continues.", "Everything is decided. ops is working."]) assert.equal(after(says("2.0", words), card), "work, decided", words);
  assert.equal(after(says("2.0", "Everything is decided. The result is below."), card, says("4.0", "<@UALICE> ops: Done.")), "read");
  for (const words of ["ops: is working.", "ops: The mail server is working.", "⚠ The agent couldn't finish."]) assert.equal(after(says("2.0", words)), "read", words);
});

test("the card is spoken of only if one was decided", () => {
  const outcome = (...lines: Json[][]) => {
    const next = told(alice, ask(alice), bot("2.0", ...lines), bot("3.0", [text("The answer: Approved")]));
    return next.kind === "read" && next.outcome;
  };
  assert.equal(outcome(), "none");
  assert.equal(outcome([text("✅ Approved", true), text(" by "), user(bob)]), "decided");
  assert.equal(outcome([text("⛔ Denied", true)]), "decided");
  assert.equal(outcome([text("⌛ Expired", true)]), "undecided");
  assert.equal(outcome([text("↩ Superseded", true)]), "undecided");
});
