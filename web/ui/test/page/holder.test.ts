import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Holder } from "../../src/page/holder.ts";
import { Memory } from "../../src/page/memory.ts";

const secretForm = /^[A-Za-z0-9_-]{43}$/;

/** A server of one room and browsers of one visitor, as far as a holder meets them. */
class World {
  cookie: string | undefined;
  blocksCookies = false;
  /** Secrets that were sent, by path. */
  sent: [string, Record<string, unknown>][] = [];
  /** Answers that are lost on their way. */
  lost = 0;
  replaced: string[] = [];
  #locks: Promise<unknown> = Promise.resolve();

  install(): void {
    const stored = new Map<string, string>();
    const storage = {
      getItem: (key: string) => stored.get(key) ?? null,
      setItem: (key: string, value: string) => void stored.set(key, value),
      removeItem: (key: string) => void stored.delete(key),
    };
    const locks = { request: (_: string, act: () => Promise<unknown>) => (this.#locks = this.#locks.then(act)) };
    const globals = {
      localStorage: storage,
      sessionStorage: storage,
      navigator: { locks },
      location: { hash: "", href: "https://example.com/r/concert", pathname: "/r/concert", search: "" },
      history: { replaceState: (_: unknown, __: string, url: string) => this.replaced.push(url) },
      window: globalThis,
      fetch: (url: string, init: RequestInit) => this.#answer(url, init),
      DOMParser: class {
        parseFromString(html: string) {
          return { querySelector: () => JSON.parse(html) as unknown };
        }
      },
    };
    for (const [name, value] of Object.entries(globals)) Object.defineProperty(globalThis, name, { value, configurable: true });
  }

  async #answer(url: string, { body }: RequestInit): Promise<Response> {
    if (body === undefined) {
      const ticket = new URL(url, "https://example.com").searchParams.get("ticket");
      return Response.json({ dataset: { state: "waiting", ticket, ...(this.cookie !== undefined && { cookie: "" }) } });
    }
    const sent = JSON.parse(String(body)) as Record<string, unknown>;
    this.sent.push([url, sent]);
    const kept = this.cookie !== undefined;
    const secret = this.cookie ?? String(sent["secret"]);
    if (!this.blocksCookies) this.cookie = secret;
    if (this.lost-- > 0) throw new TypeError("lost");
    return Response.json({ ticket: `ticket of ${secret}`, receipt: "receipt", kept, location: "https://shop.example.com/?proofline_pass=x", link: "link" });
  }
}

let world: World;
beforeEach(() => {
  world = new World();
  world.install();
});

const holder = () => new Holder("/r/concert", "en", new Memory("/r/concert"), () => {});

test("a join makes a secret, and keeps it nowhere once there is a cookie", async () => {
  const one = holder();
  const { main, kept } = await one.join();
  const secret = String(world.sent[0]![1]["secret"]);
  assert.match(secret, secretForm);
  assert.equal(main.dataset["ticket"], `ticket of ${secret}`);
  assert.equal(kept, false);
  assert.equal(one.isBlocked, false);
  assert.deepEqual(world.replaced, []);
  assert.equal(new Memory("/r/concert").pending, undefined);
  assert.equal(new Memory("/r/concert").of(`ticket of ${secret}`).receipt, "receipt");
  await one.claim();
  assert.deepEqual(world.sent[1], ["/r/concert/claim", {}]);
});

test("two tabs get one ticket", async () => {
  const [one, two] = await Promise.all([holder().join(), holder().join()]);
  assert.equal(one.main.dataset["ticket"], two.main.dataset["ticket"]);
  assert.equal(two.kept, true);
});

test("a join whose answer is lost is tried again with the same secret", async () => {
  world.blocksCookies = true;
  world.lost = 1;
  await holder().join();
  assert.equal(world.sent.length, 2);
  assert.equal(world.sent[0]![1]["secret"], world.sent[1]![1]["secret"]);
});

test("where cookies are blocked the secret is in the address, and shown when it is needed", async () => {
  world.blocksCookies = true;
  const one = holder();
  await one.join();
  const secret = String(world.sent[0]![1]["secret"]);
  assert.equal(one.isBlocked, true);
  assert.deepEqual(world.replaced, [`#k=${secret}`]);
  assert.equal(await one.claim(), "https://shop.example.com/?proofline_pass=x");
  await one.leave();
  assert.deepEqual(world.sent.slice(1), [["/r/concert/claim", { secret }], ["/r/concert/leave", { secret }]]);
});

test("a link's secret is used as it is, and leaves the address", async () => {
  const secret = "A".repeat(43);
  globalThis.location.hash = `#k=${secret}`;
  const { main } = await holder().join(secret);
  assert.equal(main.dataset["ticket"], `ticket of ${secret}`);
  assert.deepEqual(world.replaced, ["/r/concert"]);
});

test("a new place is asked for by name", async () => {
  await holder().join(undefined, true);
  assert.equal(world.sent[0]![1]["again"], true);
});
