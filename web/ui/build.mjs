// Bundles the scripts and styles of the pages into dist, under names that hold
// a hash of the content, with manifest.json from plain names to these; with
// --tests, every test into node_modules/.cache/tests instead, and with --bench
// what is measured into node_modules/.cache/bench.
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { build } from "esbuild";

const shared = { bundle: true, format: "esm", target: "es2022", legalComments: "none", logLevel: "warning" };

const pages = {
  ...shared,
  entryPoints: [
    { in: "src/page/main.ts", out: "page" },
    { in: "src/page/checker.ts", out: "checker" },
    { in: "src/style/page.css", out: "page" },
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

const chosen = process.argv.includes("--tests") ? tests : process.argv.includes("--bench") ? bench : pages;
rmSync(chosen.outdir, { recursive: true, force: true });
const { metafile } = await build(chosen);
if (metafile) {
  const names = Object.keys(metafile.outputs).map((path) => basename(path));
  const manifest = Object.fromEntries(names.map((name) => [name.replace(/\.[^.]+(?=\.[^.]+$)/, ""), name]));
  writeFileSync(`${chosen.outdir}/manifest.json`, JSON.stringify(manifest, null, 2));
}
