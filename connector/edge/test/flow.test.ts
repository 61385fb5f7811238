// Visitors, in workerd.
import assert from "node:assert/strict";
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { Miniflare } from "miniflare";
import { Connector } from "../src/connector.ts";
import { siteAt } from "../src/main.ts";
import { cookieOf, eventually, Queue, Shop, serve, withShop } from "./kit.ts";

withShop("a visitor without a pass is sent to the room", async (s) => {
  const page = await s.get("/tickets?a=1&b=2");
  s.isQueued(page);
  assert.equal(page.status, 302);
  assert.equal(page.headers.location, `${s.queue.url}?to=http%3A%2F%2Fshop.example.com%2Ftickets%3Fa%3D1%26b%3D2`);
  assert.equal(page.headers["cache-control"], "no-store");
  const form = await s.send("POST", "/tickets/buy", {
    "Sec-Fetch-Mode": "navigate",
    Referer: "http://shop.example.com/tickets?x=1&proofline_pass=y",
  });
  assert.deepEqual(
    [form.status, form.headers.location],
    [303, `${s.queue.url}?to=http%3A%2F%2Fshop.example.com%2Ftickets%3Fx%3D1`],
  );
  const elsewhere = await s.send("POST", "/tickets/buy", {
    "Sec-Fetch-Mode": "navigate",
    Referer: "http://evil.example.net/tickets",
  });
  assert.equal(elsewhere.headers.location, s.queue.url);
  const script = await s.send("GET", "/tickets", { "Sec-Fetch-Mode": "cors" });
  assert.deepEqual(
    [script.status, script.body],
    [403, `{"error":"queue","join":"${s.queue.url}","room":"${s.queue.url}"}\n`],
  );
  s.isQueued(script);
  s.isQueued(await s.get("/tickets", { Upgrade: "websocket", Connection: "Upgrade" }), "a socket");
  const blocked = await s.send("GET", "/secret/x");
  assert.deepEqual([blocked.status, blocked.body], [403, '{"error":"blocked"}\n']);
  s.isThrough(await s.get("/about?x=/tickets"), "a free page");
});

withShop("a pass is redeemed once, and removed from the URL", async (s) => {
  const claims = s.queue.claims();
  const pass = s.queue.pass(claims);
  const answer = await s.get(`/tickets/7?b=2&proofline_pass=${pass}&a=%20x&proofline%5Fpass=y&c`);
  assert.deepEqual([answer.status, answer.headers.location], [303, "/tickets/7?b=2&a=%20x&c"]);
  const session = { Cookie: `x=1; ${cookieOf(answer)}; y=2` };
  const got = s.isThrough(
    await s.send(
      "POST",
      "/tickets/7",
      { ...session, "X-Proofline-Ticket": "forged", X_Proofline_Room: "forged", "X-Original-URL": "/other" },
      "two tickets",
    ),
  );
  assert.equal(got.headers["x-proofline-ticket"], claims.sub);
  assert.equal(got.headers["x-proofline-room"], "sale");
  assert.equal(got.body, "two tickets");
  assert.ok(!("x_proofline_room" in got.headers) && !("x-original-url" in got.headers));
  assert.deepEqual([got.headers["x-forwarded-host"], got.headers["x-forwarded-proto"]], ["shop.example.com", "http"]);
  s.isQueued(await s.get(`/tickets?proofline_pass=${pass}`, { "User-Agent": "another" }), "again, by another browser");
  s.isQueued(
    await s.get(`/tickets?proofline_pass=${pass}`, { "CF-Connecting-IP": "198.51.101.7" }),
    "again, from elsewhere",
  );
  const again = await s.get(`/tickets?proofline_pass=${pass}`, session);
  assert.deepEqual([again.status, again.headers.location, again.headers["set-cookie"]], [303, "/tickets", undefined]);
  const free = await s.get(`/about?proofline_pass=${s.queue.pass()}`);
  assert.deepEqual([free.status, free.headers.location], [303, "/about"]);
  cookieOf(free);
  assert.equal(
    s.isThrough(await s.get("/about", { "X-Proofline-Ticket": "forged" })).headers["x-proofline-ticket"],
    undefined,
  );
  assert.equal(
    (await s.get(`//evil.example.net/%2e%2e/tickets?proofline_pass=${s.queue.pass()}`)).headers.location?.startsWith(
      "//",
    ),
    false,
  );
});

