// The demo's story, in a real browser, driven by the page alone: what a
// person types, presses and reads. It is started by story_test.go, which
// says where everything is:
//
//	PAGE     the address of the page
//	FOLDER   the folder of files that the demo's agent works on
//	CARDS    a folder of cards that the bot draws
//	STORY    which of the stories below
//	MODULES  a file of the project whose node_modules has playwright-core
//	BROWSER  the address of the browser, see browser.mjs
//	SHOTS    where screenshots go; none are made if it is empty
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { PAGE, FOLDER, CARDS, MODULES, BROWSER, SHOTS, STORY } = process.env;
const { chromium } = createRequire(MODULES)("playwright-core");

const browser = await chromium.connect(BROWSER);
const trouble = [];

/** screen opens the page as a person does who has nothing open yet. */
async function screen(options = {}, path = "/") {
  const context = await browser.newContext({ viewport: { width: 1360, height: 860 }, timezoneId: "Europe/Berlin", locale: "en-GB", ...options });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error") trouble.push(m.text()); });
  page.on("pageerror", (e) => trouble.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(PAGE) && !r.url().startsWith("data:")) trouble.push("asked another host: " + r.url()); });
  await page.goto(PAGE + path);
  await page.getByRole("radiogroup", { name: "Act as" }).waitFor();
  return page;
}

/** close closes the page, when no answer to it is being changed. */
async function close(page) {
  await page.unrouteAll({ behavior: "wait" });
  await page.context().close();
}

async function shot(page, name) {
  if (!SHOTS) return;
  mkdirSync(SHOTS, { recursive: true });
  await page.waitForTimeout(250); // let transitions end: only pictures wait for time
  await page.screenshot({ path: join(SHOTS, name + ".png") });
}

/** tabs says which tabs the app has in this workspace. */
async function tabs() {
  const { home = true, messages = true } = await (await fetch(PAGE + "/sim/state")).json();
  return { home, messages };
}

/** without lets a page see a workspace in which the app has no tabs. */
const without = (page) => page.route("**/sim/state", async (route) => {
  const answer = await route.fetch();
  await route.fulfill({ response: answer, json: { ...await answer.json(), home: false, messages: false } });
});

const file = (name) => join(FOLDER, "reports", name);
async function act(page, name) {
  await page.getByRole("radio", { name }).click();
  await page.getByRole("radio", { name, checked: true }).waitFor();
}
const thread = (page) => page.getByRole("complementary", { name: "Thread" });
const guide = (page) => page.getByRole("complementary", { name: "What to do next" });
const card = (page) => thread(page).locator(".blocks.kit").filter({ hasText: "2023-q1-sales.txt" }).first();

/** sure goes through the dialog that stands before a signature that may destroy something. */
const sure = (page) => page.getByRole("dialog", { name: /^Approve this call/ }).getByRole("button", { name: "Approve" }).click();

