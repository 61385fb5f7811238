// Signed rules: which are accepted and refused, and where the token is sent.
import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import test from "node:test";
import { Connector } from "../src/connector.ts";
import { open, parseSiteKey, readRules } from "../src/note.ts";
import { webEd25519 } from "../src/pass.ts";
import { Source, type SourceOptions, serverOf } from "../src/source.ts";

const keyName = "queue.example.com/o/shop";

/** Signer signs notes like a server. */
class Signer {
  readonly #keys = generateKeyPairSync("ed25519");
  readonly #name: string;
  readonly #bytes: Buffer;

  constructor(name = keyName) {
    this.#name = name;
    const { x = "" } = this.#keys.publicKey.export({ format: "jwk" });
    this.#bytes = Buffer.concat([Buffer.of(1), Buffer.from(x, "base64url")]);
  }

  get #id(): Buffer {
    return createHash("sha256").update(`${this.#name}\n`).update(this.#bytes).digest().subarray(0, 4);
  }

  get key(): string {
    return `${this.#name}+${this.#id.toString("hex")}+${this.#bytes.toString("base64")}`;
  }

  line(text: string): string {
    return `\u2014 ${this.#name} ${Buffer.concat([this.#id, sign(null, Buffer.from(text), this.#keys.privateKey)]).toString("base64")}\n`;
  }

  sign(text: string): string {
    return `${text}\n${this.line(text)}`;
  }
}

const us = new Signer();
const rules = (version: number | string, document = `{"version":1}`, site = "shop") =>
  `proofline-rules/v1\n${site}\n${version}\n${document}\n`;

test("notes", async () => {
  const key = await parseSiteKey(us.key);
  const text = "one\n\ntwo \u00e9\n";
  const others = Array.from({ length: 99 }, (_, i) => new Signer(`other${i}`));
  assert.equal(await open(us.sign(text), key, webEd25519), text);
  assert.equal(
    await open(text + "\n" + others.map((o) => o.line(text)).join("") + us.line(text), key, webEd25519),
    text,
  );
  const good = us.sign(text);
  const mark = us.line(text);
  const bad: Record<string, string> = {
    empty: "",
    "no signature": text,
    "no blank line": text + mark,
    "another text": us.sign(text).replace("one", "two"),
    "another key": new Signer().sign(text),
    "another name": us.sign(text).replace(keyName, "queue.example.com/o/other"),
    "our name, another key": `${text}\n${new Signer(keyName).line(text)}`,
    "no last newline": good.slice(0, -1),
    "something behind it": good + "x\n",
    "a blank line behind it": good + "\n",
    "a carriage return": us.sign("one\r\n"),
    "a tab": us.sign("a\tb\n"),
    NUL: us.sign("\0\n"),
    "a short signature": `${text}\n\u2014 ${keyName} ${Buffer.from(key.id, "latin1").toString("base64")}\n`,
    "no base64": good.replace(/\S\S\n$/, "!!\n"),
    "a hyphen": good.replace("\u2014", "-"),
    "too many": text + "\n" + [...others, new Signer("a")].map((o) => o.line(text)).join("") + mark,
    "a bad one before": `${text}\n${us.line("x\n")}${mark}`,
  };
  for (const [what, note] of Object.entries(bad))
    await assert.rejects(open(note, key, webEd25519), { message: /^these rules/ }, what);
  for (let i = 0; i < good.length; i++) {
    if (i === good.length - 3) continue; // two of its bits are unused
    const changed = good.slice(0, i) + (good[i] === "A" ? "B" : "A") + good.slice(i + 1);
    await assert.rejects(open(changed, key, webEd25519), Error, `character ${i}`);
  }
  const parts = us.key.split("+");
  for (const wrong of [
    "",
    "x",
    parts.slice(0, 2).join("+"),
    us.key + "A",
    us.key.replace(keyName, "a b"),
    us.key.replace(keyName, "other"),
    [parts[0], "00000000", parts[2]].join("+"),
    us.key.slice(0, -4),
    us.key.replace(/\+A/, "+B"),
  ]) {
    await assert.rejects(parseSiteKey(wrong), { message: /^the site key/ }, wrong);
  }
});

