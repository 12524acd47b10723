// The demo's story, in a real browser, driven by the page alone: what a
// person types, presses and reads. It is started by story_test.go, which
// says where everything is:
//
//	PAGE     the address of the page
//	FOLDER   the folder of files that the demo's agent works on
//	MODULES  a file of the project whose node_modules has playwright-core
//	CHROMIUM the browser
//	SHOTS    where screenshots go; none are made if it is empty
import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { PAGE, FOLDER, MODULES, CHROMIUM, SHOTS, STORY } = process.env;
const { chromium } = createRequire(MODULES)("playwright-core");

const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: CHROMIUM, args: flags });
const trouble = [];

/** screen opens the page in a browser of its own. */
async function screen(options = {}, path = "/") {
  const context = await browser.newContext({ viewport: { width: 1360, height: 860 }, timezoneId: "Europe/Berlin", locale: "en-GB", ...options });
  context.setDefaultTimeout(20000);
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error") trouble.push(m.text()); });
  page.on("pageerror", (e) => trouble.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(PAGE) && !r.url().startsWith("data:")) trouble.push("asked another host: " + r.url()); });
  await page.goto(PAGE + path);
  await page.getByRole("radiogroup", { name: "Act as" }).waitFor();
  return page;
}

async function shot(page, name) {
  if (!SHOTS) return;
  mkdirSync(SHOTS, { recursive: true });
  await page.waitForTimeout(250); // let transitions end: only pictures wait for time
  await page.screenshot({ path: join(SHOTS, name + ".png") });
}

const file = (name) => join(FOLDER, "reports", name);
async function act(page, name) {
  await page.getByRole("radio", { name }).click();
  await page.getByRole("radio", { name, checked: true }).waitFor();
}
const thread = (page) => page.getByRole("complementary", { name: "Thread" });
const guide = (page) => page.getByRole("complementary", { name: "What to do next" });
const card = (page) => thread(page).locator(".blocks.kit").filter({ hasText: "2023-q1-sales.txt" }).first();

/** gone waits until a file is no longer there. */
async function gone(name) {
  for (let n = 0; n < 200 && existsSync(file(name)); n++) await new Promise((r) => setTimeout(r, 50));
  assert.ok(!existsSync(file(name)), name + " is still there");
}

async function withTheMouse() {
  const page = await screen();
  await page.getByText("An agent works here").waitFor();
  await shot(page, "01-welcome");

  // Alice writes the mention, completing the name.
  const composer = page.getByRole("combobox", { name: "Message #ops" });
  await composer.click();
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

  // Dave may not sign: he is told so, and nobody else sees it.
  await act(page, "Dave Duarte");
  await card(page).getByRole("button", { name: /^Approve/ }).first().click();
  const refusal = thread(page).locator(".ephemeral");
  await refusal.getByText("Only visible to you").waitFor();
  assert.match(await refusal.innerText(), /approver/);
  await shot(page, "05-refusal");
  await act(page, "Bob Brandt");
  await card(page).waitFor();
  assert.equal(await thread(page).getByText("Only visible to you").count(), 0, "Bob sees what only Dave was told");
  assert.ok(existsSync(file("2023-q1-sales.txt")) && existsSync(file("2023-q2-sales.txt")));

  // Bob approves the first and opens the form to deny the second.
  const approves = card(page).getByRole("button", { name: /^Approve/ });
  assert.equal(await approves.count(), 2);
  await approves.first().click();
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
  await modal.getByRole("button", { name: "Deny", exact: true }).click();
  await modal.waitFor({ state: "detached" });

  // The answer, the decided card and the files.
  await thread(page).getByText(/2023-q1-sales\.txt: deleted/).waitFor();
  await gone("2023-q1-sales.txt");
  assert.ok(existsSync(file("2023-q2-sales.txt")) && existsSync(file("2026-q1-sales.txt")));
  await card(page).getByRole("button", { name: /^(Approve|Deny)/ }).first().waitFor({ state: "detached" });
  const decided = await card(page).innerText();
  for (const words of [/Approved/, /Denied/, /Bob Brandt/, /Legal still needs it <!channel> &lt;b&gt;\*now\*/, /today at/]) assert.match(decided, words);
  assert.equal(await thread(page).locator(".mention", { hasText: "@channel" }).count(), 0, "nothing pings by injection");
  await shot(page, "08-decided");

  // Under the hood: the signed click, and the call that drew the card.
  await page.getByRole("button", { name: "Under the hood" }).click();
  const hood = page.getByRole("complementary", { name: "Under the hood" });
  await hood.getByText("chat.postMessage").first().waitFor();
  await hood.getByRole("button", { name: "Signed requests" }).click();
  await hood.getByText("block_actions").last().click();
  await hood.getByText(/X-Slack-Signature/i).last().waitFor();
  await shot(page, "09-under-the-hood");
  await page.getByRole("button", { name: "Under the hood" }).click();

  // Home, and two people side by side.
  await page.getByRole("button", { name: "Countersign home" }).click();
  await page.getByRole("tab", { name: "Home", selected: true }).waitFor();
  await shot(page, "10-home");
  await page.getByRole("button", { name: "ops" }).click();
  await page.getByRole("button", { name: "Two people side by side" }).click();
  const seats = [page.frameLocator("iframe").first(), page.frameLocator("iframe").last()];
  await seats[0].getByRole("radio", { name: "Bob Brandt", checked: true }).waitFor();
  await seats[1].getByRole("radio", { name: "Carol Chen", checked: true }).waitFor();
  await seats[0].getByRole("combobox", { name: "Message #ops" }).fill("Carol, did you see this?");
  await seats[0].getByRole("button", { name: "Send" }).click();
  await seats[1].getByText("Carol, did you see this?").first().waitFor();
  await shot(page, "11-side-by-side");
  await page.context().close();
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
  await page.context().close();
}

