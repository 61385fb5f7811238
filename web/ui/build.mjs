// Bundles the scripts and styles of the pages into dist, under names that hold
// a hash of the content, with manifest.json from plain names to these; with
// --tests, every test into node_modules/.cache/tests instead, with --bench what
// is measured into node_modules/.cache/bench, and with --audit the audit of
// whole rooms into node_modules/.cache/audit, one file for Node.js.
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { build } from "esbuild";

const shared = { bundle: true, format: "esm", target: "es2022", legalComments: "none", logLevel: "warning" };

const pages = {
  ...shared,
  entryPoints: [
    { in: "src/page/main.ts", out: "page" },
    { in: "src/page/checking.ts", out: "check" },
    { in: "src/page/checker.ts", out: "checker" },
    { in: "src/page/blinding.ts", out: "blind" },
    { in: "src/page/work.ts", out: "work" },
    { in: "src/page/solver.ts", out: "solver" },
    { in: "src/style/page.css", out: "page" },
    { in: "src/console/main.ts", out: "console" },
    { in: "src/style/console.css", out: "console" },
    { in: "src/console/live/main.ts", out: "live" },
    { in: "src/style/live.css", out: "live" },
    { in: "src/style/icon.svg", out: "icon" },
  ],
  outdir: "dist",
  entryNames: "[name].[hash]",
  loader: { ".svg": "copy" },
  minify: true,
  metafile: true,
};

const tests = {
  ...shared,
  entryPoints: readdirSync("test", { recursive: true })
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `test/${name}`),
  outdir: "node_modules/.cache/tests",
  platform: "node",
  packages: "external",
  sourcemap: "inline",
};

const bench = { ...tests, entryPoints: ["bench/polls.ts"], outdir: "node_modules/.cache/bench" };

const audit = {
  ...shared,
  entryPoints: [{ in: "src/audit/main.ts", out: "audit" }],
  outdir: "node_modules/.cache/audit",
  outExtension: { ".js": ".mjs" },
  platform: "node",
};

const kinds = { "--tests": tests, "--bench": bench, "--audit": audit };
const chosen = kinds[process.argv[2]] ?? pages;
rmSync(chosen.outdir, { recursive: true, force: true });
const { metafile } = await build(chosen);
if (metafile) {
  const names = Object.keys(metafile.outputs).map((path) => basename(path));
  const manifest = Object.fromEntries(names.map((name) => [name.replace(/\.[^.]+(?=\.[^.]+$)/, ""), name]));
  writeFileSync(`${chosen.outdir}/manifest.json`, JSON.stringify(manifest, null, 2));
}
