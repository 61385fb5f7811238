// Bundles the connector into proofline-edge.js, a single module that needs only Web
// APIs. With --tests it instead builds the tests into node_modules/.cache/tests, with
// the worker that they run and the program that notes_test.go runs.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { build } from "esbuild";

const { stdout } = spawnSync("git", ["describe", "--tags", "--always", "--dirty"], { encoding: "utf8" });
const define = { buildVersion: JSON.stringify(stdout?.trim() || "unknown") }; // what reports say

const shared = {
  bundle: true,
  format: "esm",
  target: "es2022",
  legalComments: "none",
  logLevel: "warning",
  charset: "utf8",
  define,
};

const module = { ...shared, entryPoints: ["src/main.ts"], outfile: "proofline-edge.js", platform: "neutral" };

const tests = {
  ...shared,
  entryPoints: readdirSync("test")
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `test/${name}`),
  outdir: "node_modules/.cache/tests",
  platform: "node",
  packages: "external",
  sourcemap: "inline",
};

const notes = {
  ...module,
  entryPoints: ["test/notes.ts"],
  outfile: "node_modules/.cache/notes/notes.js",
  platform: "node",
};

const worker = { ...module, entryPoints: ["test/worker.ts"], outfile: "node_modules/.cache/worker/worker.js" };

for (const each of process.argv[2] === "--tests" ? [tests, worker, notes] : [module]) await build(each);
