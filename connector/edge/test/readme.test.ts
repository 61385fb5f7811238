// What README.md tells owners to write is what the connector takes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { decide, parse } from "../src/rules.ts";

const readme = readFileSync("README.md", "utf8");

test("the rules of wrangler.toml", () => {
  const [, rules = ""] = /PROOFLINE_RULES = """\n([^]*?)"""/.exec(readme) ?? [];
  const site = parse(rules);
  const ask = (target: string) => decide(site, { method: "GET", host: "shop.example.com", target, header: () => [], client: "" }, 0).outcome;
  assert.deepEqual([ask("/tickets/7"), ask("/")], ["queue", "bypass"]);
});

test("all that can be bound, and nothing else", () => {
  const [, env = ""] = /export interface Env \{\n([^]*?)\n\}/.exec(readFileSync("src/main.ts", "utf8")) ?? [];
  const bound = [...env.matchAll(/^ {2}(PROOFLINE_\w+)\?/gm)].map(([, name]) => name);
  assert.ok(bound.length >= 8);
  assert.deepEqual([...readme.matchAll(/^\| `(PROOFLINE_\w+)` \|/gm)].map(([, name]) => name), bound);
});
