// What the connector answers itself, in workerd.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { cookieOf, Shop } from "./kit.ts";

test("the script for pages, whatever the rules say", async () => {
  const shop = await Shop.open();
  try {
    const first = await shop.get("/.proofline/wait.js?v=1");
    assert.equal(first.status, 200);
    assert.equal(first.body, readFileSync("../client/wait.js", "utf8"));
    assert.equal(first.headers["content-type"], "text/javascript; charset=utf-8");
    assert.match(String(first.headers["cache-control"]), /^public, max-age=/);
    const tag = String(first.headers["etag"]);
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

test("visitors come back for a page at another host of the site, and to no other", async () => {
  const rules = { version: 1, hosts: ["shop.example.com", "www.example.com", "*.example.net"], rules: [{ name: "tickets", when: { path: { prefix: "/tickets" } }, action: "queue sale" }] };
  const shop = await Shop.open("", ({ url }) => ({ PROOFLINE_RULES: JSON.stringify({ ...rules, rooms: { sale: { url } } }) }));
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
      assert.deepEqual([answer.status, answer.headers.location, answer.headers["set-cookie"]], [303, enter, undefined], bad);
    }
    for (const to of [
      ...["", "/cart", "//www.example.com/", "https://www.example.com/", "http://evil.example.org/", "http://www.example.com@evil.example.org/"],
      ...["http://evil.example.org\\@www.example.com/", "http://user@www.example.com/", "javascript://www.example.com/", "http://a.example.net/", "http://*.example.net/"],
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
      assert.deepEqual([status, headers["access-control-allow-origin"], headers["access-control-expose-headers"]], [403, want, want && "Proofline-Queue"], origin);
    }
  } finally {
    await shop.close();
  }
});
