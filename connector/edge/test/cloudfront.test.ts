// The adapter, with CloudFront's events, in Node.js like Lambda@Edge.
import assert from "node:assert/strict";
import test from "node:test";
import {
  type CloudFrontHeaders,
  type CloudFrontRequest,
  type CloudFrontResponse,
  cloudFront,
} from "../src/cloudfront.ts";
import { Connector } from "../src/connector.ts";
import { Queue } from "./kit.ts";

function asked(uri: string, querystring = "", headers: Record<string, string> = {}): CloudFrontRequest {
  const all = { host: "shop.example.com", accept: "text/html", ...headers };
  const lines = Object.entries(all).map(([key, value]): [string, CloudFrontHeaders[string]] => [
    key.toLowerCase(),
    [{ key, value }],
  ]);
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
  const receive = (request: CloudFrontRequest, response: CloudFrontResponse) =>
    viewerResponse({ Records: [{ cf: { request, response } }] });
  try {
    const led = await send(asked("/tickets/7", "a=1"));
    assert.ok(isAnswer(led));
    assert.deepEqual(
      [led.status, led.headers.location?.[0]?.value],
      ["302", `${queue.url}?to=https%3A%2F%2Fshop.example.com%2Ftickets%2F7%3Fa%3D1`],
    );

    const free = await send(asked("/tickets/../about", "b=2", { "X-Proofline-Ticket": "forged" }));
    assert.ok(!isAnswer(free));
    assert.deepEqual(
      [free.uri, free.querystring, free.headers["x-proofline-ticket"], free.headers.host?.[0]?.value],
      ["/about", "b=2", undefined, "shop.example.com"],
    );

    const claims = queue.claims();
    const entered = await send(asked("/tickets", `proofline_pass=${queue.pass(claims)}`));
    assert.ok(isAnswer(entered));
    assert.deepEqual([entered.status, entered.headers.location?.[0]?.value], ["303", "/tickets"]);
    const cookie = entered.headers["set-cookie"]?.[0]?.value.split(";")[0] ?? "";

    const visit = asked("/tickets", "", { Cookie: cookie });
    const through = await send(visit);
    assert.ok(!isAnswer(through));
    assert.deepEqual(
      [through.headers["x-proofline-ticket"]?.[0]?.value, through.headers["x-proofline-room"]?.[0]?.value],
      [claims.sub, "sale"],
    );

    const page = {
      status: "200",
      statusDescription: "OK",
      headers: {
        "content-type": [{ key: "Content-Type", value: "text/html" }],
        "set-cookie": [{ key: "Set-Cookie", value: "basket=1" }],
      },
    };
    assert.deepEqual(await receive(visit, page), page);
    ahead = 61_000;
    const slid = await receive(through, page);
    assert.equal(slid.headers["set-cookie"]?.length, 2);
    assert.match(slid.headers["set-cookie"]?.[1]?.value ?? "", /^__Host-proofline-pass\.sale=.+; Path=\//);
    assert.equal(queue.received.at(-1), "touch");
    const released = await receive(visit, {
      ...page,
      headers: { "proofline-command": [{ key: "Proofline-Command", value: "release" }] },
    });
    assert.equal(released.headers["proofline-command"], undefined);
    assert.match(released.headers["set-cookie"]?.[0]?.value ?? "", /Max-Age=0/);
    assert.equal(queue.received.at(-1), "release");
    assert.ok(isAnswer(await send(visit)), "released");
  } finally {
    queue.server?.close();
  }
});