withShop("a lost response of the room does not cost the pass", async (s) => {
  const pass = s.queue.pass();
  s.queue.isLost = true;
  assert.equal((await s.get(`/tickets?proofline_pass=${pass}`)).status, 503);
  s.queue.isLost = false;
  const session = await s.enter(pass);
  s.isThrough(await s.get("/tickets", session));
  assert.ok(s.queue.clients.length >= 2 && s.queue.clients.every((client) => /^[A-Za-z0-9_-]{22}$/.test(client ?? "")));
  assert.equal(new Set(s.queue.clients).size, 1);
});

test("an exception after the site's response leaves that response unchanged", async () => {
  const queue = await new Queue().start();
  let isBroken = false;
  const connector = new Connector({
    key: new Uint8Array(32),
    rules: `{"version":1,"rooms":{"sale":{"url":"${queue.url}"}},"rules":[{"name":"a","action":"queue sale"}]}`,
    site: () => {
      isBroken = true;
      return Promise.resolve(new Response("site", { headers: { "Proofline-Command": "release" } }));
    },
    log: () => {},
    now: () => {
      if (isBroken) throw new Error("broken");
      return Date.now();
    },
  });
  try {
    const get = (url: string, headers: Record<string, string> = {}) =>
      connector.fetch(new Request(url, { headers: { Accept: "text/html", ...headers } }), { client: "192.0.2.1" });
    const entered = await get(`https://shop.example.com/?proofline_pass=${queue.pass()}`);
    const cookie = entered.headers.get("Set-Cookie")?.split(";")[0] ?? "";
    const answer = await get("https://shop.example.com/x", { Cookie: cookie });
    assert.deepEqual(
      [answer.status, await answer.text(), answer.headers.get("Proofline-Command"), connector.counts.faults],
      [200, "site", null, 1],
    );
  } finally {
    queue.server?.close();
  }
});

withShop("a socket", async (s) => {
  const upgrade = {
    Connection: "Upgrade",
    Upgrade: "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
  };
  s.isQueued(await s.get("/tickets", upgrade));
  const answer = await s.get("/tickets", { ...upgrade, ...(await s.enter()) });
  assert.equal(answer.status, 101);
  assert.match(answer.body, /hi/);
  assert.equal(s.isThrough(answer).headers["x-proofline-room"], "sale");
});

withShop("invalid passes", async (s) => {
  const other = generateKeyPairSync("ed25519").privateKey;
  const now = Math.floor(Date.now() / 1000);
  const changed = (more: Record<string, unknown>) => s.queue.pass({ ...s.queue.claims(), ...more });
  const good = s.queue.pass();
  const [head = "", body = "", mark = ""] = good.split(".");
  const bad: Record<string, string> = {
    empty: "",
    text: "x",
    dots: "..",
    truncated: good.slice(0, -2),
    longer: `${good}A`,
    "no signature": `${head}.${body}.`,
    "another body": `${head}.${s.queue.pass().split(".")[1] ?? ""}.${mark}`,
    "another key": s.queue.pass(undefined, {}, other),
    "alg none": s.queue.pass(undefined, { alg: "none" }),
    HS256: s.queue.symmetric(),
    ...Object.fromEntries(
      [1, 2, 3, 4, 5].map((n) => [`unknown kid ${n}`, s.queue.pass(undefined, { kid: `unknown ${n}` })]),
    ),
    "kid as number": s.queue.pass(undefined, { kid: 1 }),
    "a key in the header": s.queue.pass(undefined, { jwk: { kty: "OKP" } }),
    "address of keys": s.queue.pass(undefined, { jku: "http://127.0.0.1/" }),
    "another room": changed({ iss: `${s.queue.url}2` }),
    "another site": changed({ aud: ["shop.example.net"] }),
    "two audiences": changed({ aud: [s.queue.url.slice(7), "x"] }),
    expired: changed({ exp: now - 6 }),
    future: changed({ nbf: now + 60 }),
    "issued later": changed({ iat: now + 60 }),
    "no end": changed({ exp: undefined }),
    "no beginning": changed({ nbf: undefined }),
    "end as text": changed({ exp: String(now + 60) }),
    "no ticket": changed({ sub: "a" }),
    "capital id": changed({ jti: randomUUID().toUpperCase() }),
    long: `${good}${"A".repeat(2048)}`,
  };
  for (const [what, pass] of Object.entries(bad)) {
    const answer = await s.get(`/tickets?a=1&proofline_pass=${encodeURIComponent(pass)}`);
    s.isQueued(answer, what);
    assert.equal(answer.headers["set-cookie"], undefined, what);
    assert.ok(answer.headers.location?.endsWith("%2Ftickets%3Fa%3D1"), what);
  }
  assert.ok(s.queue.asked <= 3, `keys were asked for ${s.queue.asked} times`);
  assert.deepEqual(s.queue.received, []);
  await s.enter(changed({ exp: now - 3, aud: s.queue.url.slice(7) }));
});