test("the texts of notes", () => {
  assert.deepEqual(readRules(rules(7, "{\n\n}"), "shop"), { version: 7n, document: "{\n\n}" });
  assert.equal(readRules(rules("9223372036854775807"), "shop").version, 9223372036854775807n);
  for (const text of [
    "",
    "x",
    rules(1).slice(0, -1),
    rules(0),
    rules("01"),
    rules(-1),
    rules("9223372036854775808"),
    rules("1e3"),
    rules(1, "{}", "other"),
    rules(1, "{}", "SHOP"),
    rules(1).replace("v1", "v2"),
    `\n${rules(1)}`,
    "proofline-rules/v1\nshop\n1\n",
  ]) {
    assert.throws(() => readRules(text, "shop"), Error, JSON.stringify(text));
  }
});

/** Web is all servers: its responses are set by the test, and it remembers requests. */
class Web {
  status = 200;
  text = "";
  headers: Record<string, string> = {};
  asked: Request[] = [];
  readonly ask = (request: Request): Promise<Response> => {
    this.asked.push(request);
    return Promise.resolve(
      new Response(this.status === 304 ? null : this.text, { status: this.status, headers: this.headers }),
    );
  };
}

const address = "https://queue.example.com/v1/sites/shop/rules";

function sourceOf(options: SourceOptions) {
  const web = new Web();
  const logged: string[] = [];
  const log = (_: string, text: string, detail: Record<string, unknown>) =>
    void logged.push(`${text}: ${String(detail.error)}`);
  return { web, logged, source: new Source(options, { ask: web.ask, now: Date.now, log }, webEd25519) };
}

test("signed rules are accepted, older ones and others are refused", async () => {
  const { web, source } = sourceOf({ rulesURL: address, siteKey: us.key, token: "secret" });
  const pull = (text: string) => {
    web.text = text;
    return source.pull(address);
  };
  web.headers = { ETag: '"7"' };
  assert.equal((await pull(us.sign(rules(7))))?.version, 7n);
  assert.equal(source.name, "shop");
  assert.equal(await pull(us.sign(rules(7))), undefined, "the same");
  assert.equal(web.asked[0]?.headers.get("If-None-Match"), null);
  assert.equal(web.asked[1]?.headers.get("If-None-Match"), '"7"');
  assert.equal(web.asked[1]?.headers.get("Authorization"), "Bearer secret");
  assert.equal(web.asked[1]?.redirect, "manual");
  const bad: [string, RegExp][] = [
    [us.sign(rules(6)), /version 6, and 7 was seen/],
    [us.sign(rules(7, `{"version":1,"hosts":[]}`)), /two rules have the version 7/],
    [us.sign(rules(8, "{}", "other")), /of the site "other"/],
    [new Signer().sign(rules(8)), /not signed by/],
    [us.sign(rules(8)).replace('"version"', '"hosts"'), /bad signature/],
    [`{"version":1}`, /no signed note/],
    [us.sign("hello\n"), /no rules of version 1/],
    [us.sign(rules(8, " ".repeat(1_000_000))), /more than/],
    [us.sign(rules(8, "\u00e9".repeat((1 << 19) + 2048))), /more than/],
  ];
  for (const [text, why] of bad) await assert.rejects(pull(text), { message: why });
  await assert.rejects(pull(us.sign(rules(9, `{"version":2}`))), { message: /^invalid rules/ });
  await assert.rejects(
    pull(us.sign(rules(8))),
    { message: /version 8, and 9 was seen/ },
    "what cannot be used was seen all the same",
  );
  assert.equal((await pull(us.sign(rules(10))))?.version, 10n);
  web.status = 304;
  assert.equal(await pull(""), undefined);
  for (const status of [401, 403, 404, 500, 302]) {
    web.status = status;
    await assert.rejects(pull(us.sign(rules(11))), { message: new RegExp(`status ${status}`) });
  }
});

