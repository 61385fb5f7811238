// Return URLs are signed like in the other connectors, and nothing else is signed.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import test from "node:test";
import { type CloudFrontRequest, cloudFront } from "../src/cloudfront.ts";
import { Connector, type Context } from "../src/connector.ts";
import { returnsOf, signReturn } from "../src/return.ts";
import { type Answer, Queue, Shop } from "./kit.ts";

const secret = Buffer.from("0123456789abcdef0123456789abcdef");
const shut = { gate: "shut", share: 0, per_minute: 60, max_active: 0, nodes: 1, session_ms: 600_000 };
const site = "http://shop.example.com";

test("signatures match the vectors", async () => {
  const vectors = JSON.parse(readFileSync("../testdata/return-vectors.json", "utf8")) as Record<
    "name" | "key" | "room" | "to" | "sig",
    string
  >[];
  assert.ok(vectors.length > 0);
  for (const { name, key, room, to, sig } of vectors) {
    const said = returnsOf({ return_key: key });
    assert.ok(said, name);
    assert.equal(await signReturn(said.key, room, to), sig, name);
  }
});

test("a key has one spelling", () => {
  const good = secret.toString("base64url");
  assert.deepEqual(returnsOf({ return_key: good, signed_return: true }), {
    key: new Uint8Array(secret),
    isRequired: true,
  });
  for (const bad of [
    undefined,
    "",
    "AAAA",
    `${good}=`,
    `${good}AAAA`,
    `${good.slice(0, 20)}\n${good.slice(20)}`,
    good.slice(0, 42) + "~",
    7,
    null,
    { length: 32 },
  ])
    assert.equal(returnsOf({ return_key: bad }), undefined, String(bad));
});

/** wayOf returns the kind of a link's return URL: "signed", or another. */
function wayOf(queue: Queue, link: string): [to: string, sig: string] {
  const url = new URL(link);
  const [to, sig] = [url.searchParams.get("to") ?? "", url.searchParams.get("to_sig") ?? ""];
  assert.equal(link.split("?")[0], queue.url);
  return [to, sig === signOf(queue, to) ? "signed" : sig];
}

const signOf = ({ url }: Queue, to: string): string =>
  createHmac("sha256", secret).update(`proofline-to/v1\n${url}\n${to}`).digest().subarray(0, 16).toString("base64url");

const linkOf = ({ status, headers, body }: Answer): string =>
  status === 403 ? (JSON.parse(body) as { join: string }).join : String(headers.location);

const nav = { "Sec-Fetch-Mode": "navigate" };
const cors = { "Sec-Fetch-Mode": "cors" };
const byEnter = (page: string): string => `${site}/.proofline/enter?to=${encodeURIComponent(page)}`;

/** open protects /tickets with a room that requires signatures or does not. */
async function open(
  isRequired: boolean,
  hosts = ["shop.example.com", "www.shop.example.com"],
  more: object = { return_key: secret.toString("base64url") },
): Promise<Shop> {
  const rules = [
    { name: "tickets", when: { path: { prefix: "/tickets" } }, action: "queue sale" },
    { name: "again", when: { path: { prefix: "/again" } }, action: "queue again" },
    { name: "posts", when: { path: { prefix: "/posts" }, method: { equals: "POST" } }, action: "queue sale" },
    { name: "other", when: { path: { prefix: "/other" } }, action: "queue other" },
    { name: "secret", when: { path: { prefix: "/secret" } }, action: "block" },
  ];
  const shop = await Shop.open("", ({ url, home }) => {
    const rooms = {
      sale: { url },
      again: { url },
      other: { url: `${url}2` },
      over: { url: `${url}3`, mode: "closed" },
    };
    return {
      PROOFLINE_RULES: JSON.stringify({ version: 1, hosts, rooms, rules }),
      PROOFLINE_TOKEN: "connect-token",
      PROOFLINE_SERVER: home,
    };
  });
  shop.queue.gate = { ...shut, ...more, ...(isRequired && { signed_return: true }) };
  return shop;
}

