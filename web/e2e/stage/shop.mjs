import assert from "node:assert/strict";
import { createPublicKey, verify } from "node:crypto";
import { createServer } from "node:http";

const welcome = `<!doctype html><html lang="en"><title>Shop</title><link rel="icon" href="data:,"><h1>Welcome to the shop</h1>`;

/** A protected site, to which admitted visitors are sent. */
export class Shop {
  visits = []; // URLs

  static async open() {
    const shop = new Shop();
    shop.server = createServer(({ url }, answer) => {
      shop.visits.push(new URL(url, shop.origin));
      answer.writeHead(200, { "Content-Type": "text/html" }).end(welcome);
    });
    await new Promise((done) => shop.server.listen(0, "127.0.0.1", done));
    shop.origin = `http://127.0.0.1:${shop.server.address().port}`;
    shop.target = `${shop.origin}/tickets`;
    return shop;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

/** Verifies a pass with the room's published keys, as any site can; returns its claims. */
export async function readPass(room, token) {
  const [head, body, signature] = token.split(".");
  const { alg, kid } = JSON.parse(Buffer.from(head, "base64url"));
  assert.equal(alg, "EdDSA");
  const found = await (await fetch(`${room.url}/.well-known/openid-configuration`)).json();
  const { keys } = await (await fetch(found.jwks_uri)).json();
  const key = createPublicKey({ key: keys.find((one) => one.kid === kid), format: "jwk" });
  assert.ok(
    verify(null, Buffer.from(`${head}.${body}`), key, Buffer.from(signature, "base64url")),
    "signature of the pass",
  );
  return JSON.parse(Buffer.from(body, "base64url"));
}
