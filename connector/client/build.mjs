// Builds wait.js and bind.js, which connectors serve, and wait.mjs, which a site
// may bundle. All end with a hash of their sources, which a Go test computes
// again. With --check it writes nothing, and fails if the files differ.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const shared = {
  bundle: true,
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
  write: false,
};
const sources = [
  "build.mjs",
  ...readdirSync("src")
    .sort()
    .map((name) => `src/${name}`),
];

async function make(name, options) {
  const { outputFiles } = await build({ ...shared, ...options });
  const body = outputFiles[0].text;
  const sum = createHash("sha256");
  for (const source of sources) sum.update(readFileSync(source));
  const text = `${body}// ${sum.update(body).digest("hex").slice(0, 16)}\n`;
  if (process.argv[2] !== "--check") writeFileSync(name, text);
  else if (readFileSync(name, "utf8") !== text) throw new Error(`${name} is not what its sources make: npm run build`);
}

await make("wait.js", { entryPoints: ["src/script.ts"], format: "iife", minify: true });
await make("bind.js", { entryPoints: ["src/bind.ts"], format: "iife", minify: true });
await make("wait.mjs", { entryPoints: ["src/wait.ts"], format: "esm" });
