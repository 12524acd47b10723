// The chat of the demo beside its Slack, in a real browser: one request, two faces.
// It is started by story_test.go, which says where everything is:
//
//	PAGE     the address of the demo
//	FOLDER   the folder of files that the demo's agent works on
//	MODULES  a file of the project whose node_modules has playwright-core
//	BROWSER  the address of the browser, see browser.mjs
//	SHOTS    where screenshots go; none are made if it is empty
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { connect, createServer } from "node:net";
import { join } from "node:path";

const { PAGE, FOLDER, MODULES, BROWSER, SHOTS } = process.env;
const { chromium } = createRequire(MODULES)("playwright-core");
const browser = await chromium.connect(BROWSER);
const trouble = [];

// The chat reaches the demo through a network that can be cut off.
const connections = new Set();
let down = false;
const network = createServer((from) => {
  if (down) return from.destroy();
  const to = connect(new URL(PAGE).port, "127.0.0.1");
  for (const [one, other] of [[from, to], [to, from]]) {
    connections.add(one);
    one.pipe(other);
    one.on("error", () => {}).on("close", () => { connections.delete(one); other.destroy(); });
  }
});
await new Promise((listening) => network.listen(0, "127.0.0.1", listening));
const CHAT = `http://127.0.0.1:${network.address().port}`;

async function screen(origin, path) {
  const page = await (await browser.newContext({ viewport: { width: 1000, height: 860 } })).newPage();
  page.setDefaultTimeout(60_000); // work whose wake-up was lost is found within 25 s
  page.on("pageerror", (e) => trouble.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(origin + "/") && !r.url().startsWith("data:")) trouble.push("asked another host: " + r.url()); });
  await page.addInitScript(oneByOne);
  await page.goto(origin + path);
  return page;
}

/** oneByOne lets the page show each event of a stream by itself, however many come together: a browser that is late would show them all at once. The texts that came are in `came`. */
const oneByOne = () => {
  const fetched = window.fetch;
  window.came = [];
  window.fetch = async (...args) => {
    const answer = await fetched(...args);
    if (!answer.headers.get("Content-Type")?.startsWith("text/event-stream")) return answer;
    let rest = "";
    const events = new TransformStream({
      async transform(text, out) {
        const all = (rest + text).split("\n\n");
        rest = all.pop();
        for (const event of all) {
          out.enqueue(event + "\n\n");
          const { type, delta } = event.startsWith("data: {") ? JSON.parse(event.slice(6)) : {};
          if (type !== "text-delta") continue;
          window.came.push(delta);
          for (let i = 0; i < 500 && !document.body.textContent.includes(delta); i++) await new Promise((next) => setTimeout(next, 10));
        }
      },
      flush: (out) => out.enqueue(rest),
    });
    return new Response(answer.body.pipeThrough(new TextDecoderStream()).pipeThrough(events).pipeThrough(new TextEncoderStream()), answer);
  };
};

const shot = (page, name) => SHOTS && page.screenshot({ path: join(SHOTS, name + ".png") });