/** fits says that nothing makes the page scroll sideways. */
async function fits(page) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `the page is ${wide} px too wide`);
}

async function onAPhoneInTheDark() {
  const page = await screen({ viewport: { width: 390, height: 844 }, colorScheme: "dark", hasTouch: true, isMobile: true });
  await fits(page);
  await shot(page, "20-phone-welcome");
  await page.getByRole("button", { name: /clean up the old reports/ }).tap();
  await guide(page).getByRole("button", { name: "Act as Bob" }).tap();
  await page.getByRole("radio", { name: "Bob Brandt", checked: true }).waitFor();
  await shot(page, "21-phone-asked");
  await guide(page).getByRole("button", { name: "Open the thread" }).tap();
  await card(page).waitFor();
  await fits(page);
  await shot(page, "22-phone-card");
  await card(page).getByRole("button", { name: /^Deny/ }).first().tap();
  const modal = page.getByRole("dialog", { name: "Deny this call" });
  await modal.waitFor();
  await shot(page, "23-phone-modal");
  await modal.getByRole("textbox", { name: /Why not/ }).fill("Not from my phone");
  await modal.getByRole("button", { name: "Deny", exact: true }).tap();
  await card(page).getByText("Not from my phone").waitFor();
  await card(page).getByRole("button", { name: /^Approve/ }).last().tap();
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
  await page.getByRole("combobox", { name: "Message #general" }).waitFor();

  // The same in the light, by the switch instead of the system.
  const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.getByRole("button", { name: /^Colours/ }).tap();
  await page.getByRole("button", { name: "Colours: Light", exact: true }).waitFor();
  assert.notEqual(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), dark);
  await page.context().close();
}

async function hostileText() {
  const page = await screen({ colorScheme: "dark" });
  const composer = page.getByRole("combobox", { name: "Message #ops" });
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
  await act(page, "Bob Brandt");
  assert.equal(await page.locator(".ephemeral").count(), 0);
  await page.context().close();
}

const stories = { withTheMouse, withTheKeyboard, onAPhoneInTheDark, hostileText };
try {
  await stories[STORY]();
  // A click that is refused answers 200; nothing else may go wrong unseen.
  const unexpected = trouble.filter((t) => !(STORY === "hostileText" && /TrustedHTML/.test(t)));
  assert.deepEqual(unexpected, [], "the browser reported trouble");
} catch (e) {
  for (const context of browser.contexts()) for (const page of context.pages()) await shot(page, "failed-" + STORY).catch(() => {});
  throw e;
} finally {
  await browser.close();
}
