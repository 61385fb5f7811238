// The configurations in README.md work.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import test from "node:test";
import type { CloudFrontRequest, CloudFrontResponse, cloudFront } from "../src/cloudfront.ts";
import { decide, parse } from "../src/rules.ts";
import { eventually, serve } from "./kit.ts";

const key = "0123456789abcdef0123456789abcdef";
const readme = readFileSync("README.md", "utf8");

test("the rules of wrangler.toml", () => {
  const [, rules = ""] = /PROOFLINE_RULES = """\n([^]*?)"""/.exec(readme) ?? [];
  const site = parse(rules);
  const ask = (target: string) =>
    decide(site, { method: "GET", host: "shop.example.com", target, header: () => [], client: "" }, 0).outcome;
  assert.deepEqual([ask("/tickets/7"), ask("/")], ["queue", "bypass"]);
});

test("the bindings, and no others", () => {
  const [, env = ""] = /export interface Env \{\n([^]*?)\n\}/.exec(readFileSync("src/main.ts", "utf8")) ?? [];
  const bound = [...env.matchAll(/^ {2}(PROOFLINE_\w+)\?/gm)].map(([, name]) => name);
  assert.ok(bound.length >= 8);
  assert.deepEqual(
    [...readme.matchAll(/^\| `(PROOFLINE_\w+)` \|/gm)].map(([, name]) => name),
    bound,
  );
});

const rules =
  '{"version":1,"rooms":{"sale":{"url":"http://127.0.0.1:1/r/sale"}},"rules":[{"name":"staff","when":{"path":{"prefix":"/staff"}},"action":"block"}]}';

/** written writes the first program of a section of README.md next to the module, with changes. */
function written(section: string, changes: Record<string, string>): string {
  const dir = mkdtempSync(join(tmpdir(), "proofline-edge-"));
  let [, program = ""] = new RegExp(`\n## ${section}\n[^]*?\`\`\`js\n([^]*?)\`\`\``).exec(readme) ?? [];
  for (const [text, other] of Object.entries(changes)) {
    assert.ok(program.includes(text), text);
    program = program.replace(text, other);
  }
  copyFileSync("proofline-edge.js", join(dir, "proofline-edge.js"));
  writeFileSync(join(dir, "package.json"), '{"type":"module"}');
  writeFileSync(join(dir, "rules.json"), rules);
  writeFileSync(join(dir, "rules.js"), `export default ${JSON.stringify(rules)};`);
  writeFileSync(join(dir, "main.js"), program);
  return dir;
}

test("the functions for CloudFront", async () => {
  const dir = written("CloudFront", { '"..."': JSON.stringify(key) });
  try {
    const { viewerRequest } = (await import(join(dir, "main.js"))) as ReturnType<typeof cloudFront>;
    const ask = (uri: string) =>
      viewerRequest({
        Records: [
          {
            cf: {
              request: {
                method: "GET",
                uri,
                querystring: "",
                clientIp: "192.0.2.1",
                headers: { host: [{ key: "Host", value: "shop.example.com" }] },
              },
            },
          },
        ],
      });
    assert.equal(((await ask("/staff")) as CloudFrontResponse).status, "403");
    assert.equal(((await ask("/about")) as CloudFrontRequest).uri, "/about");
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("the program for Deno", async (t) => {
  const has = spawnSync("node_modules/.bin/deno", ["--version"]); // installs the binary
  const program = resolve("node_modules/deno/deno");
  if (has.status !== 0 || !existsSync(program)) return t.skip("npm has no Deno for this machine");
  const [, options = ""] = /`deno run (.*) main\.js`/.exec(readme) ?? [];
  const { server, url } = await serve((_, w) => w.end("site"));
  server.on("upgrade", (_, socket) =>
    socket.end(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
    ),
  );
  const dir = written("Deno", { "https://origin.example.com": url });
  const env = { ...process.env, PROOFLINE_KEY: key, DENO_SERVE_ADDRESS: "tcp:127.0.0.1:0", NO_COLOR: "1" };
  const deno = spawn(program, ["run", "--no-prompt", ...options.split(" "), "main.js"], { cwd: dir, env });
  const isOver = once(deno, "close");
  try {
    let said = "";
    for (const out of [deno.stdout, deno.stderr]) out.on("data", (chunk: Buffer) => (said += chunk.toString()));
    await eventually("it listens", () => deno.exitCode !== null || /http:\/\/127\.0\.0\.1:\d+/.test(said));
    const [address = ""] = /http:\/\/127\.0\.0\.1:\d+/.exec(said) ?? [];
    const statuses = await Promise.all(["/staff", "/about"].map(async (path) => (await fetch(address + path)).status));
    assert.deepEqual(statuses, [403, 200], said);
    const socket = request(`${address}/about`, {
      headers: {
        Connection: "Upgrade",
        Upgrade: "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
      },
    }).end();
    const [answer] = (await once(socket, "response")) as [IncomingMessage];
    answer.resume();
    assert.equal(answer.statusCode, 501, "a socket, which no fetch passes on");
  } finally {
    deno.kill();
    await isOver;
    server.close();
    rmSync(dir, { recursive: true });
  }
});
