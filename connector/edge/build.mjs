// Bundles the connector into proofline-edge.js, one module that runs on Web
// APIs alone; with --tests, every test into node_modules/.cache/tests and
// the worker that they run into node_modules/.cache/worker instead.
import { readdirSync } from "node:fs";
import { build } from "esbuild";

const shared = { bundle: true, format: "esm", target: "es2022", legalComments: "none", logLevel: "warning" };

const module = { ...shared, entryPoints: ["src/main.ts"], outfile: "proofline-edge.js", platform: "neutral" };

const tests = {
  ...shared,
  entryPoints: readdirSync("test").filter((name) => name.endsWith(".test.ts")).map((name) => `test/${name}`),
  outdir: "node_modules/.cache/tests",
  platform: "node",
  packages: "external",
  sourcemap: "inline",
};

const worker = { ...module, entryPoints: ["test/worker.ts"], outfile: "node_modules/.cache/worker/worker.js" };

for (const each of process.argv[2] === "--tests" ? [tests, worker] : [module]) await build(each);
