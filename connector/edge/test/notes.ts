// Reads lines with the response of a site's rules URL (base64) and the site key, and
// answers each with a line: the version of the rules, or null if they are refused.
import { createInterface } from "node:readline";
import { webEd25519 } from "../src/pass.ts";
import { Source } from "../src/source.ts";

const rulesURL = "https://queue.example.com/v1/sites/shop/rules";

for await (const line of createInterface({ input: process.stdin })) {
  const { key, note } = JSON.parse(line) as { key: string; note: string };
  const ask = (): Promise<Response> => Promise.resolve(new Response(Buffer.from(note, "base64")));
  const source = new Source({ rulesURL, siteKey: key }, { ask, now: Date.now, log: () => {} }, webEd25519);
  const found = await source.pull(rulesURL).catch(() => undefined);
  console.log(JSON.stringify(found ? String(found.version) : null));
}
