// What the connector answers itself, in workerd.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Shop } from "./kit.ts";

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
