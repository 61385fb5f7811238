// Bundles the connector into proofline-edge.js, one module that runs on Web
// APIs alone; with --tests, every test into node_modules/.cache/tests instead.
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

await build(process.argv[2] === "--tests" ? tests : module);
