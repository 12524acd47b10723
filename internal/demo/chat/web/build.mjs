// Builds the page into ../dist, or into $PAGE_OUT. The bundle is committed, so its
// names carry no hashes and the same source gives the same bytes.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = process.env.PAGE_OUT ?? join(here, "../dist");
mkdirSync(out, { recursive: true });
for (const name of readdirSync(out)) rmSync(join(out, name), { recursive: true });
await build({
  absWorkingDir: here, bundle: true, jsx: "automatic", logLevel: "warning", define: { "process.env.NODE_ENV": '"production"' },
  entryPoints: { chat: "src/main.tsx" }, outdir: out, format: "esm", target: ["es2022", "chrome110", "firefox115", "safari16"],
  minify: true, charset: "utf8", legalComments: "eof",
});
copyFileSync(join(here, "index.html"), join(out, "index.html"));
