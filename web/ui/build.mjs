// Bundles the scripts of the pages into dist; with --tests, every test into
// node_modules/.cache/tests instead.
import { readdirSync, rmSync } from "node:fs";
import { build } from "esbuild";

const shared = { bundle: true, format: "esm", target: "es2022", legalComments: "none", logLevel: "warning" };

const pages = {
  ...shared,
  entryPoints: { check: "src/check/index.ts" },
  outdir: "dist",
  minify: true,
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

const chosen = process.argv.includes("--tests") ? tests : pages;
rmSync(chosen.outdir, { recursive: true, force: true });
await build(chosen);
