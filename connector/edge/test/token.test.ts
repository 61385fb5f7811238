// The expiry of the server token.
import assert from "node:assert/strict";
import test from "node:test";
import { Connector } from "../src/connector.ts";

const day = 86_400_000;

test("the log warns of a token's expiry once a day, from two weeks before", async () => {
  const ends = Date.UTC(2027, 5, 15);
  let [now, said]: [number, unknown] = [ends - 20 * day, ends];
  const logged: string[] = [];
  const connector = new Connector({
    key: new Uint8Array(32),
    rules: `{"version":1}`,
    token: "secret",
    server: "https://queue.example.com",
    now: () => now,
    ask: async () => Response.json({ rooms: [], token_ends: said }),
    site: async () => new Response("site"),
    log: (_, text, detail) => logged.push(`${text} ${JSON.stringify(detail)}`),
  });
  const report = async (at: number): Promise<number> => {
    now = at;
    const under: Promise<unknown>[] = [];
    await connector.fetch(new Request("https://shop.example.com/"), {
      client: "192.0.2.1",
      waitUntil: (work) => under.push(work),
    });
    await Promise.all(under);
    return logged
      .splice(0)
      .filter((line) => line.startsWith('server token expires soon: replace it {"ends":"2027-06-15T00:00:00.000Z"}'))
      .length;
  };
  assert.equal(await report(ends - 20 * day), 0);
  assert.equal(connector.stats().tokenEnds, ends);
  assert.equal(await report(ends - 14 * day - 1), 0);
  assert.equal(await report(ends - 14 * day + 20_000), 1);
  assert.equal(await report(ends - 13 * day), 0);
  assert.equal(await report(ends - 12.5 * day), 1);
  for (const none of [undefined, null, "1", 0, -1, 1.5, 8.64e15 + 1]) {
    said = none;
    assert.equal(await report(now + 2 * day), 0, String(none));
    assert.equal(connector.stats().tokenEnds, undefined, String(none));
  }
  assert.deepEqual(logged, []);
  assert.equal(connector.counts.reports, 12);
});
