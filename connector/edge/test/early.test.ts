// Starts without rules, while their server does not respond.
import assert from "node:assert/strict";
import test from "node:test";
import { Connector } from "../src/connector.ts";

const cases: [string, string, number][] = [
  ["GET", "/", 503],
  ["GET", "/tickets", 503],
  ["POST", "/buy", 503],
  ["GET", "/tickets?proofline_pass=x", 503],
  ["POST", "/webhooks/stripe", 200],
  ["POST", "/stripe/webhook", 200],
  ["GET", "/healthz", 200],
  ["GET", "/robots.txt", 200],
  ["GET", "/.well-known/acme-challenge/x", 200],
  ["GET", "/webhooks/stripe", 503],
  ["POST", "/healthz", 503],
  ["POST", "/webhooks/..;/tickets", 503],
  ["GET", "/app.css", 503],
  ["OPTIONS", "/tickets", 503], // which the rules may let wait
  ["GET", "/a%zz", 400],
  ["GET", "/.proofline/wait.js", 200],
  ["GET", "/.proofline/enter?to=https%3A%2F%2Fshop.example.com%2F", 503],
  ["POST", "/.proofline/release", 503],
];

test("default rules for specific paths let requests pass, and the rest gets the retry page", async () => {
  let isDown = true;
  const connector = new Connector({
    key: new TextEncoder().encode("0123456789abcdef0123456789abcdef"),
    rulesURL: "https://queue.example.com/rules.json",
    log: () => {},
    site: async () => new Response("shop"),
    now: () => 1_793_000_000_000 + (isDown ? 0 : 60_000),
    ask: async () => (isDown ? new Response("", { status: 502 }) : new Response('{"version":1}')),
  });
  const send = (method: string, path: string) =>
    connector.fetch(new Request(`https://shop.example.com${path}`, { method, headers: { Accept: "text/html" } }), {
      client: "198.51.100.7",
    });
  for (const [method, path, status] of cases) {
    const answer = await send(method, path);
    assert.deepEqual(
      [answer.status, answer.headers.has("Retry-After"), answer.headers.has("Location")],
      [status, status === 503, false],
      `${method} ${path}`,
    );
  }
  isDown = false;
  assert.equal((await send("GET", "/tickets")).status, 200);
});