test("a bound note is verified, and older rules are refused", async () => {
  const { web, source } = sourceOf({ rulesURL: address, siteKey: us.key, rules: us.sign(rules(5)) });
  assert.equal(source.bound, undefined);
  assert.equal((await source.first())?.version, 5n);
  web.text = us.sign(rules(4));
  await assert.rejects(source.pull(address), { message: /version 4, and 5 was seen/ });
  for (const [text, why] of [
    [new Signer().sign(rules(5)), /not signed by/],
    [us.sign(rules(5, "{}", "other")), /of the site/],
  ] as const) {
    const { source, logged } = sourceOf({ rulesURL: address, siteKey: us.key, rules: text });
    assert.equal(await source.first(), undefined);
    assert.match(logged.join(), why);
  }
});

/** Shelf stores rules like a platform. */
class Shelf {
  text: string | undefined;
  puts = 0;
  isBroken = false;
  readonly get = (): Promise<string | undefined> =>
    this.isBroken ? Promise.reject(new Error("broken")) : Promise.resolve(this.text);
  readonly put = (text: string): Promise<void> => {
    if (this.isBroken) return Promise.reject(new Error("broken"));
    [this.text, this.puts] = [text, this.puts + 1];
    return Promise.resolve();
  };
}

test("saved rules outlive an instance", async () => {
  const keep = new Shelf();
  const begin = (more: SourceOptions = {}) => sourceOf({ rulesURL: address, siteKey: us.key, keep, ...more });
  const one = begin();
  assert.equal(await one.source.first(), undefined);
  one.web.text = us.sign(rules(5));
  await one.source.pull(address);
  for (let i = 0; i < 2; i++) await one.source.save();
  assert.deepEqual([keep.text, keep.puts], [us.sign(rules(5)), 1]);

  const two = begin();
  assert.equal((await two.source.first())?.version, 5n);
  two.web.text = us.sign(rules(4));
  await assert.rejects(two.source.pull(address), { message: /version 4, and 5 was seen/ });
  two.web.text = us.sign(rules(5));
  await two.source.pull(address);
  await two.source.save();
  assert.equal(keep.puts, 1, "a stored document is not stored again");

  assert.equal((await begin({ rules: us.sign(rules(4)) }).source.first())?.version, 5n, "one that is bound is older");
  assert.equal((await begin({ rules: us.sign(rules(6)) }).source.first())?.version, 6n, "one that is bound is newer");
  for (const [text, why] of [
    [new Signer().sign(rules(9)), /not signed by/],
    [us.sign(rules(9, "{}", "other")), /of the site/],
    ["", /no signed note/],
  ] as const) {
    keep.text = text;
    const three = begin({ rules: us.sign(rules(4)) });
    assert.equal((await three.source.first())?.version, 4n);
    assert.match(three.logged.join(), why);
  }
  keep.isBroken = true;
  const four = begin();
  assert.equal(await four.source.first(), undefined);
  four.web.text = us.sign(rules(7));
  assert.equal((await four.source.pull(address))?.version, 7n);
  await four.source.save();
  assert.match(four.logged.join(), /cannot use.*broken.*cannot save.*broken/);
});

test("saved rules are used while the server does not respond", async () => {
  const keep = new Shelf();
  const web = new Web();
  const begin = () =>
    new Connector({
      key: new Uint8Array(32),
      rulesURL: address,
      siteKey: us.key,
      ask: web.ask,
      keep,
      log: () => {},
      site: () => Promise.resolve(new Response("site")),
    });
  const get = async (c: Connector, path: string) =>
    (await c.fetch(new Request(`https://shop.example.com${path}`), { client: "" })).status;
  web.text = us.sign(
    rules(2, `{"version":1,"rules":[{"name":"staff","when":{"path":{"prefix":"/staff"}},"action":"block"}]}`),
  );
  assert.equal(await get(begin(), "/"), 200);
  web.status = 500;
  const next = begin();
  assert.deepEqual([await get(next, "/staff"), await get(next, "/")], [403, 200]);
  keep.text = undefined;
  assert.equal(await get(begin(), "/"), 503, "without rules");
});

