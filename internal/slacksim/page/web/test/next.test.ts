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
const signers = (...args: Parameters<typeof told>) => {
  const next = told(...args);
  assert.equal(next.kind, "sign");
  return next.kind === "sign" ? [next.groups.join(), next.signers.map((p) => p.id).join()] : [];
};

test("a refusal is told to the person who was refused, and to nobody else", () => {
  const refusal: Message = { channel: "C", ts: "2.0", user: "UBOT", bot_id: "B", is_ephemeral: true, text: "no" };
  const next = told(gita, ask(gita), refusal);
  assert.equal(next.kind === "refused" && next.instead?.id, "UALICE");
  assert.equal(told(bob, ask(gita)).kind, "work");
  assert.equal(told(alice, { ...refusal, ts: "0.5" }, ask(alice)).kind, "work", "an older refusal is of something else");
});

test("who may sign is read from the line that counts signatures", () => {
  const quorum = (...from: Json[]) => [text("sre", true), text(": 0 of 1 signature"), text(", from "), ...from];
  assert.deepEqual(signers(dave, ask(alice), asks(bot("2.0", [user(dave), text(" asked")], quorum(sre)))), ["sre", "UALICE,UBOB"]);
  assert.deepEqual(signers(dave, ask(alice), asks(bot("2.0", quorum(sre)), "<@UALICE> may not sign")), ["sre", "UBOB"]);
  assert.deepEqual(signers(alice, ask(alice), asks(bot("2.0", quorum(user(dave))))), ["", "UDAVE"]);
  assert.deepEqual(signers(alice, ask(alice), asks(bot("2.0", [text("sre", true), text(": 1 of 2 signatures"), text(" by "), user(bob), text(", from "), sre]))), ["sre", "UALICE"], "who signed has signed");
  assert.deepEqual(signers(bob, ask(alice), asks(bot("2.0", [text("Please look, "), user(bob)], quorum(user(dave))))), ["", "UDAVE"], "to be mentioned is not to be named");
});

test("who is asked first is told first, on a card with quorums in order", () => {
  const quorum = (name: string, so: string, after: string, ...from: Json[]) => [text(name, true), text(`: ${so} of 1 signature`), ...from, ...(after ? [text(", " + after)] : [])];
  const from = (...who: Json[]) => [text(", from "), ...who];
  const next = (...lines: Json[][]) => {
    const n = told(gita, ask(alice), asks(bot("2.0", ...lines)));
    return n.kind === "sign" ? [n.groups.join(), n.signers.map((p) => p.id).join(), n.later.map((p) => p.id).join()] : [];
  };
  const last = quorum("security", "0", "asked once operations has signed", ...from(user(dave)));
  assert.deepEqual(next(quorum("operations", "0", "", ...from(sre)), last), ["sre", "UALICE,UBOB", "UDAVE"]);
  const signed = [text("operations", true), text(": 1 of 1 signature"), text(" by "), user(bob), text(", complete")];
  assert.deepEqual(next(signed, quorum("security", "0", "", ...from(user(dave), sre))), ["sre", "UALICE,UDAVE", ""], "who signed for one quorum does not sign for another");
  assert.deepEqual(next(quorum("operations", "0", "", ...from(sre)), [user(bob), text(" denied it:")]), ["sre", "UALICE", ""]);
});

test("alternatives and editors are read too", () => {
  const any: Message = bot("2.0", [text("Any of:", true)]);
  any.blocks![0]!.elements.push({ type: "rich_text_list", elements: [{ type: "rich_text_section", elements: [text("leads", true), text(": 0 of 2 signatures"), text(", from "), user(dave), text("; together with "), text("sre", true), text(": 0 of 1 signature"), text(", from "), sre] }] });
  assert.deepEqual(signers(gita, ask(alice), asks(any, "One denial stops it · <@UALICE> may not sign · <@UBOB>, <@UDAVE> changed it and may not sign · digest `x`")), ["sre", ""]);
  assert.deepEqual(signers(gita, ask(alice), asks(any, "<@UALICE> may not sign")), ["sre", "UBOB,UDAVE"]);
});

test("a list of many is no card that names who signs", () => {
  assert.equal(told(alice, ask(alice), asks(bot("2.0", [text("Tools: ", true)]))).kind, "many");
});

test("the card is spoken of only if one was decided", () => {
  const outcome = (...lines: Json[][]) => {
    const next = told(alice, ask(alice), bot("2.0", ...lines), bot("3.0", [text("The answer: Approved")]));
    return next.kind === "read" && next.outcome;
  };
  assert.equal(outcome(), "none");
  assert.equal(outcome([text("✅ Approved", true), text(" by "), user(bob)]), "signed");
  assert.equal(outcome([text("⛔ Denied", true)]), "signed");
  assert.equal(outcome([text("⌛ Expired", true)]), "unsigned");
  assert.equal(outcome([text("↩ Superseded", true)]), "unsigned");
});
