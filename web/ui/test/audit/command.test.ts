import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";

import { run } from "../../src/audit/command.ts";
import { type Files, Log, Operator, script } from "../support/room.ts";

const operator = new Operator("queue.example.com/r/show", "honest");
const stranger = new Operator("queue.example.com/r/show", "stranger");
const dir = mkdtempSync(join(tmpdir(), "audit-"));
after(() => rmSync(dir, { recursive: true }));

/** Writes a published log below the directory and returns its path. */
function written(name: string, { map }: Files): string {
  for (const [path, content] of map) {
    const file = join(dir, name, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  return join(dir, name);
}

async function command(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const said = { out: "", err: "" };
  const code = await run(args, { write: (text) => (said.out += text) }, { write: (text) => (said.err += text) });
  return { code, ...said };
}

const log = script(operator, [30, 20, 10]).log();
const honest = written("honest", log.publish(operator));

test("an honest room is verified", async () => {
  const { code, out, err } = await command(honest, "--vkey", operator.vkey);
  assert.deepEqual([code, err], [0, ""]);
  assert.match(out, /^CONSISTENT\nlevel 1, consistent\n/);
  assert.match(out, /arrivals {5}63 in 3 windows, 3 of them drawn\n/);
  assert.doesNotMatch(out, /named by the transcript/);
  assert.match((await command(honest)).out, /named by the transcript itself/);
});

test("keys can be in files", async () => {
  const file = join(dir, "vkey");
  writeFileSync(file, `${stranger.vkey}\n`);
  const { code, out } = await command(honest, "--vkey", `@${file}`, "--json");
  assert.equal(code, 1);
  const report = JSON.parse(out);
  assert.deepEqual([report.ok, report.level, report.key], [false, 0, stranger.vkey]);
});

test("a partial bundle that is gone is read from the full one", async () => {
  const grown = script(operator, [300, 2, 2]).log();
  const early = new Log(grown.entries.slice(0, 100)).publish(operator);
  const place = written("grown", grown.publish(operator).with("checkpoint", early.map.get("checkpoint")!));
  const { code, out } = await command(place, "--vkey", operator.vkey);
  assert.equal(code, 0, out);
  assert.match(out, /entries {6}100,/);
});

test("a room is read over HTTP, and failed requests are retried", async () => {
  const { map } = log.publish(operator);
  let asked = 0;
  const server = createServer(({ url = "" }, answer) => {
    const content = ++asked === 1 ? undefined : map.get(url.replace("/r/show/", ""));
    answer.writeHead(content ? 200 : 503).end(content);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const { code, out, err } = await command(`http://127.0.0.1:${port}/r/show`, "--vkey", operator.vkey);
  server.close();
  assert.deepEqual([code, err], [0, ""]);
  assert.match(out, /^CONSISTENT/);
  assert.equal(asked, 3);
});

test("a broken rule is named with its entry", async () => {
  const { code, out } = await command(written("dropped", new Log(log.entries.toSpliced(5, 1)).publish(operator)));
  assert.equal(code, 1);
  assert.match(out, /^NOT VERIFIED\nlevel 0, nothing: a check failed\n/);
  assert.match(out, /\nbroken: arrival at entry 5: seq is not .*\n {4}"arrive .* general"\n$/);
});

test("wrong usage and unreadable logs", async () => {
  for (const args of [
    [],
    [honest, honest],
    [honest, "--vkey", "x"],
    [honest, "--beacon", "12"],
    [honest, "--witness", operator.vkey],
    ["--bad"],
  ]) {
    const { code, out, err } = await command(...args);
    assert.deepEqual([code, out], [2, ""], args.join(" "));
    assert.match(err, /^audit: .*\nhint: .*\n$/);
  }
  const { code, out, err } = await command(join(dir, "nothing"));
  assert.deepEqual([code, out], [3, ""]);
  assert.match(err, /^audit: read .*\nhint: .*\n$/);
  assert.match((await command("--help")).out, /^Check a whole transcript/);
});
