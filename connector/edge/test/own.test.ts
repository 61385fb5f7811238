// The connector's own paths, in workerd.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { cookieOf, eventually, Shop, withShop } from "./kit.ts";

test("the script for pages, whatever the rules say", async () => {
  const shop = await Shop.open();
  try {
    const first = await shop.get("/.proofline/wait.js?v=1");
    assert.equal(first.status, 200);
    assert.equal(first.body, readFileSync("../client/wait.js", "utf8"));
    assert.equal(first.headers["content-type"], "text/javascript; charset=utf-8");
    assert.match(String(first.headers["cache-control"]), /^public, max-age=/);
    const tag = String(first.headers.etag);
    for (const [name, want, answer] of [
      ["again", 304, shop.get("/.proofline/wait.js", { "If-None-Match": `"x", W/${tag}` })],
      ["another tag", 200, shop.get("/.proofline/wait.js", { "If-None-Match": '"x"' })],
      ["a post", 405, shop.send("POST", "/.proofline/wait.js")],
      ["nothing", 404, shop.get("/.proofline/else")],
      ["the way out", 404, shop.get("/.proofline/..%2ftickets")],
      ["parameters", 404, shop.get("/.proofline/..;/tickets")],
    ] as const) {
      assert.equal((await answer).status, want, name);
    }
    assert.equal(shop.got.length, 0, "the site was asked");
    shop.isQueued(await shop.get("/.proofline/%2e%2e/tickets"), "another path as all platforms read it");
  } finally {
    await shop.close();
  }
});

test("visitors return for a page at another host of the site, and at no other", async () => {
  const rules = {
    version: 1,
    hosts: ["shop.example.com", "www.example.com", "*.example.net"],
    rules: [{ name: "tickets", when: { path: { prefix: "/tickets" } }, action: "queue sale" }],
  };
  const shop = await Shop.open("", ({ url }) => ({
    PROOFLINE_RULES: JSON.stringify({ ...rules, rooms: { sale: { url } } }),
  }));
  try {
    const page = "http://www.example.com/cart?a=1&b=%2F";
    const enter = `/.proofline/enter?to=${encodeURIComponent(page)}`;
    const entered = await shop.get(`${enter}&proofline_pass=${shop.queue.pass()}`);
    assert.deepEqual([entered.status, entered.headers.location], [303, enter]);
    const session = { Cookie: cookieOf(entered) };
    const led = await shop.get(enter, session);
    assert.deepEqual([led.status, led.headers.location, led.headers["set-cookie"]], [303, page, undefined]);
    shop.isThrough(await shop.get("/tickets", session), "the session");
    for (const bad of ["x", "", `${shop.queue.pass()}x`]) {
      const answer = await shop.get(`${enter}&proofline_pass=${bad}`);
      assert.deepEqual(
        [answer.status, answer.headers.location, answer.headers["set-cookie"]],
        [303, enter, undefined],
        bad,
      );
    }
    for (const to of [
      ...[
        "",
        "/cart",
        "//www.example.com/",
        "https://www.example.com/",
        "http://evil.example.org/",
        "http://www.example.com@evil.example.org/",
      ],
      ...[
        "http://evil.example.org\\@www.example.com/",
        "http://user@www.example.com/",
        "javascript://www.example.com/",
        "http://a.example.net/",
        "http://*.example.net/",
      ],
    ]) {
      const answer = await shop.get(`/.proofline/enter?to=${encodeURIComponent(to)}`);
      assert.deepEqual([answer.status, answer.headers.location], [404, undefined], to);
    }
    for (const [origin, want] of [
      ["http://www.example.com", "http://www.example.com"],
      ["http://a.example.net", undefined],
      ["https://www.example.com", undefined],
      ["null", undefined],
    ] as const) {
      const { status, headers } = await shop.send("GET", "/tickets", { "Sec-Fetch-Mode": "cors", Origin: origin });
      assert.deepEqual(
        [status, headers["access-control-allow-origin"], headers["access-control-expose-headers"]],
        [403, want, want && "Proofline-Queue"],
        origin,
      );
    }
  } finally {
    await shop.close();
  }
});

const open = { gate: "open", share: 5, per_minute: 60, max_active: 0, nodes: 1, session_ms: 600_000 };

withShop(
  "visitors end their sessions",
  async (s) => {
    s.queue.gate = open;
    const session = await s.enter();
    const free = { Cookie: cookieOf(await s.get("/tickets")) };
    s.queue.gate = { ...open, gate: "shut", share: 0 };
    s.later(1001);
    await s.get("/about");
    await eventually("the gate is shut", async () => (await s.get("/tickets")).status === 302);
    s.got = [];
    const leave = (headers: Record<string, string>) => s.send("POST", "/.proofline/release", headers);
    for (const [what, headers] of Object.entries({
      "another site": { Origin: "https://evil.example.net", "Sec-Fetch-Site": "cross-site" },
      "another host of this one": { "Sec-Fetch-Site": "same-site" },
      "an old browser elsewhere": { Origin: "https://evil.example.net" },
      "another scheme": { Origin: "https://shop.example.com" },
      "a document of no origin": { Origin: "null" },
      "not a site": { "Sec-Fetch-Site": "" },
    })) {
      const answer = await leave({ ...session, ...headers } as Record<string, string>);
      assert.deepEqual([answer.status, answer.headers["set-cookie"]], [403, undefined], what);
      s.isThrough(await s.get("/tickets", session), what);
    }
    for (const [method, status] of [
      ["GET", 405],
      ["PUT", 405],
    ] as const) {
      const answer = await s.send(method, "/.proofline/release", session);
      assert.deepEqual([answer.status, answer.headers.allow], [status, "POST"]);
    }
    const forged = await leave({ Cookie: `${free.Cookie.slice(0, -4)}AAAA` });
    assert.equal(forged.status, 204);
    s.isThrough(await s.get("/tickets", free), "a cookie that was changed ends nothing");

    const gone = /^__Host-proofline-pass\.sale=; Path=\/; Max-Age=0; HttpOnly; Secure; SameSite=Lax$/;
    const both = await leave({
      Cookie: `a=b; ${session.Cookie ?? ""}; ${free.Cookie}`,
      Origin: "http://shop.example.com",
      "Sec-Fetch-Site": "same-origin",
    });
    assert.deepEqual(
      [both.status, both.body, both.headers["set-cookie"]?.length, both.headers["cache-control"]],
      [204, "", 1, "no-store"],
    );
    assert.match(both.headers["set-cookie"]?.[0] ?? "", gone);
    s.isQueued(await s.get("/tickets", session), "the pass");
    s.isQueued(await s.get("/tickets", free), "the unqueued session");
    await eventually("the pass is released at the room", () => s.queue.received.includes("release"));
    await eventually("the server of the unqueued session", () =>
      s.queue.reports.some(({ rooms }) => rooms[0]?.ended?.length === 1),
    );
    assert.equal((await s.counts()).released, 2);

    const none = await leave({});
    assert.deepEqual([none.status, none.headers["set-cookie"]], [204, undefined]);
    const twice = await leave(session);
    assert.equal(twice.status, 204);
    assert.match(twice.headers["set-cookie"]?.[0] ?? "", gone);
    assert.equal((await s.counts()).released, 2, "it was over");
    assert.equal(s.got.length, 0, "the site was asked");
  },
  ',"mode":"safety-net"',
  (queue) => ({ PROOFLINE_TOKEN: "connect-token", PROOFLINE_SERVER: queue.home }),
);