/** follow keeps everything that the guide says, with what the thread shows meanwhile. */
const follow = (page) => page.evaluate(() => {
  window.followed = [];
  new MutationObserver(() => {
    const guide = document.querySelector(".guide p")?.textContent;
    if (guide && guide !== window.followed.at(-1)?.guide) window.followed.push({ guide, thread: document.querySelector(".thread")?.textContent ?? "" });
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
});

/** seen waits until all of an element is in the part of its list that the window shows. */
const seen = async (page, element) => page.waitForFunction((node) => {
  const [own, list] = [node, node.closest(".scroller")].map((n) => n.getBoundingClientRect());
  return own.top >= list.top - 1 && own.bottom <= list.bottom + 1;
}, await element.elementHandle());

/** gone waits until a file is no longer there. */
async function gone(name) {
  for (let n = 0; n < 1200 && existsSync(file(name)); n++) await new Promise((r) => setTimeout(r, 50));
  assert.ok(!existsSync(file(name)), name + " is still there");
}

async function withTheMouse() {
  const page = await screen();
  await page.getByText("An agent works here").waitFor();
  await follow(page);
  await shot(page, "01-welcome");

  // Alice writes the mention, completing the name.
  const composer = page.getByRole("textbox", { name: "Message #ops" });
  await composer.click();
  await page.keyboard.type("/");
  await page.getByRole("option", { name: "/countersign" }).waitFor();
  await page.keyboard.press("Backspace");
  await page.keyboard.type("@cou");
  const offer = page.getByRole("option", { name: /Countersign/ });
  await offer.waitFor();
  await shot(page, "02-completion");
  await page.keyboard.press("Tab");
  await page.keyboard.type("clean up the old reports");
  assert.equal(await composer.inputValue(), "@countersign clean up the old reports");
  await page.keyboard.press("Enter");

  // The card is in the thread, and says who asks and what would be deleted.
  await guide(page).getByText("Now act as Bob").waitFor();
  await shot(page, "03-asked");
  await guide(page).getByRole("button", { name: "Open the thread" }).click();
  for (const words of ["Alice Amari", "2023-q1-sales.txt", "2023-q2-sales.txt", "delete_file", "@sre"]) await card(page).getByText(words).first().waitFor();
  await shot(page, "04-card");

  // Dave cannot approve: only he sees the refusal, which comes into view below a
  // card that is longer than the window.
  await page.setViewportSize({ width: 1360, height: 600 });
  await act(page, "Dave Duarte");
  await card(page).getByRole("button", { name: /^Approve/ }).first().click();
  await sure(page);
  const refusal = thread(page).locator(".ephemeral");
  await refusal.getByText("Only visible to you").waitFor();
  assert.match(await refusal.innerText(), /You can't approve this. Nothing changed. @sre can approve it./);
  await seen(page, refusal);
  await shot(page, "05-refusal");
  await act(page, "Bob Brandt");
  await card(page).waitFor();
  assert.equal(await thread(page).getByText("Only visible to you").count(), 0, "Bob sees what only Dave was told");
  assert.ok(existsSync(file("2023-q1-sales.txt")) && existsSync(file("2023-q2-sales.txt")));

  // Bob approves the first and opens the form to deny the second.
  const approves = card(page).getByRole("button", { name: /^Approve/ });
  assert.equal(await approves.count(), 2);
  await approves.first().click();
  await sure(page);
  await card(page).getByText("Approved by @Bob Brandt").waitFor();
  assert.ok(existsSync(file("2023-q1-sales.txt")), "nothing runs before all are decided");
  await card(page).getByRole("button", { name: /^Deny/ }).click();
  const modal = page.getByRole("dialog", { name: "Deny this call" });
  await modal.waitFor();
  const reason = modal.getByRole("textbox", { name: /Why not/ });
  await shot(page, "06-modal");

  // Too long is refused beside the input, and what was written stays.
  const limit = 3000;
  await reason.fill("x".repeat(limit));
  await modal.getByRole("button", { name: "Deny", exact: true }).click();
  await modal.getByRole("alert").getByText(/at most \d+ characters/).waitFor();
  assert.equal((await reason.inputValue()).length, limit);
  assert.equal(await reason.getAttribute("aria-invalid"), "true");
  await shot(page, "07-modal-error");
  await reason.fill("Legal still needs it <!channel> &lt;b&gt;*now*");
  await thread(page).locator(".scroller").evaluate((list) => { list.scrollTop = 0; });
  await modal.getByRole("button", { name: "Deny", exact: true }).click();
  await modal.waitFor({ state: "detached" });

  // Bob has scrolled up: he is told of the answer, and it comes when he asks for it.
  const answer = thread(page).getByText(/2023-q1-sales\.txt: deleted/);
  const arrived = thread(page).getByRole("button", { name: "New message" });
  await arrived.waitFor();
  await shot(page, "08-new-message");
  assert.equal(await thread(page).locator(".scroller").evaluate((list) => list.scrollTop), 0, "the thread moved under a person who reads");
  await arrived.click();
  await seen(page, answer);
  await arrived.waitFor({ state: "detached" });
  await page.setViewportSize({ width: 1360, height: 860 });

  // The answer, the decided card and the files.
  await gone("2023-q1-sales.txt");
  assert.ok(existsSync(file("2023-q2-sales.txt")) && existsSync(file("2026-q1-sales.txt")));
  await card(page).getByRole("button", { name: /^(Approve|Deny)/ }).first().waitFor({ state: "detached" });
  const decided = await card(page).innerText();
  for (const words of [/Approved/, /Denied/, /Bob Brandt/, /Legal still needs it <!channel> &lt;b&gt;\*now\*/, /today at/]) assert.match(decided, words);
  assert.equal(await thread(page).locator(".mention", { hasText: "@channel" }).count(), 0, "nothing pings by injection");
  await shot(page, "08-decided");

  // The guide spoke of an answer only once there was one.
  await guide(page).getByText("Done. The answer is in the thread").waitFor();
  for (const { guide, thread } of await page.evaluate(() => window.followed)) {
    assert.ok(!/^(Done|The agent answered)/.test(guide) || /2023-q1-sales\.txt: deleted/.test(thread), `the guide said too early: ${guide}`);
  }

  // The inspector: what happened in words, by keyboard to the batch in
  // Redis, and to the signed click and the call that drew the card.
  await page.getByRole("button", { name: "Inspector" }).click();
  const inspector = page.getByRole("complementary", { name: "Inspector" });
  const told = inspector.getByRole("region", { name: "Timeline" });
  for (const words of ["Alice asked, and a run began", "Run ended with DeferredToolRequests: 2 calls", "Bob approved delete_file", "Bob denied delete_file", "A new run resumed with the answers", "Run completed"]) await told.getByText(words).waitFor();
  assert.match(await told.getByRole("listitem").filter({ hasText: "Bob approved delete_file" }).innerText(), /reports\/2023-q1-sales\.txt/);
  await shot(page, "09-timeline");
  await inspector.getByRole("tab", { name: "Timeline", selected: true }).focus();
  await page.keyboard.press("ArrowRight");
  await inspector.getByRole("tab", { name: "Redis", selected: true }).waitFor();
  await inspector.getByRole("region", { name: "Redis" }).locator("summary").filter({ hasText: /^batch/ }).click();
  const batch = await inspector.getByLabel(/Value of countersign:.*:batch:/).innerText();
  for (const words of [/"status": "approved"/, /"status": "denied"/, /"user": "U0BOB"/]) assert.match(batch, words);
  await shot(page, "09-redis");
  await page.emulateMedia({ colorScheme: "dark" });
  await shot(page, "09-redis-dark");
  await inspector.getByRole("tab", { name: "Timeline" }).click();
  await shot(page, "09-timeline-dark");
  await page.emulateMedia({ colorScheme: "light" });
  await inspector.getByRole("tab", { name: "Timeline" }).press("End");
  await inspector.getByRole("tab", { name: "Requests", selected: true }).waitFor();
  await inspector.getByText("chat.postMessage").first().waitFor();
  await inspector.getByRole("button", { name: "Signed requests" }).click();
  await inspector.getByText("block_actions").last().click();
  await inspector.getByText(/X-Slack-Signature/i).last().waitFor();
  await shot(page, "09-inspector");
  await page.getByRole("button", { name: "Inspector" }).click();

  // Home, and two people side by side.
  if ((await tabs()).home) {
    await page.getByRole("button", { name: "Countersign home" }).click();
    await page.getByRole("tab", { name: "Home", selected: true }).waitFor();
    await shot(page, "10-home");
    await page.getByRole("button", { name: "ops" }).click();
  }
  await page.getByRole("button", { name: "Two people side by side" }).click();
  const seats = [page.frameLocator("iframe").first(), page.frameLocator("iframe").last()];
  await seats[0].getByRole("radio", { name: "Bob Brandt", checked: true }).waitFor();
  await seats[1].getByRole("radio", { name: "Carol Chen", checked: true }).waitFor();
  await seats[0].getByRole("textbox", { name: "Message #ops" }).fill("Carol, did you see this?");
  await seats[0].getByRole("button", { name: "Send" }).click();
  await seats[1].getByText("Carol, did you see this?").first().waitFor();
  await shot(page, "11-side-by-side");
  await close(page);
}

/** tabTo presses Tab until something has the focus. */
async function tabTo(page, locator) {
  const wanted = await locator.elementHandle();
  for (let n = 0; n < 80; n++) {
    if (await wanted.evaluate((node) => node === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail("the keyboard does not reach it: " + locator);
}

async function withTheKeyboard() {
  const page = await screen();
  await tabTo(page, page.getByRole("button", { name: /clean up the old reports/ }));
  await page.keyboard.press("Enter");
  await tabTo(page, guide(page).getByRole("button", { name: "Open the thread" }));
  await page.keyboard.press("Enter");
  await card(page).waitFor();

  // To Bob by arrow key, then approve.
  await tabTo(page, page.getByRole("radio", { name: "Alice Amari" }));
  await page.keyboard.press("ArrowRight");
  await page.getByRole("radio", { name: "Bob Brandt", checked: true }).waitFor();
  await tabTo(page, card(page).getByRole("button", { name: /^Approve/ }).first());
  await page.keyboard.press("Enter");
  await tabTo(page, page.getByRole("dialog", { name: /^Approve this call/ }).getByRole("button", { name: "Approve" }));
  await page.keyboard.press("Enter");
  await card(page).getByText("Approved by @Bob Brandt").waitFor();

  // The form takes the focus, keeps it, and closes on Escape without a decision.
  const deny = card(page).getByRole("button", { name: /^Deny/ });
  await tabTo(page, deny);
  await page.keyboard.press("Enter");
  const modal = page.getByRole("dialog", { name: "Deny this call" });
  await modal.waitFor();
  const reason = modal.getByRole("textbox", { name: /Why not/ });
  assert.ok(await reason.evaluate((node) => node === document.activeElement), "the form does not put the focus into its first input");
  await page.keyboard.type("Kept on purpose");
  for (let n = 0; n < 12; n++) {
    await page.keyboard.press("Tab");
    assert.ok(await page.evaluate(() => document.activeElement === document.body || !!document.activeElement.closest("dialog")), "the focus left the form");
  }
  await page.keyboard.press("Escape");
  await modal.waitFor({ state: "detached" });

  // A form does not outlive the browser that showed it.
  await tabTo(page, deny);
  await page.keyboard.press("Enter");
  await modal.waitFor();
  await page.reload();
  await card(page).waitFor();
  assert.equal(await modal.count(), 0, "the form is still open after a reload");
  await tabTo(page, deny);
  await page.keyboard.press("Enter");
  await modal.waitFor();
  assert.equal(await reason.inputValue(), "", "a form that was closed starts again");
  await page.keyboard.type("Kept on purpose");
  await tabTo(page, modal.getByRole("button", { name: "Deny", exact: true }));
  await page.keyboard.press("Enter");
  await thread(page).getByText(/2023-q1-sales\.txt: deleted/).waitFor();
  await gone("2023-q1-sales.txt");
  assert.ok(existsSync(file("2023-q2-sales.txt")));
  assert.match(await page.getByRole("log").innerText(), /Countersign, in #ops/, "new messages are read out");
  await close(page);
}

/** narrow is the smallest phone, and a window of 1280 px that is enlarged to 400 %. */
const narrow = { width: 320, height: 640 };

/** fits says that nothing makes the page scroll sideways. */
async function fits(page) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `the page is ${wide} px too wide`);
}

/** roomy says that what stands above the messages leaves them three quarters of the screen. */
async function roomy(page, list) {
  const { y } = await list.boundingBox();
  assert.ok(y <= page.viewportSize().height / 4, `the messages begin at ${y} px`);
}

async function onAPhoneInTheDark() {
  const page = await screen({ viewport: { width: 390, height: 844 }, colorScheme: "dark", hasTouch: true, isMobile: true });
  await fits(page);
  await shot(page, "20-phone-welcome");
  await page.setViewportSize(narrow);
  await page.reload();
  await page.getByRole("button", { name: /clean up the old reports/ }).waitFor();
  await fits(page);
  await page.waitForFunction(() => document.querySelector(".welcome h2").getBoundingClientRect().top > document.querySelector(".bar").getBoundingClientRect().bottom - 1, null, { timeout: 5000 }); // a newcomer reads from the beginning
  for (const name of ["Gita Guest", "Inspector"]) await page.getByRole(name === "Inspector" ? "button" : "radio", { name }).click({ trial: true });
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByRole("button", { name: /clean up the old reports/ }).tap();
  await guide(page).getByRole("button", { name: "Act as Bob" }).tap();
  await page.getByRole("radio", { name: "Bob Brandt", checked: true }).waitFor();
  await shot(page, "21-phone-asked");
  await roomy(page, page.getByRole("region", { name: "Messages in #ops" }));
  await guide(page).getByRole("button", { name: "Open the thread" }).tap();
  await card(page).waitFor();
  await fits(page);
  await shot(page, "22-phone-card");
  await roomy(page, page.getByRole("region", { name: "Thread" }));
  await card(page).getByRole("button", { name: /^Deny/ }).first().tap();
  const modal = page.getByRole("dialog", { name: "Deny this call" });
  await modal.waitFor();
  await shot(page, "23-phone-modal");
  await modal.getByRole("textbox", { name: /Why not/ }).fill("Not from my phone");
  await modal.getByRole("button", { name: "Deny", exact: true }).tap();
  await card(page).getByText("Not from my phone").waitFor();
  await card(page).getByRole("button", { name: /^Approve/ }).last().tap();
  await sure(page);
  await thread(page).getByText(/2023-q2-sales\.txt: deleted/).waitFor();
  await gone("2023-q2-sales.txt");
  assert.ok(existsSync(file("2023-q1-sales.txt")));
  await fits(page);
  await shot(page, "24-phone-decided");
  await page.getByRole("button", { name: "Close thread" }).tap();
  await page.getByRole("button", { name: "Channels", exact: true }).tap();
  await page.getByRole("navigation").getByRole("button", { name: "general" }).waitFor();
  await shot(page, "25-phone-channels");
  await page.getByRole("navigation").getByRole("button", { name: "general" }).tap();
  await page.getByRole("textbox", { name: "Message #general" }).waitFor();

  // The same in the light, by the switch instead of the system.
  const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.getByRole("button", { name: /^Colors/ }).tap();
  await page.getByRole("button", { name: "Colors: Light", exact: true }).waitFor();
  assert.notEqual(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), dark);
  await close(page);
}

/** everywhere takes a picture of a wide screen and of a phone, in both colors. */
async function everywhere(page, name) {
  if (!SHOTS) return;
  await shot(page, name);
  await page.emulateMedia({ colorScheme: "dark" });
  await shot(page, name + "-dark");
  const size = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 844 });
  await shot(page, name + "-phone-dark");
  await page.emulateMedia({ colorScheme: "light" });
  await shot(page, name + "-phone");
  await page.setViewportSize(size);
}

/** aloud writes down what a screen reader says of the app's messages, in the order in which they were sent: the texts, without blocks. */
async function aloud(name) {
  if (!SHOTS) return;
  const { log } = await (await fetch(PAGE + "/sim/log")).json();
  const said = log.filter((e) => /^chat\.(postMessage|update|postEphemeral)$/.test(e.kind)).map((e) => {
    const sent = e.request.startsWith("{") ? JSON.parse(e.request) : Object.fromEntries(new URLSearchParams(e.request));
    return `${e.kind} ${sent.channel}${sent.user ? " to " + sent.user : ""}: ${sent.text}`;
  });
  writeFileSync(join(SHOTS, name + ".txt"), said.join("\n") + "\n");
}

/** whole takes a picture of one message from its beginning to its end, in both colors. */
async function whole(page, of, name) {
  if (!SHOTS) return;
  const size = page.viewportSize();
  await page.setViewportSize({ width: size.width, height: 3000 }); // so that nothing covers it
  for (const scheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.waitForTimeout(250); // as in shot
    await of.screenshot({ path: join(SHOTS, name + (scheme === "dark" ? "-dark" : "") + ".png") });
  }
  await page.setViewportSize(size);
}

/** pictures are those of the README and the docs: one card alone, in light and in dark. */
async function pictures(page, of, name = "card") {
  if (!SHOTS) return;
  const size = page.viewportSize();
  await page.setViewportSize({ width: 1360, height: 1200 }); // so that nothing covers it
  for (const scheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.waitForTimeout(250); // as in shot
    await of.screenshot({ path: join(SHOTS, name + "-" + scheme + ".png") });
  }
  await page.setViewportSize(size);
}

async function aRefund() {
  const page = await screen();
  const side = page.getByRole("navigation", { name: "Channels and apps" });
  const refund = thread(page).locator(".blocks.kit").filter({ hasText: "issue_refund" }).first();
  const onCard = (words) => refund.getByText(words).first().waitFor();
  const press = (name) => refund.getByRole("button", { name }).click();
  const asked = (words) => guide(page).getByText(words).waitFor();
  const refunds = join(FOLDER, "refunds");

  // Alice asks. The card says what, why, and who must approve in which order.
  await page.getByRole("button", { name: /refund the 48 euros of order 1042/ }).click();
  await asked("a person in @sre and in @finance must approve. Now act as Bob");
  await guide(page).getByRole("button", { name: "Open the thread" }).click();
  for (const words of ["cents: 48000", "Money leaves the company", "Alice Amari can't approve", "One denial by finance stops it."]) await onCard(words);
  for (const quorum of [/operations: 0 of 1 approval, from @sre/, /finance: 0 of 1 approval, from @finance/, /security: 0 of 1 approval, from @security, asked once operations and finance have approved/]) assert.match(await refund.innerText(), quorum);
  await everywhere(page, "70-three-groups");
  await pictures(page, refund);

  // Bob approves, takes it back, and approves again.
  await act(page, "Bob Brandt");
  await side.getByRole("button", { name: /^Countersign, unread/ }).waitFor();
  const approve = async () => {
    await press(/^Approve/);
    const sure = page.getByRole("dialog", { name: /^Approve this call/ });
    await sure.getByRole("button", { name: "Approve" }).click();
  };
  await asked("Bob can approve it, correct it with Edit…, or deny it and say why");
  await approve();
  await onCard(/operations: 1 of 1 approval by @Bob Brandt, complete/);
  await press(/^Take back/);
  await onCard(/operations: 0 of 1 approval/);
  await approve();
  await onCard(/operations: 1 of 1 approval by @Bob Brandt, complete/);
  await asked("a person in @finance must approve. Now act as Frank");

  // Frank corrects the amount. What is no amount is refused at its field, and
  // what was written stays.
  await act(page, "Frank Fischer");
  await press(/^Edit/);
  const form = page.getByRole("dialog", { name: "Edit arguments" });
  await form.getByText(/the decisions of @Bob Brandt no longer count/).waitFor();
  const cents = form.getByLabel("cents", { exact: true });
  assert.equal(await cents.inputValue(), "48000");
  const change = form.getByRole("button", { name: "Save changes" });
  await cents.fill("forty-eight");
  await change.click();
  await form.getByRole("alert").waitFor();
  assert.equal(await cents.getAttribute("aria-invalid"), "true");
  assert.equal(await cents.inputValue(), "forty-eight");
  assert.match(await form.getByRole("alert").innerText(), /number/);
  await everywhere(page, "71-edit-error");
  await cents.fill("4800");
  await form.getByLabel("Approve as changed").check();
  await change.click();
  const done = page.getByRole("dialog", { name: "Arguments changed" });
  for (const words of ["cents: 48000 → 4800", "Your approval of the new arguments counts.", /operations: 0 of 1 approval, from @sre/]) await done.getByText(words).first().waitFor();
  await shot(page, "71-edit-done");
  await done.getByRole("button", { name: "Close" }).last().click();
  await done.waitFor({ state: "detached" });

  // The card says what was, what is, and whose approval it cleared; Bob gets
  // a message about it.
  await onCard(/48000 → 4800/);
  const changed = await refund.innerText();
  for (const words of [/cents: 4800$/m, /Frank Fischer/, /Bob Brandt.*no longer counts/s, /operations: 0 of 1 approval/, /finance: 1 of 1 approval by @Frank Fischer, complete/]) assert.match(changed, words);
  assert.ok(!existsSync(refunds), "nothing runs before all have approved");
  await everywhere(page, "72-edited");
  await asked("a person in @sre must approve. Now act as Bob");
  await act(page, "Bob Brandt");
  await side.getByRole("button", { name: /^Countersign, unread/ }).click();
  await page.getByText(/of your decisions no longer counts/).first().waitFor();
  await everywhere(page, "73-direct");
  await side.getByRole("button", { name: "Countersign", exact: true }).waitFor();

  // He approves again, from what the menu of the message shows.
  await side.getByRole("button", { name: /^ops/ }).click();
  const root = page.getByRole("region", { name: "Messages in #ops" }).locator(".line").filter({ hasText: "refund the 48 euros" });
  await root.hover();
  await root.getByRole("button", { name: "Message menu" }).click();
  await page.getByRole("menuitem", { name: /Review approvals here/ }).click();
  await reviewed(page, "74-from-the-menu", /operations: 1 of 1 approval by @Bob Brandt, complete/);

  // Carol is asked last. Her Home says so, and she decides there.
  await act(page, "Carol Chen");
  await side.getByRole("button", { name: "Countersign home" }).click();
  const home = page.getByRole("tabpanel", { name: "Home" });
  await home.getByText("1 request waits for your approval").waitFor();
  await home.getByText(/operations: 1 of 1 approval, finance: 1 of 1 approval, security: 0 of 1 approval/).waitFor();
  await everywhere(page, "75-home");
  await home.getByRole("button", { name: "Review" }).click();
  await reviewed(page, "76-from-home", /Approved by/);
  await home.getByText("Nothing waits for your approval.").waitFor();
  await home.getByText(/Approved\. You approved/).waitFor();
  await shot(page, "77-home-after");

  // What ran is what was approved, and the agent says so.
  await side.getByRole("button", { name: /^ops/ }).click();
  await page.getByRole("button", { name: /\d repl/ }).first().click();
  await thread(page).getByText("I requested the refund of order 1042.").waitFor();
  await onCard(/Approved by/);
  assert.match(await refund.innerText(), /48000 → 4800/);
  for (const name of ["Frank Fischer", "Bob Brandt", "Carol Chen"]) await onCard(name);
  assert.equal(await refund.getByRole("button").count(), 0, "a settled card has no buttons");
  await asked("Done. The answer is in the thread");
  await everywhere(page, "78-settled");
  const [written] = readdirSync(refunds);
  assert.equal(JSON.parse(readFileSync(join(refunds, written), "utf8")).cents, 4800);
  await aloud("79-aloud");
  await close(page);
}

/** reviewed approves the card that a form shows, reads that it counts, and closes the form. */
async function reviewed(page, name, after) {
  const review = page.getByRole("dialog", { name: "Review" });
  await review.getByText("48000 → 4800").waitFor();
  await everywhere(page, name);
  await review.getByRole("button", { name: /^Approve/ }).click();
  await page.getByRole("dialog", { name: /^Approve this call/ }).getByRole("button", { name: "Approve" }).click();
  await review.getByText(after).first().waitFor();
  await review.getByRole("button", { name: "Close" }).last().click();
  await review.waitFor({ state: "detached" });
}

/** severalAtOnce approves from a list that Bob asks for; what may do harm is ticked one by one. */
async function severalAtOnce() {
  const page = await screen();
  await page.getByRole("button", { name: /clean up the old reports/ }).click();
  await guide(page).getByText("Now act as Bob").waitFor();
  await act(page, "Bob Brandt");
  const composer = page.getByRole("textbox", { name: "Message #ops" });
  for (const [word, says] of [["list", /the oldest first/], ["status", "Countersign is working."]]) {
    await composer.fill("/countersign " + word);
    await composer.press("Enter");
    await page.locator(".ephemeral").getByText(says).first().waitFor();
    await everywhere(page, "83-" + word);
    await page.getByRole("button", { name: "Dismiss" }).click();
    await page.locator(".ephemeral").waitFor({ state: "detached" });
  }
  await composer.fill("/countersign approve tool:delete_*");
  await composer.press("Enter");
  const sheet = page.getByRole("dialog", { name: "Approve several calls" });
  await sheet.getByText(/Select the calls that you want/).waitFor();
  for (const words of ["2023-q1-sales.txt", "2023-q2-sales.txt", "This is the list as of"]) await sheet.getByText(words).first().waitFor();
  await everywhere(page, "80-sheet");
  await sheet.getByRole("checkbox").first().check();
  await sheet.getByRole("button", { name: "Approve 1 call" }).waitFor();
  await everywhere(page, "81-sheet-selected");
  await sheet.getByRole("button", { name: "Approve 1 call" }).click();
  const stored = page.getByRole("dialog", { name: "Countersign" });
  await stored.getByText("Your decision is stored").waitFor();
  await stored.getByRole("button", { name: "Close" }).last().click();
  const side = page.getByRole("navigation", { name: "Channels and apps" });
  await side.getByRole("button", { name: /^Countersign, unread/ }).click();
  await page.getByText(/Approved 1 call\. 1 not selected\./).waitFor();
  await everywhere(page, "82-sheet-answer");
  await side.getByRole("button", { name: /^ops/ }).click();
  await guide(page).getByRole("button", { name: "Open the thread" }).click();
  await thread(page).getByText("Approved by @Bob Brandt").waitFor();
  assert.equal(await thread(page).getByRole("button", { name: /^Approve/ }).count(), 1, "what was not ticked still waits");
  assert.ok(existsSync(file("2023-q1-sales.txt")) && existsSync(file("2023-q2-sales.txt")));
  await close(page);
}

async function hostileText() {
  const page = await screen({ colorScheme: "dark" });
  const composer = page.getByRole("textbox", { name: "Message #ops" });
  await composer.fill("<img src=x onerror=alert(1)> <!channel> &lt;!here&gt; *not bold* [x](javascript:alert(1))");
  await composer.press("Enter");
  const line = page.locator(".line").last();
  await line.getByText("<img src=x onerror=alert(1)> <!channel> &lt;!here&gt; *not bold*").waitFor();
  assert.equal(await line.locator("img, .mention, strong:not(.by strong), a").count(), 0, "text that was typed is only text");
  const refused = await page.evaluate(() => {
    try {
      document.createElement("div").innerHTML = "<b>x</b>";
      return false;
    } catch {
      return true;
    }
  });
  assert.ok(refused, "the browser would parse a string as HTML");

  // A slash command, completed; its answer is for one person only.
  await composer.fill("");
  await page.keyboard.type("/cou");
  await page.getByRole("option", { name: /\/countersign/ }).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.type("help");
  await page.keyboard.press("Enter");
  await page.locator(".ephemeral").getByText("Only visible to you").waitFor();
  await shot(page, "30-dark-command");
  await page.getByRole("button", { name: "Dismiss" }).click();
  await page.locator(".ephemeral").waitFor({ state: "detached" });

  // What Slackbot says leaves the composer to be read.
  await composer.fill("/nobody knows");
  await composer.press("Enter");
  const notice = page.locator(".notices p").first();
  await notice.waitFor();
  const [above, below] = [await notice.boundingBox(), await page.locator("form.composer").boundingBox()];
  assert.ok(above.y + above.height <= below.y, "the notice covers the composer");
  await shot(page, "31-notice");
  await act(page, "Bob Brandt");
  assert.equal(await page.locator(".ephemeral").count(), 0);
  await close(page);
}

async function unread() {
  const page = await screen();
  const side = page.getByRole("navigation", { name: "Channels and apps" });
  const write = async (channel, text) => {
    await page.getByRole("textbox", { name: "Message " + channel }).fill(text);
    await page.keyboard.press("Enter");
    await page.locator(".line").getByText(text.split(" ").at(-1)).waitFor();
  };
  await side.getByRole("button", { name: "general" }).click();
  await write("#general", "good morning");
  await act(page, "Bob Brandt");
  await page.locator(".line").getByText("morning").waitFor();
  await side.getByRole("button", { name: "ops" }).click();
  await page.getByRole("textbox", { name: "Message #ops" }).waitFor();
  await act(page, "Alice Amari"); // in #ops, where Bob was
  await side.getByRole("button", { name: "general" }).click();
  await write("#general", "@bob lunch?");
  await side.getByRole("button", { name: "ops" }).click();
  await page.getByRole("textbox", { name: "Message #ops" }).waitFor();
  await act(page, "Bob Brandt");
  await side.getByRole("button", { name: "general, unread, 1 for you" }).click();
  await page.locator(".day.new + .line").getByText("lunch?").waitFor();
  await shot(page, "12-unread");
  await side.getByRole("button", { name: "ops" }).click();
  await side.getByRole("button", { name: "general", exact: true }).waitFor();

  // A direct message with the app begins with the first word to it.
  const has = await tabs();
  await side.getByRole("button", { name: "Countersign", exact: true }).click();
  if (has.messages) {
    await write("Countersign", "what can you do?");
    await shot(page, "13-direct");
  }
  if (has.home && has.messages) await page.getByRole("tab", { name: "Messages", selected: true }).waitFor();

  // An app without tabs has no home, and nobody can write to it.
  await without(page);
  await page.reload();
  await page.getByText("Sending messages to this app has been turned off.").waitFor();
  assert.equal(await page.getByRole("textbox").count(), 0);
  assert.equal(await page.getByRole("button", { name: "Countersign home" }).count(), 0);
  assert.equal(await page.getByRole("tab").count(), 0);
  await shot(page, "14-no-tabs");
  await close(page);
}

async function aGuest() {
  const page = await screen();
  await act(page, "Gita Guest");
  await page.getByRole("button", { name: /Act as Alice to start/ }).click();
  await page.getByRole("radio", { name: "Alice Amari", checked: true }).waitFor();
  await act(page, "Gita Guest");
  await page.getByRole("button", { name: /write a summary/ }).click();
  await guide(page).getByText("The bot refused. It says why below.").waitFor();
  await page.getByText("Guests of this workspace can't do this.").first().waitFor();
  await shot(page, "60-guest");
  await guide(page).getByRole("button", { name: "Act as Alice" }).click();
  await page.getByRole("radio", { name: "Alice Amari", checked: true }).waitFor();
  await guide(page).getByText("Gita asked. There is no answer yet.").waitFor();
  await guide(page).getByRole("button", { name: "Close this hint" }).click();
  await guide(page).waitFor({ state: "detached" });
  await close(page);
}

async function stopped() {
  const page = await screen();
  await page.route("**/sim/events", (route) => route.abort());
  await page.reload();
  const bar = page.getByRole("alert").getByText("The workspace stopped. Start it again; this page reconnects.");
  await bar.waitFor();
  const composer = page.getByRole("textbox", { name: "Message #ops" });
  assert.ok(await composer.isDisabled());
  await shot(page, "61-stopped");
  await page.unroute("**/sim/events");
  await bar.waitFor({ state: "detached" });
  assert.ok(await composer.isEnabled());
  assert.ok(trouble.length > 0 && trouble.every((t) => /ERR_FAILED/.test(t)), trouble.join());
  trouble.length = 0;
  await close(page);
}

/** asTheApp calls the Web API, as an app that draws what ours does not. */
async function asTheApp(method, body) {
  const response = await fetch(PAGE + "/api/" + method, { method: "POST", headers: { "Content-Type": "application/json; charset=utf-8", Authorization: "Bearer " + process.env.TOKEN }, body: JSON.stringify(body) });
  const answer = await response.json();
  assert.ok(answer.ok, `${method}: ${JSON.stringify(answer)}`);
  return answer;
}

const plain = (text) => ({ type: "plain_text", text });
const mrkdwn = (text, more) => ({ type: "mrkdwn", text, ...more });
const option = (value, description) => ({ text: plain(value), value, ...(description && { description: plain(description) }) });
const three = [option("one"), option("two", "with a description"), option("three")];

async function everyElement() {
  const page = await screen({ viewport: { width: 1360, height: 1500 }, timezoneId: "Asia/Tokyo" });
  const { ts } = await asTheApp("chat.postMessage", {
    channel: "C0OPS", text: "every block",
    blocks: [
      { type: "header", text: plain("Everything an app may send") },
      { type: "section", text: mrkdwn("&lt;!channel&gt; is text, <!channel> is not. *bold* _italic_ ~gone~ `code &lt;@U0BOB&gt;` :tada: <@U0BOB> <#C0GENERAL> <!subteam^S0SEC>\n&gt; quoted\n```a *literal* block```\n<https://evil.example/x|https://bank.example> and <https://docs.example/a|the docs> and <javascript:alert(1)|this>"),
        accessory: { type: "overflow", action_id: "more", options: three } },
      { type: "section", fields: [mrkdwn("*When*\n<!date^1772640000^{date_short} at {time}|2026-03-04 16:00 UTC>"), mrkdwn("*Verbatim*\nhttps://a.example #general", { verbatim: true }), mrkdwn("*Not verbatim*\nhttps://a.example #general"), plain("*plain* <!here> &lt;")] },
      { type: "rich_text", elements: [
        { type: "rich_text_section", elements: [{ type: "text", text: "styled ", style: { bold: true, italic: true } }, { type: "user", user_id: "U0CAROL" }, { type: "text", text: " " }, { type: "channel", channel_id: "C0OPS" }, { type: "text", text: " " }, { type: "emoji", name: "rocket" }, { type: "text", text: " <!channel> *not* " }, { type: "link", url: "https://docs.example", text: "link" }] },
        { type: "rich_text_list", style: "ordered", elements: [{ type: "rich_text_section", elements: [{ type: "text", text: "first" }] }, { type: "rich_text_section", elements: [{ type: "text", text: "second" }] }] },
        { type: "rich_text_list", style: "bullet", indent: 1, elements: [{ type: "rich_text_section", elements: [{ type: "text", text: "below" }] }] },
        { type: "rich_text_quote", elements: [{ type: "text", text: "a quote" }] },
        { type: "rich_text_preformatted", elements: [{ type: "text", text: "rm -rf *x* <!here> &lt;" }] }] },
      { type: "image", image_url: "https://pictures.example/secret.png", alt_text: "A chart of sales", title: plain("Sales") },
      { type: "context", elements: [{ type: "image", image_url: "https://pictures.example/i.png", alt_text: "icon" }, mrkdwn("in a context")] },
      { type: "divider" },
      { type: "actions", elements: [
        { type: "button", action_id: "sure", text: plain("Drop it"), style: "danger", confirm: { title: plain("Drop the table?"), text: mrkdwn("It *cannot* be undone."), confirm: plain("Drop"), deny: plain("Keep"), style: "danger" } },
        { type: "button", action_id: "away", text: plain("Elsewhere"), url: "https://docs.example/away" },
        { type: "static_select", action_id: "pick", placeholder: plain("Pick one"), options: three },
        { type: "datepicker", action_id: "day", initial_date: "2026-03-04" },
        { type: "timepicker", action_id: "hour", initial_time: "16:30" },
        { type: "users_select", action_id: "who", placeholder: plain("Somebody") },
        { type: "external_select", action_id: "load", min_query_length: 2, placeholder: plain("Find one") }] },
      { type: "actions", elements: [{ type: "checkboxes", action_id: "boxes", options: three }, { type: "radio_buttons", action_id: "radio", options: three, initial_option: three[1] }] },
      { type: "table", rows: [[{ type: "raw_text", text: "File" }, { type: "raw_text", text: "Size" }], [{ type: "raw_text", text: "a.txt" }, { type: "raw_text", text: "12" }]] },
    ],
  });
  const line = page.locator(`.line[data-ts="${ts}"]`);
  await line.getByText("Everything an app may send").waitFor();
  const text = await line.innerText();
  for (const words of ["<!channel> is text, @channel is not.", "code <@U0BOB>", "@Bob Brandt #general @security", "a *literal* block", "https://bank.example (leads to evil.example)", "this (javascript:alert(1))",
    "Mar 4, 2026 at 5:00 PM", "*plain* <!here> &lt;", "styled @Carol Chen #ops", "<!channel> *not* link", "rm -rf *x* <!here> &lt;", "A chart of sales"]) assert.ok(text.includes(words), `not on screen: ${words}\n${text}`);
  assert.equal(await line.locator(".mention", { hasText: "@channel" }).count(), 1, "only a real entity is a mention");
  assert.equal(await line.locator('a[href^="javascript"], img').count(), 0);
  assert.equal(await line.locator("a", { hasText: "https://a.example" }).count(), 1, "verbatim text has no links");
  await shot(page, "40-every-block");

  // A confirm dialog gates the click; Escape is no.
  const clicks = [];
  page.on("request", (r) => { if (r.url().endsWith("/sim/click")) clicks.push(JSON.parse(r.postData())); });
  await line.getByRole("button", { name: "Drop it" }).click();
  const confirm = page.getByRole("dialog", { name: "Drop the table?" });
  await confirm.waitFor();
  await shot(page, "41-confirm");
  await page.keyboard.press("Escape");
  await confirm.waitFor({ state: "detached" });
  assert.deepEqual(clicks, []);
  await line.getByRole("button", { name: "Drop it" }).click();
  const answered = page.waitForResponse((r) => r.url().endsWith("/sim/click"));
  await confirm.getByRole("button", { name: "Drop", exact: true }).click();
  await answered;
  assert.equal(clicks.at(-1).action_id, "sure");

  // What is chosen in a message is told at once.
  const told = async (choose, action, value) => {
    const answered = page.waitForResponse((r) => r.url().endsWith("/sim/click"));
    await choose();
    await answered;
    assert.deepEqual([clicks.at(-1).action_id, clicks.at(-1).value], [action, value]);
  };
  await told(() => line.locator("input[type=date]").fill("2026-05-06"), "day", "2026-05-06");
  await told(() => line.getByRole("checkbox", { name: "one" }).check(), "boxes", ["one"]);
  await told(() => line.getByRole("checkbox", { name: "three" }).check(), "boxes", ["one", "three"]);
  await told(() => line.getByRole("radio", { name: "three" }).check(), "radio", "three");

  // A menu whose options the app loads asks from the second character on.
  const asked = [];
  await page.route("**/sim/suggest", (r) => { asked.push(r.request().postDataJSON().value); return r.fulfill({ json: { status: 200, options: three } }); });
  const find = line.getByPlaceholder("Find one");
  await find.fill("t");
  await line.getByText("Type 2 characters to see what there is.").waitFor();
  await find.fill("tw");
  await page.route("**/sim/click", (r) => r.fulfill({ json: { status: 200 } }), { times: 1 });
  await told(() => line.locator("button[role=option]", { hasText: "two" }).click(), "load", three[1].value);
  assert.deepEqual(asked, ["tw"]);

  // The overflow menu by keyboard.
  await line.getByRole("button", { name: "More actions" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("menuitem", { name: "one" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await shot(page, "42-overflow");
  const chosen = page.waitForResponse((r) => r.url().endsWith("/sim/click"));
  await page.keyboard.press("Enter");
  await chosen;
  assert.deepEqual([clicks.at(-1).action_id, clicks.at(-1).value], ["more", "two"]);
  assert.ok(await line.getByRole("button", { name: "More actions" }).evaluate((node) => node === document.activeElement), "the focus goes back to the menu's button");

  // A link in a button opens nothing by itself, and says where it leads.
  await line.getByRole("button", { name: /Elsewhere/ }).click();
  await line.getByText("This button leads to https://docs.example/away").waitFor();
  assert.equal(page.context().pages().length, 1);

  // Markdown, which is no HTML and mentions nobody.
  const written = await asTheApp("chat.postMessage", { channel: "C0OPS", text: "markdown", blocks: [{ type: "markdown", text: "## Plan\n**Two** files, *one* ~~lost~~, `rm`:\n\n1. first\n2. second\n   - below\n\n> quoted <b>not bold</b> <!channel>\n\n```\nrm *\n```\n\n| File | Size |\n|---|---|\n| a.txt | **12** |\n\n[the docs](https://docs.example/a) [this](javascript:alert)" }] });
  const prose = page.locator(`.line[data-ts="${written.ts}"]`);
  await prose.locator("h4", { hasText: "Plan" }).waitFor();
  const read = await prose.innerText();
  for (const words of ["Two files, one lost, rm:", "quoted <b>not bold</b> <!channel>", "rm *", "the docs (https://docs.example/a)", "this (javascript:alert)"]) assert.ok(read.includes(words), `not on screen: ${words}\n${read}`);
  assert.equal(await prose.locator("td strong, li li, blockquote, pre, a[href='https://docs.example/a']").count(), 5);
  assert.equal(await prose.locator('.mention, a[href^="javascript"]').count(), 0);
  await shot(page, "42-markdown");

  // A long text folds.
  await asTheApp("chat.postMessage", { channel: "C0OPS", text: "long", blocks: [{ type: "section", text: mrkdwn(Array.from({ length: 60 }, (_, n) => "line " + n).join("\n")) }] });
  const more = page.getByRole("button", { name: "Show more" });
  await more.click();
  await page.getByRole("button", { name: "Show less", expanded: true }).waitFor();

  // Home, with every input, once the bot has drawn its own.
  await page.getByRole("button", { name: "Countersign home" }).click();
  await page.getByText("Waiting for you").waitFor();
  const input = (label, element, more) => ({ type: "input", label: plain(label), element: { action_id: "a", ...element }, ...more });
  await asTheApp("views.publish", { user_id: "U0ALICE", view: { type: "home", blocks: [
    { type: "header", text: plain("Settings") },
    input("A line", { type: "plain_text_input" }, { hint: plain("One line") }), input("Paragraphs", { type: "plain_text_input", multiline: true, max_length: 20, initial_value: "nearly too long" }, { optional: true }),
    input("One of", { type: "static_select", options: three }), input("Some of", { type: "multi_static_select", options: three }), input("Boxes", { type: "checkboxes", options: three, initial_options: [three[0]] }),
    input("Radio", { type: "radio_buttons", options: three }), input("Day", { type: "datepicker" }), input("Number", { type: "number_input", is_decimal_allowed: false }), input("Address", { type: "url_text_input" }), input("People", { type: "multi_users_select" }),
  ] } });
  for (const label of ["A line", "Paragraphs (optional)", "One of", "Day", "Number", "Address"]) await page.getByLabel(label, { exact: true }).waitFor();
  for (const label of ["Some of", "Boxes", "People"]) await page.getByRole("group", { name: label }).waitFor();
  await page.getByRole("radiogroup", { name: "Radio" }).waitFor();
  await page.getByLabel("Day", { exact: true }).fill("2026-05-06");
  await page.getByLabel("Number", { exact: true }).fill("12");
  await page.getByLabel("One of", { exact: true }).selectOption("two");
  await page.getByRole("radio", { name: "three" }).check();
  await page.getByLabel("Paragraphs (optional)").fill("x".repeat(21));
  await page.getByText("1 too many").waitFor();
  assert.equal(await page.getByLabel("Day", { exact: true }).inputValue(), "2026-05-06");
  await shot(page, "43-home-inputs");
  await close(page);
}

/** tooMany asks for more than a channel has room for in a minute: what is too much is listed in one message. */
async function tooMany() {
  const page = await screen();
  const post = (n) => fetch(PAGE + "/sim/post", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ user: "U0ALICE", channel: "C0OPS", text: "@countersign refund the 48 euros of order 1042" + " ".repeat(n) }) });
  for (let n = 0; n < 24; n++) await post(n);
  const list = page.locator(".blocks.kit").filter({ hasText: /\d+ requests wait for approval/ }).first();
  await list.waitFor({ timeout: 240_000 }); // it is updated at the pace that Slack allows
  await act(page, "Bob Brandt");
  await list.getByRole("button", { name: "Review" }).waitFor();
  await everywhere(page, "90-digest");
  await list.getByRole("button", { name: "Review" }).click();
  await page.getByRole("dialog", { name: "Review" }).getByText("issue_refund").first().waitFor();
  await everywhere(page, "91-digest-review");
  await close(page);
}

/** everyCard shows the cards that the app's own tests hold as golden files. */
async function everyCard() {
  const page = await screen({ viewport: narrow });
  for (const name of readdirSync(CARDS).filter((n) => /^card_.*\.json$/.test(n))) {
    const { ts } = await asTheApp("chat.postMessage", { channel: "C0OPS", text: name, blocks: JSON.parse(readFileSync(join(CARDS, name), "utf8")) });
    const line = page.locator(`.line[data-ts="${ts}"]`);
    await line.locator("h3").waitFor();
    assert.equal(await line.getByText("This page cannot show").count(), 0, name);
    assert.equal(await line.locator(".mention", { hasText: /@(channel|here|everyone)/ }).count(), 0, name + " pings");
    await fits(page);
    const wide = await line.evaluate((node) => [...node.querySelectorAll("*")].filter((n) => n.getBoundingClientRect().right > innerWidth + 1 && !n.closest(".sr")).length);
    assert.equal(wide, 0, name + " is cut off on a phone");
    if (/hostile|eight|long|decided/.test(name)) await shot(page, "50-" + name.replace(".json", ""));
    if (/all_at_once|story|became|asked_again|nobody|doubt/.test(name)) await whole(page, line, "53-" + name.replace(".json", ""));
  }
  await close(page);
}

/** aTerminalPrompt is the card of a coding agent: its pictures are those of docs/coding-agents.md. */
async function aTerminalPrompt() {
  const page = await screen();
  const { ts } = await asTheApp("chat.postMessage", { channel: "C0OPS", text: "Run git push", blocks: JSON.parse(readFileSync(join(CARDS, "card_terminal.json"), "utf8")) });
  const line = page.locator(`.line[data-ts="${ts}"]`);
  await line.locator("h3").waitFor();
  // Like at the prompt of a terminal: the whole command in a block of code, and where it would run.
  const command = "git push origin fix-rounding && make deploy ENV=staging";
  assert.ok((await line.locator("pre").allInnerTexts()).some((text) => text.includes(command)), "the command is not in a block of code");
  for (const words of ["/home/ann/src/shop", "fix-rounding", "acme/shop"]) await line.getByText(words).first().waitFor();
  await pictures(page, line.locator(".blocks.kit"), "terminal");
  await page.setViewportSize({ width: 390, height: 844 });
  await fits(page);
  await whole(page, line, "60-terminal-phone");
  await close(page);
}

/** everyForm shows the views that the app's own tests hold, over the workspace's: what is entered into them is read off the request. */
async function everyForm() {
  const page = await screen({ viewport: narrow });
  const shown = { views: [] };
  await page.route("**/sim/views?**", (route) => route.fulfill({ json: shown }));
  const sent = [];
  await page.route("**/sim/submit", (route) => { sent.push(JSON.parse(route.request().postData())); return route.fulfill({ json: {} }); });
  await page.route("**/sim/close", (route) => { shown.views.pop(); return route.fulfill({ json: { closed: true } }); });
  let ids = 0;
  const read = (name) => {
    const golden = JSON.parse(readFileSync(join(CARDS, name), "utf8"));
    const view = Array.isArray(golden) ? { title: plain("Review"), blocks: golden } : golden;
    const words = (label) => label?.text ?? label;
    return { ...view, id: "V" + ++ids, hash: "1", title: words(view.title), submit: words(view.submit), close: words(view.close) };
  };
  const look = async () => { // the page reads its views again with whatever happens
    await asTheApp("chat.postMessage", { channel: "C0GENERAL", text: "something happened" });
  };
  const dialog = page.getByRole("dialog");
  for (const name of readdirSync(CARDS, { recursive: true }).filter((n) => /^(forms\/|home_|review_|sheet_).*\.json$/.test(n)).sort()) {
    shown.views = [read(name)];
    await look();
    await dialog.getByRole("heading", { name: shown.views[0].title, exact: true }).waitFor();
    assert.equal(await dialog.getByText("This page cannot show").count(), 0, name);
    assert.equal(await dialog.locator(".mention", { hasText: /@(channel|here|everyone)/ }).count(), 0, name + " pings");
    const cut = await dialog.evaluate((node) => [...node.querySelectorAll("*")].filter((n) => n.getBoundingClientRect().right > innerWidth + 1 && !n.closest(".sr, .scroll")).length);
    assert.equal(cut, 0, name + " is cut off on a phone");
    await shot(page, "51-" + name.replace(/\W/g, "-").replace("-json", ""));
    shown.views = [];
    await look();
    await dialog.waitFor({ state: "detached" });
  }

  // One view on another: what was entered below is still there.
  const edit = read("forms/edit.json");
  shown.views = [edit];
  await look();
  await dialog.getByLabel("to", { exact: true }).fill("changed");
  shown.views = [edit, read("review_open.json")];
  await look();
  await dialog.getByRole("button", { name: "Back" }).click();
  await look();
  await dialog.getByRole("heading", { name: edit.title }).waitFor();
  assert.equal(await dialog.getByLabel("to", { exact: true }).inputValue(), "changed");

  // Another page of one view: it is read from its beginning, and keys still work in it.
  const pages = [1, 2].map((n) => ({ ...read("review_open.json"), id: "VPAGES", hash: String(n), blocks: [
    ...Array.from({ length: 30 }, (_, i) => ({ type: "section", block_id: `p${n}-${i}`, text: plain(`Line ${i} of page ${n}`) })),
    { type: "actions", block_id: "turn" + n, elements: [{ type: "button", action_id: "turn" + n, text: plain("Turn " + n) }] },
  ] }));
  shown.views = [pages[0]];
  await look();
  await dialog.getByRole("button", { name: "Turn 1" }).focus();
  shown.views = [pages[1]];
  await look();
  await dialog.getByText("Line 0 of page 2", { exact: true }).waitFor();
  await page.waitForFunction(() => document.activeElement.closest("dialog"), null, { timeout: 5000 });
  assert.equal(await dialog.locator(".content").evaluate((node) => node.scrollTop), 0, "the next page begins at its end");
  shown.views = [edit];
  await look();

  // A field of each kind, and what of it is sent.
  const field = (label) => dialog.getByLabel(label, { exact: true });
  await field("amount").fill("12");
  await field("on (optional)").fill("2026-05-06");
  await field("note (optional)").fill("Third line");
  await dialog.getByRole("radiogroup", { name: "dry_run" }).getByRole("radio", { name: "true" }).check();
  const answered = page.waitForResponse((r) => r.url().endsWith("/sim/submit"));
  await dialog.getByRole("button", { name: "Save changes" }).click();
  await answered;
  assert.deepEqual(Object.values(sent.at(-1).values).map((v) => v.value), ["changed", "12", "0", "2026-05-06", "Third line"]);
  edit.errors = { [edit.blocks.find((b) => b.label?.text === "amount").block_id]: "Too much." };
  await look();
  await dialog.getByRole("alert").getByText("Too much.").waitFor();
  assert.ok(await field("amount").evaluate((node) => node === document.activeElement), "the field that is wrong has no focus");
  await shot(page, "52-form-error");
  await close(page);
}

const stories = { aTerminalPrompt, everyForm, tooMany, aRefund, severalAtOnce, everyElement, everyCard, withTheMouse, withTheKeyboard, onAPhoneInTheDark, hostileText, unread, aGuest, stopped };
try {
  await stories[STORY]();
  // A click that is refused answers 200; nothing else may go wrong unseen.
  const unexpected = trouble.filter((t) => !(STORY === "hostileText" && /TrustedHTML/.test(t)));
  assert.deepEqual(unexpected, [], "the browser reported trouble");
} catch (e) {
  for (const context of browser.contexts()) for (const page of context.pages()) {
    console.error(`${page.url()} shows:\n${await page.innerText("body", { timeout: 5_000 }).catch(String)}\n`);
    await shot(page, "failed-" + STORY).catch(() => {});
  }
  throw e;
} finally {
  await browser.close();
}