withShop("malformed cookies", async (s) => {
  const { Cookie: good = "" } = await s.enter();
  const [name = "", value = ""] = good.split("=");
  const flipped = (i: number) => value.slice(0, i) + (value[i] === "A" ? "B" : "A") + value.slice(i + 1);
  for (let i = 0; i < value.length; i += 29)
    s.isQueued(await s.get("/tickets", { Cookie: `${name}=${flipped(i)}` }), `character ${i}`);
  for (const other of ["", "x", `${value}A`, `${value}=`, value.slice(0, -1), "A".repeat(300), "A".repeat(5000)])
    s.isQueued(await s.get("/tickets", { Cookie: `${name}=${other}` }), other);
  s.isQueued(await s.get("/tickets", { Cookie: `__Host-proofline-pass.other=${value}` }), "of another room");
  s.isThrough(await s.get("/tickets", { Cookie: `${name}=x; ${good}` }), "with an invalid cookie in addition");
  s.later(901_000);
  s.isQueued(await s.get("/tickets", { Cookie: good }), "over");
});

withShop(
  "a session of another room",
  async (s) => {
    const [, value = ""] = String((await s.enter()).Cookie).split("=");
    s.isThrough(await s.get("/tickets", { Cookie: `__Host-proofline-pass.sale=${value}` }));
    const other = await s.get("/other", { Cookie: `__Host-proofline-pass.other=${value}` });
    assert.ok(s.got.length === 0 && other.status !== 200, `status ${other.status}`);
  },
  '},"other":{"url":"http://127.0.0.1:1/r/other"',
  {},
  '{"name":"other","when":{"path":{"prefix":"/other"}},"action":"queue other"},',
);

withShop("sessions slide, up to their latest end", async (s) => {
  let session = await s.enter();
  s.later(59_000);
  assert.equal((await s.get("/tickets", session)).headers["set-cookie"], undefined);
  s.later(2_000);
  s.answer = { "Cache-Control": "public, max-age=60" };
  assert.equal((await s.get("/tickets", session)).headers["set-cookie"], undefined, "what caches keep has no cookie");
  s.answer = {};
  for (let i = 0; i < 6; i++) {
    session = { Cookie: cookieOf(await s.get("/tickets", session)) };
    assert.equal((await s.get("/tickets", session)).headers["set-cookie"], undefined);
    s.later(580_000);
  }
  s.got = [];
  s.isThrough(await s.get("/tickets", session), "after an hour less a minute");
  await eventually("touches", () => s.queue.received.filter((what) => what === "touch").length >= 6);
  s.later(130_000);
  s.isQueued(await s.get("/tickets", session), "after four times its length");
});

withShop("a session ends when the room says so", async (s) => {
  const session = await s.enter();
  s.later(61_000);
  s.queue.said = "over";
  s.isThrough(await s.get("/tickets", session));
  await eventually("refused", async () => (await s.get("/tickets", session)).status === 302);
});