try {
  const chat = await screen(CHAT, "/chat/"), slack = await screen(PAGE, "/");
  const call = (name) => chat.getByRole("region", { name }).filter({ hasText: name });
  const first = call("2023-q1-sales.txt").last(), second = call("2023-q2-sales.txt").last();

  // What does not arrive is no obstacle to what comes later.
  down = true;
  for (const c of connections) c.destroy();
  await chat.getByRole("textbox", { name: "Message" }).fill("is anybody there?");
  await chat.getByRole("button", { name: "Send" }).click();
  await chat.getByRole("alert").getByText("The connection was lost.").waitFor();
  down = false;
  await chat.getByRole("alert").getByText("The server does not have your message yet.").waitFor();

  // The same chat in another tab, before anything was said in it.
  const beside = await chat.context().newPage();
  await beside.goto(CHAT + "/chat/");
  await beside.getByText("Ask the agent for something.").waitFor();

  // What the agent says is shown as it comes: in pieces, or at once from a machine that is
  // late. That the server sends it as the model writes it is a rule of package uistream.
  const says = "I'll look at what reports there are.";
  await chat.evaluate(() => {
    window.seen = new Set();
    new MutationObserver(() => window.seen.add(document.querySelector("article.assistant p")?.textContent ?? "")).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  await chat.getByRole("textbox", { name: "Message" }).fill("clean up the old reports");
  await chat.getByRole("button", { name: "Send" }).click();
  await first.getByText("Waiting for approval · 0 of 1 approval", { exact: true }).waitFor();
  await second.getByRole("button", { name: "Approve" }).waitFor();
  await shot(chat, "chat-asked");

  // Whoever comes back to the other tab sees what was said meanwhile.
  await beside.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await beside.getByRole("button", { name: "Approve" }).nth(1).waitFor();
  await beside.close();
  const { seen, came } = await chat.evaluate(() => ({ seen: [...window.seen], came: window.came }));
  const grown = came.map((_, i) => came.slice(0, i + 1).join("")).filter((text) => says.startsWith(text));
  assert.equal(grown.at(-1), says, `the text came as ${JSON.stringify(came)}`);
  for (const text of grown) assert.ok(seen.includes(text), `${JSON.stringify(text)} was not shown, but ${JSON.stringify(seen)}`);
  await chat.setViewportSize({ width: 390, height: 844 });
  await chat.emulateMedia({ colorScheme: "dark" });
  assert.equal(await chat.evaluate(() => document.documentElement.scrollWidth), 390, "nothing is cut off on a phone");
  await chat.setViewportSize({ width: 320, height: 640 });
  assert.equal(await chat.evaluate(() => document.documentElement.scrollWidth), 320, "nothing is cut off on a small phone");
  await chat.setViewportSize({ width: 390, height: 844 });
  const button = await second.getByRole("button", { name: "Approve" }).boundingBox();
  assert.ok(button.height >= 44 && button.width >= 44, "a finger hits the buttons");
  await shot(chat, "chat-phone-dark");
  await chat.setViewportSize({ width: 1000, height: 860 });
  await chat.emulateMedia({ colorScheme: "light" });

  // A decision that could not be sent is not told in words of the browser.
  await chat.route(/\/approvals\//, (route) => route.abort(), { times: 1 });
  await second.getByRole("button", { name: "Deny" }).click();
  await second.getByRole("alert").getByText("it is not known whether your decision counts").waitFor();

  // The chat goes on by itself if its connection is lost.
  const resumed = chat.waitForResponse((r) => r.url().endsWith("/stream"));
  for (const c of connections) c.destroy();
  assert.equal((await resumed).status(), 200);
  await chat.getByRole("alert").filter({ hasText: "This page tries again." }).waitFor({ state: "detached" });
  await second.getByRole("button", { name: "Approve" }).waitFor();

  // Bob approves the first in Slack, and the chat shows it by itself: it has it from the
  // stream that is open.
  await slack.getByRole("radio", { name: "Bob Brandt" }).click();
  await slack.getByRole("radio", { name: "Bob Brandt", checked: true }).waitFor();
  await slack.getByText("Bob can approve it").waitFor();
  await slack.getByText("Chat on the web:").waitFor();
  await slack.getByRole("button", { name: "Open the thread" }).click();
  const card = slack.getByRole("complementary", { name: "Thread" }).locator(".blocks.kit").filter({ hasText: "2023-q1-sales.txt" }).first();
  const asked = [];
  chat.on("request", (r) => asked.push(r.url()));
  await card.getByRole("button", { name: /^Approve/ }).first().click();
  await slack.getByRole("dialog", { name: /^Approve this call/ }).getByRole("button", { name: "Approve" }).click();
  await first.getByText(/^Approved/).waitFor();
  assert.deepEqual(asked, [], "the chat had to ask");
  assert.equal(await chat.getByText(says).count(), 1, "what was there when the connection was lost is there once");
  assert.ok(existsSync(join(FOLDER, "reports", "2023-q1-sales.txt")), "nothing runs before all are decided");

  // Alice, who asked, cannot decide the second; Bob denies it in the chat.
  await chat.getByRole("combobox", { name: "Decide as" }).selectOption({ label: "alice" });
  const focused = () => second.evaluate((e) => e === document.activeElement);
  await second.getByRole("button", { name: "Approve" }).press("Enter");
  await second.getByRole("alert").getByText("Nothing changed").waitFor();
  assert.ok(await focused(), "who works with the keyboard goes on from the call");
  await chat.getByRole("combobox", { name: "Decide as" }).selectOption({ label: "bob" });
  await second.getByRole("textbox", { name: "Reason" }).fill("Legal still <b>needs</b> it");
  await second.getByRole("button", { name: "Deny" }).press("Enter");
  await second.getByText(/denied by bob: Legal still <b>needs<\/b> it/).waitFor();
  assert.ok(await focused(), "also when its buttons are gone");
  await chat.getByText(/2023-q1-sales\.txt: deleted/).waitFor();
  await slack.getByText("Denied by").first().waitFor();
  assert.ok(!existsSync(join(FOLDER, "reports", "2023-q1-sales.txt")));
  assert.ok(existsSync(join(FOLDER, "reports", "2023-q2-sales.txt")));
  await shot(chat, "chat-decided");
  await shot(slack, "slack-decided");

  // The chat is there again after a reload, once.
  await chat.reload();
  await chat.getByText(/2023-q1-sales\.txt: deleted/).waitFor();
  assert.equal(await chat.getByText(says).count(), 1);
  assert.equal(await chat.getByRole("button", { name: "Approve" }).count(), 0);

  // So it is if the history was read while the message was being made, and it is over before the page asks for its stream.
  await chat.route(/\/api\/chat\/[^/]+$/, async (route) => {
    const answer = await route.fetch(), before = await answer.json();
    await route.fulfill({ response: answer, json: { ...before, messages: before.messages.slice(0, 1) } });
  }, { times: 1 });
  await chat.reload();
  await chat.getByText(/2023-q1-sales\.txt: deleted/).waitFor();
  assert.equal(await chat.getByText(says).count(), 1);
  assert.deepEqual(trouble, []);
} catch (e) {
  for (const context of browser.contexts()) for (const page of context.pages()) {
    console.error(`${page.url()} shows:\n${await page.innerText("body", { timeout: 5_000 }).catch(String)}\n`);
  }
  console.error("trouble: " + JSON.stringify(trouble));
  throw e;
} finally {
  await browser.close();
  network.close();
}