test("only URLs that wait for the room are signed", async () => {
  for (const isRequired of [false, true]) {
    const shop = await open(isRequired);
    const free = (page: string): [string, string] => (isRequired ? [byEnter(page), "signed"] : [page, ""]);
    const how = isRequired ? "enter" : undefined;
    try {
      for (const [name, method, target, headers, want, script] of [
        [
          "the first visitor of an isolate",
          "GET",
          "/tickets/7?a=%20b&c=+d",
          nav,
          [`${site}/tickets/7?a=%20b&c=+d`, "signed"],
          undefined,
        ],
        [
          "a page with a malformed pass",
          "GET",
          "/tickets?a=1&proofline_pass=x",
          nav,
          [`${site}/tickets?a=1`, "signed"],
          undefined,
        ],
        ["by another name of the room", "GET", "/again", nav, [`${site}/again`, "signed"], undefined],
        [
          "a form on a page that waits",
          "POST",
          "/tickets",
          { ...nav, Referer: `${site}/tickets/form?a=1` },
          [`${site}/tickets/form?a=1`, "signed"],
          undefined,
        ],
        [
          "a form on a free page",
          "POST",
          "/tickets",
          { ...nav, Referer: `${site}/out?url=http://evil.example.net` },
          free(`${site}/out?url=http://evil.example.net`),
          undefined,
        ],
        [
          "a form on a page of the other room",
          "POST",
          "/tickets",
          { ...nav, Referer: `${site}/other` },
          free(`${site}/other`),
          undefined,
        ],
        [
          "a form on a blocked page",
          "POST",
          "/tickets",
          { ...nav, Referer: `${site}/secret` },
          free(`${site}/secret`),
          undefined,
        ],
        [
          "a form on a page that waits when it is posted to",
          "POST",
          "/posts",
          { ...nav, Referer: `${site}/posts` },
          free(`${site}/posts`),
          undefined,
        ],
        [
          "a form elsewhere",
          "POST",
          "/tickets",
          { ...nav, Referer: "https://evil.example.net/tickets" },
          ["", ""],
          undefined,
        ],
        [
          "a script on a page that waits",
          "GET",
          "/tickets/left",
          { ...cors, Referer: `${site}/tickets` },
          [`${site}/tickets`, "signed"],
          "signed",
        ],
        ["a script on a free page", "GET", "/tickets/left", { ...cors, Referer: `${site}/` }, free(`${site}/`), how],
        ["a script on a page unknown", "GET", "/tickets/left", cors, ["", ""], how],
        [
          "a script at another host",
          "GET",
          "/tickets/left",
          { ...cors, Origin: "http://www.shop.example.com", Referer: "http://www.shop.example.com/" },
          ["", ""],
          how,
        ],
      ] as const) {
        const answer = await shop.send(method, target, headers);
        assert.deepEqual(wayOf(shop.queue, linkOf(answer)), want, `${name}, needed ${isRequired}`);
        const said = answer.headers["proofline-return"];
        assert.equal(
          said === signOf(shop.queue, want[0]) ? "signed" : said,
          script,
          `${name}, needed ${isRequired}: header`,
        );
      }
      assert.equal(shop.got.length, 0);
    } finally {
      await shop.close();
    }
  }
});