withShop("the site ends a session", async (s) => {
  const session = await s.enter();
  s.answer = { "Proofline-Command": "release", "X-Other": "stays" };
  const answer = await s.get("/tickets", session);
  s.isThrough(answer);
  assert.deepEqual(
    [answer.headers["proofline-command"], answer.headers["x-other"], answer.body],
    [undefined, "stays", "tickets"],
  );
  assert.match(answer.headers["set-cookie"]?.[0] ?? "", /^__Host-proofline-pass\.sale=; Path=\/; Max-Age=0;/);
  s.isQueued(await s.get("/tickets", session));
  await eventually("the room gets the release", () => s.queue.received.includes("release"));
  assert.equal((await s.get("/about")).headers["proofline-command"], undefined);
});

withShop("the retry page", async (s) => {
  const session = await s.enter();
  s.queue.isDown = true;
  for (const answer of [await s.get(`/tickets?proofline_pass=${s.queue.pass()}`), await s.get("/tickets")]) {
    assert.equal(answer.status, 503);
    assert.ok(Number(answer.headers["retry-after"]) >= 10 && Number(answer.headers["retry-after"]) < 20);
    assert.match(answer.body, /http-equiv="refresh"/);
    assert.match(
      String(answer.headers["content-security-policy"]),
      /^default-src 'none'; .*style-src 'sha256-[\w+/]{43}='$/,
    );
  }
  assert.equal((await s.send("GET", "/tickets")).body, '{"error":"unavailable"}\n');
  s.isThrough(await s.get("/tickets", session), "with a session");
  s.isThrough(await s.get("/about"), "a free page");
  s.queue.isDown = false;
  s.later(1001);
  await eventually("there again", async () => (await s.get("/tickets")).status === 302);
  s.got = [];
  assert.equal((await s.counts()).rooms.sale?.downSince, undefined);
});

withShop("the first visitor of an isolate notices that the room is down", async (s) => {
  s.queue.isDown = true;
  assert.equal((await s.get("/tickets")).status, 503);
});

withShop(
  "the owner's page",
  async (s) => {
    s.queue.isDown = true;
    const page = await s.get("/tickets");
    assert.deepEqual([page.status, page.body], [503, "<p>Sorry"]);
    assert.equal((await s.send("POST", "/tickets")).body, '{"error":"unavailable"}\n');
  },
  ',"failure":"page"',
  { PROOFLINE_PAGE: "<p>Sorry" },
);

withShop(
  "open after 30 s",
  async (s) => {
    s.isQueued(await s.get("/tickets"));
    s.queue.isDown = true;
    const withPass = () => s.get(`/tickets?proofline_pass=${s.queue.pass()}`);
    assert.equal((await withPass()).status, 503);
    s.later(31_000);
    assert.equal((await s.get("/tickets")).status, 503, "after one failure alone");
    await eventually("it has failed again", async () => (await withPass()).status === 200);
    s.got = [];
    assert.equal(
      s.isThrough(await s.get(`/tickets?a=1&proofline_pass=${s.queue.pass()}`), "open").url,
      "/tickets?a=1",
      "the site gets no pass",
    );
    const answer = await s.get("/tickets", { "X-Proofline-Ticket": "forged" });
    assert.equal(s.isThrough(answer).headers["x-proofline-ticket"], undefined);
    assert.equal(answer.headers["set-cookie"], undefined);
    const { rooms } = await s.counts();
    assert.ok((rooms.sale?.failOpen[0]?.requests ?? 0) >= 2);
    s.queue.isDown = false;
    s.later(1001);
    await eventually("closed again", async () => (await s.get("/tickets")).status === 302);
    assert.ok((await s.counts()).rooms.sale?.failOpen[0]?.until);
  },
  ',"failure":"fail-open-after 30s"',
);