test("signed rules need a key", async () => {
  const { web, source } = sourceOf({ rulesURL: address });
  web.text = us.sign(rules(1));
  await assert.rejects(source.pull(address), { message: /give the site key/ });
  web.text = `{"version":1}`;
  assert.equal((await source.pull(address))?.version, 0n);
  assert.equal(source.name, "");
});

test("the token is sent to the server only", async () => {
  for (const [url, server, isShown] of [
    [address, undefined, true],
    [address, "https://queue.example.com", true],
    [address, "https://queue.example.com:443/", true],
    [address, "https://other.example.com", false],
    ["https://rules.example.com/v1/sites/shop/rules", "https://queue.example.com", false],
    ["https://queue.example.com:8443/rules.json", "https://queue.example.com", false],
  ] as const) {
    const { web, source } = sourceOf({ rulesURL: url, server, token: "secret" });
    web.text = `{"version":1}`;
    await source.pull(url);
    assert.equal(
      web.asked[0]?.headers.get("Authorization"),
      isShown ? "Bearer secret" : null,
      `${url} with ${server ?? "none"}`,
    );
  }
  assert.equal(serverOf({ rulesURL: address }), "https://queue.example.com");
  for (const server of [
    "http://queue.example.com",
    "https://queue.example.com/path",
    "https://me@queue.example.com",
    "queue.example.com",
    "https://queue.example.com/?x",
  ]) {
    assert.throws(() => serverOf({ server }), { message: /^the server must be/ }, server);
  }
});

test("conflicting options", () => {
  const options = { key: new Uint8Array(32), site: () => Promise.reject(new Error("no site")) };
  const net = `{"version":1,"rooms":{"sale":{"url":"https://queue.example.com/r/sale","mode":"safety-net"}}}`;
  for (const [more, why] of [
    [{}, /rules or rulesURL/],
    [{ rulesURL: "http://queue.example.com/" }, /https/],
    [{ rulesURL: "https://me@queue.example.com/" }, /https/],
    [{ rules: net }, /safety-net needs a server and a token/],
    [{ rules: net, token: "secret" }, /give the server/],
    [{ rules: net, server: "https://queue.example.com" }, /safety-net needs/],
    [{ rulesURL: "https://queue.example.com/rules.json", siteKey: us.key }, /site key needs/],
    [{ rulesURL: `${address}?x=1`, siteKey: us.key }, /site key needs/],
    [{ rules: net, siteKey: us.key }, /site key needs/],
  ] as [SourceOptions, RegExp][])
    assert.throws(() => new Connector({ ...options, ...more }), { message: why });
  new Connector({ ...options, rules: net, token: "secret", server: "https://queue.example.com" });
});

test("rules with an invalid signature are never used", async () => {
  const web = new Web();
  let now = 0;
  const failing: string[] = [];
  const connector = new Connector({
    key: new Uint8Array(32),
    rulesURL: address,
    siteKey: us.key,
    ask: web.ask,
    now: () => now,
    log: (_, text, detail) => failing.push(`${text} ${JSON.stringify(detail)}`),
    site: () => Promise.resolve(new Response("site")),
  });
  const get = async () => (await connector.fetch(new Request("https://shop.example.com/x"), { client: "" })).status;
  const blocks = `{"version":1,"rules":[{"name":"all","action":"block"}]}`;
  web.text = new Signer().sign(rules(1));
  assert.equal(await get(), 503, "there are none");
  web.text = us.sign(rules(2, blocks));
  assert.equal(await get(), 403);
  for (const text of [
    new Signer().sign(rules(3)),
    us.sign(rules(1)),
    us.sign(rules(3)).replace("\n3\n", "\n4\n"),
    `{"version":1}`,
  ]) {
    [web.text, now] = [text, now + 10_000];
    for (let i = 0; i < 3; i++) {
      assert.equal(await get(), 403);
      await new Promise((done) => setTimeout(done, 5));
    }
  }
  assert.equal(connector.stats().rulesVersion, "2");
  assert.equal(failing.filter((line) => line.startsWith("new rules are invalid")).length, 5, failing.join("\n"));
});