test("unqueued sessions at CloudFront", async () => {
  const queue = await new Queue().start();
  queue.gate = { gate: "open", share: 3, per_minute: 60, max_active: 0, nodes: 1, session_ms: 600_000 };
  const options = {
    key: new Uint8Array(32).fill(7),
    token: "secret",
    server: queue.home,
    log: () => {},
    rules: `{"version":1,"rooms":{"sale":{"url":"${queue.url}","mode":"safety-net"}},"rules":[{"name":"tickets","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"}]}`,
    site: () => Promise.reject(new Error("CloudFront asks the site")),
  };
  // One instance for each function, as at CloudFront.
  const [{ viewerRequest }, { viewerResponse }] = [
    cloudFront(new Connector(options)),
    cloudFront(new Connector(options)),
  ];
  const page = { status: "200", headers: { "content-type": [{ key: "Content-Type", value: "text/html" }] } };
  try {
    const through = await viewerRequest({
      Records: [{ cf: { request: asked("/tickets", "", { "X-Proofline-Begun": "forged" }) } }],
    });
    assert.ok(!isAnswer(through));
    const said = Object.entries(through.headers)
      .filter(([name]) => name.startsWith("x-proofline-"))
      .map(([name, [header]]) => [name, header?.value]);
    assert.deepEqual(said.map(([name]) => name).sort(), ["x-proofline-begun", "x-proofline-room"]);
    const [report] = queue.reports.slice(-1);
    assert.equal(report?.rooms[0]?.started?.length, 1, "the server has the report when the function ends");
    const answer = await viewerResponse({ Records: [{ cf: { request: through, response: page } }] });
    const cookie = answer.headers["set-cookie"]?.[0]?.value.split(";")[0] ?? "";
    assert.match(cookie, /^__Host-proofline-pass\.sale=[\w-]+$/);
    const before = queue.reports.length;
    const visit = asked("/tickets", "", { Cookie: cookie });
    const again = await viewerRequest({ Records: [{ cf: { request: visit } }] });
    assert.ok(!isAnswer(again) && again.headers["x-proofline-begun"] === undefined);
    assert.equal(
      (await viewerResponse({ Records: [{ cf: { request: again, response: page } }] })).headers["set-cookie"],
      undefined,
    );
    assert.equal(queue.reports.length, before, "there is nothing to report, and no response waits for it");
    const forged = {
      ...visit,
      headers: {
        ...asked("/tickets").headers,
        "x-proofline-begun": [{ value: cookie.split("=")[1]?.replace(/.$/, "") ?? "" }],
      },
    };
    assert.equal(
      (await viewerResponse({ Records: [{ cf: { request: forged, response: page } }] })).headers["set-cookie"],
      undefined,
    );
    await viewerResponse({
      Records: [
        {
          cf: {
            request: again,
            response: { ...page, headers: { ...page.headers, "proofline-command": [{ value: "release" }] } },
          },
        },
      ],
    });
    assert.equal(queue.reports.at(-1)?.rooms[0]?.ended?.length, 1);
  } finally {
    queue.server?.close();
  }
});

test("malformed requests from CloudFront", async () => {
  const connector = new Connector({
    key: new Uint8Array(32).fill(7),
    log: () => {},
    site: () => Promise.reject(new Error("CloudFront asks the site")),
    rules: '{"version":1}',
  });
  const { viewerRequest, viewerResponse } = cloudFront(connector);
  const good = asked("/");
  for (const bad of [
    asked("/", "", { host: "" }),
    asked("/", "", { host: "[" }),
    asked("/", "", { host: "a b" }),
    asked("/", "", { host: "shop.example.com:99999" }),
    asked("/", "", { "x-name": "\u5f85" }),
    asked("/", "", { "x-name": "a\nb" }),
    { ...good, method: "TRACE" },
  ]) {
    const answer = await viewerRequest({ Records: [{ cf: { request: bad } }] });
    assert.ok(isAnswer(answer), JSON.stringify(bad));
    assert.deepEqual([answer.status, answer.body], ["400", '{"error":"malformed"}\n']);
  }
  assert.deepEqual([connector.counts.blocked, connector.counts.faults], [7, 0]);
  const answers = [
    { status: "101", headers: {} },
    {
      status: "200",
      headers: { "content-disposition": [{ key: "Content-Disposition", value: "attachment; filename=\u5f85" }] },
    },
  ];
  for (const response of answers) {
    const marked = { ...response, headers: { ...response.headers, "proofline-command": [{ value: "release" }] } };
    assert.deepEqual(await viewerResponse({ Records: [{ cf: { request: good, response: marked } }] }), response);
  }
});