test("a pass of another room does not trigger that room's failure mode", async () => {
  const queue = await new Queue().start();
  let ahead = 0;
  const rooms = `"sale":{"url":"${queue.url}","failure":"fail-open-after 1s"},"drop":{"url":"${queue.home}/r/drop"},"again":{"url":"${queue.url}"}`;
  const rules = ["sale", "drop", "again"]
    .map((room) => `{"name":"${room}","when":{"path":{"prefix":"/${room}"}},"action":"queue ${room}"}`)
    .join();
  const connector = new Connector({
    key: new Uint8Array(32).fill(7),
    rules: `{"version":1,"rooms":{${rooms}},"rules":[${rules}]}`,
    site: async () => new Response("tickets"),
    now: () => Date.now() + ahead,
    log: () => {},
  });
  const get = async (path: string) =>
    (
      await connector.fetch(new Request(`https://shop.example.com${path}?proofline_pass=${queue.pass()}`), {
        client: "198.51.100.7",
      })
    ).status;
  try {
    assert.equal(await get("/sale"), 303);
    queue.isDown = true;
    assert.equal(await get("/sale"), 503);
    ahead = 60_000;
    await get("/sale");
    assert.deepEqual([await get("/sale"), await get("/drop"), await get("/again")], [200, 503, 503]);
  } finally {
    queue.server?.close();
  }
});

test("the log names a host that is not in the rules, once a minute", async () => {
  const logged: string[] = [];
  let now = 0;
  const connector = new Connector({
    key: new Uint8Array(32),
    now: () => now,
    log: (level, text, { host }) => logged.push(`${level} ${text.slice(0, 15)} ${String(host)}`),
    site: async () => new Response("site"),
    rules: `{"version":1,"hosts":["shop.example.com"]}`,
  });
  for (const [at, host, want] of [
    [0, "shop.example.com", []],
    [0, "www.example.com", ["warn request blocked www.example.com"]],
    [59_999, "b.example.com", []],
    [60_000, "b.example.com", ["warn request blocked b.example.com"]],
  ] as const) {
    now = at;
    await connector.fetch(new Request(`https://${host}/`), { client: "192.0.2.1" });
    assert.deepEqual(logged.splice(0), want, `${host} at ${at}`);
  }
});

test("malformed addresses, as some platforms rewrite them", async () => {
  const connector = new Connector({
    key: new Uint8Array(32).fill(7),
    log: () => {},
    site: async () => new Response("site"),
    rules: `{"version":1,"hosts":["shop.example.com"],"rules":[{"name":"staff","when":{"path":{"prefix":"/staff"}},"action":"block"}]}`,
  });
  for (const [url, host, want] of [
    ["https://shop.example.com/", "", 200],
    ["https://shop.example.com/", "SHOP.example.com:443", 200],
    ["https://shop.example.com/x/staff", "shop.example.com/x", 400],
    ["https://shop.example.com/", "a@shop.example.com", 400],
    ["ftp://shop.example.com/", "", 400],
    ["ftp://shop.example.com/.proofline/enter?to=ftp%3A%2F%2Fshop.example.com%2F", "", 404],
    ["https://shop.example.com/.proofline/enter?to=https%3A%2F%2Fshop.example.com%2F", "", 303],
  ] as const) {
    const answer = await connector.fetch(new Request(url, { headers: host ? { Host: host } : {} }), {
      client: "198.51.100.7",
    });
    assert.equal(answer.status, want, `${url} ${host}`);
  }
});

test("malformed addresses, as Deno passes them on", async () => {
  const connector = new Connector({
    key: new Uint8Array(32).fill(7),
    log: () => {},
    site: async () => new Response("site"),
    rules: '{"version":1}',
  });
  for (const url of ["http://[/", "http://shop.example.com:99999/", "http://a b/", "http://%/.proofline/enter", ""]) {
    const request = Object.defineProperty(new Request("https://shop.example.com/"), "url", { value: url });
    const answer = await connector.fetch(request, { client: "198.51.100.7" });
    assert.deepEqual([answer.status, await answer.text()], [400, '{"error":"malformed"}\n'], url);
  }
  assert.deepEqual([connector.counts.blocked, connector.counts.faults], [5, 0]);
});

