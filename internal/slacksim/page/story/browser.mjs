// The browser in which all stories happen, each with pages of its own. story_test.go starts
// it and tells the stories its address, which is its first line of output. It ends when its
// standard input does. MODULES and CHROMIUM are those of story.mjs.
import { createRequire } from "node:module";

const { MODULES, CHROMIUM } = process.env;
const { chromium } = createRequire(MODULES)("playwright-core");

const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const server = await chromium.launchServer({ executablePath: CHROMIUM, args: flags, host: "127.0.0.1" });
console.log(server.wsEndpoint());
process.stdin.on("end", () => server.close()).resume();
