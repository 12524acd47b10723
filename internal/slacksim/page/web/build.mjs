// Builds the page into ../dist, or into $PAGE_OUT; with --test it runs the
// tests instead. The bundle is committed, so its names carry no hashes and
// the same source gives the same bytes.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const common = { absWorkingDir: here, bundle: true, jsx: "automatic", logLevel: "warning", define: { "process.env.NODE_ENV": '"production"' } };

async function page(out) {
  mkdirSync(out, { recursive: true });
  for (const name of readdirSync(out)) rmSync(join(out, name), { recursive: true });
  await build({
    ...common, entryPoints: { app: "src/main.tsx" }, outdir: out, format: "esm", target: ["es2022", "chrome110", "firefox115", "safari16"],
    minify: true, charset: "utf8", legalComments: "eof",
  });
  copyFileSync(join(here, "index.html"), join(out, "index.html"));
}

async function test() {
  const out = mkdtempSync(join(tmpdir(), "page-test-"));
  try {
    const entries = readdirSync(join(here, "test")).map((name) => join("test", name));
    await build({ ...common, entryPoints: entries, outdir: out, format: "esm", platform: "node", target: "node20", outExtension: { ".js": ".mjs" }, banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' } });
    const run = spawnSync(process.execPath, ["--test", "--test-reporter=dot", ...readdirSync(out).map((name) => join(out, name))], { stdio: "inherit" });
    process.exitCode = run.status ?? 1;
  } finally {
    rmSync(out, { recursive: true });
  }
}

await (process.argv.includes("--test") ? test() : page(process.env.PAGE_OUT ?? join(here, "../dist")));