test("methods that fetch cannot send", async () => {
  const sent: string[] = [];
  const site = siteAt("https://origin.example.com", async ({ method, url }) => {
    sent.push(`${method} ${url}`);
    return new Response("site");
  });
  for (const [method, want] of [
    ["GET", 200],
    ["PROPFIND", 200],
    ["TRACE", 501],
    ["TRACK", 501],
  ] as const) {
    const request = Object.defineProperty(new Request("https://shop.example.com/a?b"), "method", { value: method });
    assert.equal((await site(request)).status, want, method);
  }
  assert.deepEqual(sent, ["GET https://origin.example.com/a?b", "PROPFIND https://origin.example.com/a?b"]);
});

withShop(
  "refusals open nothing",
  async (s) => {
    s.queue.status = 404;
    s.isQueued(await s.get(`/tickets?proofline_pass=${s.queue.pass()}`));
    s.later(100_000);
    s.isQueued(await s.get(`/tickets?proofline_pass=${s.queue.pass()}`));
    s.queue.status = 429;
    assert.equal((await s.get(`/tickets?proofline_pass=${s.queue.pass()}`)).status, 503);
  },
  ',"failure":"fail-open-after 1s"',
);

withShop("a new key is used", async (s) => {
  await s.enter();
  [s.queue.keys, s.queue.kid] = [generateKeyPairSync("ed25519"), "k2"];
  s.later(10_001);
  await s.enter();
});

withShop(
  "sessions bound to a network",
  async (s) => {
    const session = await s.enter();
    s.isThrough(await s.get("/tickets", { ...session, "CF-Connecting-IP": "198.51.100.200" }));
    s.isThrough(await s.get("/tickets", { ...session, "CF-Connecting-IP": "::ffff:198.51.100.1" }));
    s.isQueued(await s.get("/tickets", { ...session, "CF-Connecting-IP": "198.51.101.7" }));
    s.isQueued(await s.get("/tickets", { ...session, "CF-Connecting-IP": "2001:db8::1" }));
  },
  ',"bind":"network"',
);

withShop(
  "a closed room",
  async (s) => {
    const answer = await s.get(`/tickets?proofline_pass=${s.queue.pass()}`);
    assert.deepEqual(
      [answer.status, answer.headers.location, answer.headers["content-type"]],
      [403, undefined, "text/html; charset=utf-8"],
    );
    assert.ok(
      answer.body.includes("<h1>Closed at the moment</h1>") &&
        !answer.body.includes(s.queue.url) &&
        !answer.body.includes("refresh"),
      answer.body,
    );
    const script = await s.send("GET", "/tickets");
    assert.deepEqual(
      [script.status, script.body, script.headers["proofline-queue"]],
      [403, `{"error":"closed","room":"${s.queue.url}"}\n`, undefined],
    );
    assert.equal(s.got.length, 0);
    const { blocked, queued } = await s.counts();
    assert.deepEqual([blocked, queued], [2, 0]);
  },
  ',"mode":"closed"',
);

test("rules from a URL; the last valid ones stay", async () => {
  let [text, version, status, asked] = ["", 1, 200, 0];
  const { server, url } = await serve((r, w) => {
    asked++;
    const tag = `"${version}"`;
    const isSame = r.headers["if-none-match"] === tag;
    setTimeout(() => w.writeHead(isSame ? 304 : status, { ETag: tag }).end(isSame ? "" : text), 50);
  });
  const s = await Shop.open("", { PROOFLINE_RULES_URL: url });
  const opens = async (path: string) => (await s.get(path)).status === 200;
  try {
    text = s.rules("", '{"name":"free","when":{"path":{"prefix":"/tickets/free"}},"action":"bypass"},');
    assert.deepEqual(await Promise.all([1, 2, 3].map(() => opens("/tickets/free"))), [true, true, true]);
    const first = asked;
    assert.ok(await opens("/tickets/free"));
    s.later(10_001);
    await opens("/");
    await eventually("not modified", () => asked === first + 1);
    for (const [nextText, nextStatus] of [
      ["{", 200],
      [text, 500],
    ] as const) {
      [text, status, version] = [nextText, nextStatus, version + 1];
      s.later(10_001);
      const before = asked;
      await opens("/");
      await eventually("asked", () => asked > before);
      assert.ok(await opens("/tickets/free"));
    }
    [text, status, version] = [s.rules(), 200, version + 1];
    s.later(10_001);
    await eventually("new rules", async () => !(await opens("/tickets/free")));
  } finally {
    server.close();
    await s.close();
  }
});

