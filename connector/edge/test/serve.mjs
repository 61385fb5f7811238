// Runs proofline-edge.js in workerd with the bindings in the first line of standard
// input (JSON), and prints the address. Ends with standard input.
import { createInterface } from "node:readline";
import { Miniflare } from "miniflare";

const lines = createInterface({ input: process.stdin });
let worker;
lines.once("line", async (line) => {
  worker = new Miniflare({
    modules: true,
    scriptPath: "proofline-edge.js",
    compatibilityDate: "2026-03-01",
    bindings: JSON.parse(line),
    host: "127.0.0.1",
    port: 0,
  });
  console.log((await worker.ready).host);
});
lines.once("close", () => worker?.dispose());