test("scripts of other hosts are sent to a room in the rules, and return via this host", async () => {
  const shop = await open(false);
  const [room, page] = [shop.queue.url, "http://www.shop.example.com/cart?a=1&b=%2F"];
  const link = (to: string, back: string): string =>
    `/.proofline/enter?room=${encodeURIComponent(to)}&to=${encodeURIComponent(back)}`;
  try {
    const led = await shop.get(link(room, page));
    assert.deepEqual(
      [led.status, led.headers["cache-control"], ...wayOf(shop.queue, linkOf(led))],
      [303, "no-store", byEnter(page), "signed"],
    );
    for (const bad of [
      link("", page),
      link(`${room}x`, page),
      link("https://evil.example.net/r/sale", page),
      link("sale", page),
      link(room, "http://evil.example.net/"),
      link(room, ""),
    ]) {
      const answer = await shop.get(bad);
      assert.deepEqual([answer.status, answer.headers.location], [404, undefined], bad);
    }
    const closed = await shop.get(link(`${room}3`, page));
    assert.deepEqual([closed.status, closed.headers.location], [403, undefined]);
    assert.match(closed.body, /Closed/);
    assert.equal(wayOf(shop.queue, linkOf(await shop.get(link(room, page), { Host: "evil.example.net" })))[1], "");
  } finally {
    await shop.close();
  }
});

test("without a key nothing is signed, and no visitor waits for one twice", async () => {
  for (const [hosts, more] of [
    [["shop.example.com"], {}],
    [["shop.example.com"], { return_key: "AAAA" }],
    [["*.example.com"], undefined],
  ] as const) {
    const shop = await open(true, [...hosts], more);
    try {
      for (let i = 0; i < 3; i++) {
        const form = await shop.send("POST", "/tickets", { ...nav, Referer: `${site}/cart` });
        assert.deepEqual(wayOf(shop.queue, linkOf(form)), [`${site}/cart`, ""]);
        assert.equal((await shop.send("GET", "/tickets", cors)).headers["proofline-return"], undefined);
      }
      assert.ok(shop.queue.reports.length < 6, `${shop.queue.reports.length} reports`);
    } finally {
      await shop.close();
    }
  }
});

test("without hosts in the rules nothing is signed", async () => {
  for (const [hosts, sig] of [
    [[], ""],
    [["*"], "signed"],
    [["*.example.com"], "signed"],
  ] as const) {
    const shop = await open(true, [...hosts]);
    try {
      assert.deepEqual(
        wayOf(shop.queue, linkOf(await shop.send("GET", "/tickets", nav))),
        [`${site}/tickets`, sig],
        hosts.join(),
      );
    } finally {
      await shop.close();
    }
  }
});

test("the first visitor waits for a return key, unless the instance ends with the request", async () => {
  const queue = await new Queue().start();
  queue.gate = { ...shut, return_key: secret.toString("base64url") };
  const connector = (): Connector =>
    new Connector({
      key: new Uint8Array(32).fill(7),
      rules: `{"version":1,"hosts":["shop.example.com"],"rooms":{"sale":{"url":"${queue.url}"}},"rules":[{"name":"tickets","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"}]}`,
      token: "connect-token",
      server: queue.home,
      site: () => Promise.reject(new Error("the site is asked")),
      log: () => {},
    });
  try {
    const led = async (context: Context): Promise<[string, string]> => {
      const answer = await connector().fetch(
        new Request(`${site}/tickets`, { headers: { Accept: "text/html" } }),
        context,
      );
      return wayOf(queue, answer.headers.get("Location") ?? "");
    };
    assert.deepEqual(await led({ client: "198.51.100.7", endsWithRequest: true }), [`${site}/tickets`, ""]);
    assert.equal(queue.reports.length, 0);
    assert.deepEqual(await led({ client: "198.51.100.7" }), [`${site}/tickets`, "signed"]);
    const headers = {
      host: [{ key: "host", value: "shop.example.com" }],
      accept: [{ key: "accept", value: "text/html" }],
    };
    const request: CloudFrontRequest = {
      method: "GET",
      uri: "/tickets",
      querystring: "",
      clientIp: "198.51.100.7",
      headers,
    };
    const answer = await cloudFront(connector()).viewerRequest({ Records: [{ cf: { request } }] });
    assert.deepEqual(wayOf(queue, answer.headers.location?.[0]?.value ?? ""), [
      "https://shop.example.com/tickets",
      "signed",
    ]);
  } finally {
    queue.server?.close();
  }
});