test("bound rules apply until the URL responds", async () => {
  const { server, url } = await serve((_, w) => w.writeHead(500).end());
  const s = await Shop.open("", { PROOFLINE_RULES_URL: url });
  try {
    s.isQueued(await s.get("/tickets"));
    s.isThrough(await s.get("/about"));
  } finally {
    server.close();
    await s.close();
  }
});

test("invalid bindings admit no requests", async () => {
  const rules = '{"version":1,"rooms":{"sale":{"url":"http://127.0.0.1:1/r/sale","failure":"page"}}}';
  const key = "0123456789abcdef0123456789abcdef";
  const wrong: Record<string, string>[] = [
    {},
    { PROOFLINE_RULES: '{"version":1}' },
    { PROOFLINE_KEY: key.slice(1), PROOFLINE_RULES: '{"version":1}' },
    { PROOFLINE_KEY: key },
    { PROOFLINE_KEY: key, PROOFLINE_RULES: "{" },
    { PROOFLINE_KEY: key, PROOFLINE_RULES: rules },
    { PROOFLINE_KEY: key, PROOFLINE_RULES_URL: "http://rules.example.com/" },
    { PROOFLINE_KEY: key, PROOFLINE_RULES_URL: "http://127.0.0.1:1/" },
    { PROOFLINE_KEY: key, PROOFLINE_RULES: '{"version":1}', PROOFLINE_ORIGIN: "https://origin.example.com/path" },
  ];
  for (const bindings of wrong) {
    const worker = new Miniflare({
      modules: true,
      scriptPath: "proofline-edge.js",
      compatibilityDate: "2026-03-01",
      bindings,
      handleRuntimeStdio: () => {},
    });
    const answer = await worker.dispatchFetch("http://shop.example.com/about", { headers: { Accept: "text/html" } });
    assert.equal(answer.status, 503, JSON.stringify(bindings));
    await worker.dispose();
  }
});

test("an isolate that starts while the server is down uses the data center's copy", async () => {
  let isDown = false;
  const rules = '{"version":1,"rules":[{"name":"staff","when":{"path":{"prefix":"/staff"}},"action":"block"}]}';
  const { server, url } = await serve((_, w) => (isDown ? w.writeHead(500).end() : w.end(rules)));
  const site = await serve((_, w) => w.end("site"));
  const cachePersist = mkdtempSync(join(tmpdir(), "proofline-edge-"));
  const statusesOf = async (path: string): Promise<number[]> => {
    const bindings = {
      PROOFLINE_KEY: "0123456789abcdef0123456789abcdef",
      PROOFLINE_RULES_URL: url,
      PROOFLINE_ORIGIN: site.url,
    };
    const worker = new Miniflare({
      modules: true,
      scriptPath: "proofline-edge.js",
      compatibilityDate: "2026-03-01",
      bindings,
      cachePersist,
      handleRuntimeStdio: () => {},
    });
    const get = async (path: string) => (await worker.dispatchFetch(`http://shop.example.com${path}`)).status;
    const statuses = [await get(path), await get("/about")];
    const kept = await ((await worker.getCaches()) as unknown as CacheStorage).open("proofline");
    await eventually(
      "they are kept",
      async () =>
        (await kept.match(`http://shop.example.com/.proofline/rules?${encodeURIComponent(url)}`)) !== undefined,
    );
    await worker.dispose();
    return statuses;
  };
  try {
    assert.deepEqual(await statusesOf("/.proofline/rules"), [404, 200], "no client gets the saved rules");
    isDown = true;
    assert.deepEqual(await statusesOf("/staff"), [403, 200]);
  } finally {
    server.close();
    site.server.close();
    rmSync(cachePersist, { recursive: true });
  }
});
