// The shim, with events as CloudFront sends them, in Node.js as Lambda@Edge has it.
import assert from "node:assert/strict";
import test from "node:test";
import { cloudFront, type CloudFrontHeaders, type CloudFrontRequest, type CloudFrontResponse } from "../src/cloudfront.ts";
import { Connector } from "../src/connector.ts";
import { Queue } from "./kit.ts";

function asked(uri: string, querystring = "", headers: Record<string, string> = {}): CloudFrontRequest {
  const all = { host: "shop.example.com", accept: "text/html", ...headers };
  const lines = Object.entries(all).map(([key, value]): [string, CloudFrontHeaders[string]] => [key.toLowerCase(), [{ key, value }]]);
  return { method: "GET", uri, querystring, clientIp: "198.51.100.7", headers: Object.fromEntries(lines) };
}

const isAnswer = (v: CloudFrontRequest | CloudFrontResponse): v is CloudFrontResponse => "status" in v;

test("CloudFront", async () => {
  const queue = await new Queue().start();
  let ahead = 0;
  const connector = new Connector({
    key: new Uint8Array(32).fill(7),
    rules: `{"version":1,"rooms":{"sale":{"url":"${queue.url}"}},"rules":[{"name":"tickets","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"}]}`,
    site: () => Promise.reject(new Error("CloudFront asks the site")),
    now: () => Date.now() + ahead,
    log: () => {},
  });
  const { viewerRequest, viewerResponse } = cloudFront(connector);
  const send = (request: CloudFrontRequest) => viewerRequest({ Records: [{ cf: { request } }] });
  const receive = (request: CloudFrontRequest, response: CloudFrontResponse) => viewerResponse({ Records: [{ cf: { request, response } }] });
  try {
    const led = await send(asked("/tickets/7", "a=1"));
    assert.ok(isAnswer(led));
    assert.deepEqual([led.status, led.headers["location"]?.[0]?.value], ["302", `${queue.url}?to=https%3A%2F%2Fshop.example.com%2Ftickets%2F7%3Fa%3D1`]);

    const free = await send(asked("/tickets/../about", "b=2", { "X-Proofline-Ticket": "forged" }));
    assert.ok(!isAnswer(free));
    assert.deepEqual([free.uri, free.querystring, free.headers["x-proofline-ticket"], free.headers["host"]?.[0]?.value], ["/about", "b=2", undefined, "shop.example.com"]);

    const claims = queue.claims();
    const entered = await send(asked("/tickets", `proofline_pass=${queue.pass(claims)}`));
    assert.ok(isAnswer(entered));
    assert.deepEqual([entered.status, entered.headers["location"]?.[0]?.value], ["303", "/tickets"]);
    const cookie = entered.headers["set-cookie"]?.[0]?.value.split(";")[0] ?? "";

    const visit = asked("/tickets", "", { Cookie: cookie });
    const through = await send(visit);
    assert.ok(!isAnswer(through));
    assert.deepEqual([through.headers["x-proofline-ticket"]?.[0]?.value, through.headers["x-proofline-room"]?.[0]?.value], [claims["sub"], "sale"]);

    const page = { status: "200", statusDescription: "OK", headers: { "content-type": [{ key: "Content-Type", value: "text/html" }], "set-cookie": [{ key: "Set-Cookie", value: "basket=1" }] } };
    assert.deepEqual(await receive(visit, page), page);
    ahead = 61_000;
    const slid = await receive(through, page);
    assert.equal(slid.headers["set-cookie"]?.length, 2);
    assert.match(slid.headers["set-cookie"]?.[1]?.value ?? "", /^__Host-proofline-pass\.sale=.+; Path=\//);
    assert.equal(queue.heard.at(-1), "touch");
    const released = await receive(visit, { ...page, headers: { "proofline-command": [{ key: "Proofline-Command", value: "release" }] } });
    assert.equal(released.headers["proofline-command"], undefined);
    assert.match(released.headers["set-cookie"]?.[0]?.value ?? "", /Max-Age=0/);
    assert.equal(queue.heard.at(-1), "release");
    assert.ok(isAnswer(await send(visit)), "released");
  } finally {
    queue.server?.close();
  }
});
