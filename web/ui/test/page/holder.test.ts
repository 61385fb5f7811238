import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Holder } from "../../src/page/holder.ts";
import { Memory } from "../../src/page/memory.ts";

const taken = "B".repeat(43); // the secret of a link

const secretForm = /^[A-Za-z0-9_-]{43}$/;

/** A server with one room, and one visitor's browsers, as far as a holder uses them. */
class World {
  cookie: string | undefined;
  blocksCookies = false;
  /** Secrets that were sent, by path. */
  sent: [string, Record<string, unknown>][] = [];
  /** Responses that are lost on their way. */
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
      history: { state: null, replaceState: (state: unknown, _: string, url: string) => this.#replace(state, url) },
      window: globalThis,
      fetch: (url: string, init: RequestInit) => this.#answer(url, init),
      DOMParser: class {
        parseFromString(html: string) {
          return { querySelector: () => JSON.parse(html) as unknown };
        }
      },
    };
    for (const [name, value] of Object.entries(globals))
      Object.defineProperty(globalThis, name, { value, configurable: true });
  }

  /** A browser that has a place keeps it. */
  #take(): Response {
    if (this.cookie !== undefined) return Response.json({ ticket: `ticket of ${this.cookie}`, kept: true });
    if (!this.blocksCookies) this.cookie = taken;
    return Response.json({ ticket: `ticket of ${taken}`, secret: taken, kept: false });
  }

  #replace(state: unknown, url: string): void {
    this.replaced.push(url);
    Object.assign(globalThis.history, { state });
    globalThis.location.hash = url.startsWith("#") ? url : "";
  }

  async #answer(url: string, { body }: RequestInit): Promise<Response> {
    if (body === undefined) {
      const ticket = new URL(url, "https://example.com").searchParams.get("ticket");
      return Response.json({ dataset: { state: "waiting", ticket, ...(this.cookie !== undefined && { cookie: "" }) } });
    }
    const sent = JSON.parse(String(body)) as Record<string, unknown>;
    this.sent.push([url, sent]);
    if (url.endsWith("/take")) return this.#take();
    const kept = this.cookie !== undefined;
    const secret = this.cookie ?? String(sent.secret);
    if (!this.blocksCookies) this.cookie = secret;
    if (this.lost-- > 0) throw new TypeError("lost");
    return Response.json({
      ticket: `ticket of ${secret}`,
      receipt: "receipt",
      kept,
      location: "https://shop.example.com/?proofline_pass=x",
      link: "link",
    });
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
  const secret = String(world.sent[0]![1].secret);
  assert.match(secret, secretForm);
  assert.equal(main.dataset.ticket, `ticket of ${secret}`);
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
  assert.equal(one.main.dataset.ticket, two.main.dataset.ticket);
  assert.equal(two.kept, true);
});

test("a join whose answer is lost is tried again with the same secret", async () => {
  world.blocksCookies = true;
  world.lost = 1;
  await holder().join();
  assert.equal(world.sent.length, 2);
  assert.equal(world.sent[0]![1].secret, world.sent[1]![1].secret);
});

test("where cookies are blocked the secret is in the address, and shown when it is needed", async () => {
  world.blocksCookies = true;
  const one = holder();
  await one.join();
  const secret = String(world.sent[0]![1].secret);
  assert.equal(one.isBlocked, true);
  assert.deepEqual(world.replaced, [`#k=${secret}`]);
  assert.equal(await one.claim(), "https://shop.example.com/?proofline_pass=x");
  await one.change("extend");
  await one.change("leave");
  assert.deepEqual(world.sent.slice(1), [
    ["/r/concert/claim", { secret }],
    ["/r/concert/extend", { secret }],
    ["/r/concert/leave", { secret }],
  ]);
});

test("where cookies are blocked a reload keeps the place, and a link from elsewhere does not take one", async () => {
  world.blocksCookies = true;
  await holder().join();
  const secret = String(world.sent[0]![1].secret);
  assert.equal(holder().own, secret, "the tab's own");
  Object.assign(globalThis.history, { state: null }); // as in a tab that opens a link
  assert.equal(holder().own, undefined);
});

test("a link's place is taken over, and leaves the address", async () => {
  globalThis.location.hash = `#t=${"A".repeat(22)}`;
  const one = holder();
  const { main, kept } = await one.take("A".repeat(22));
  assert.deepEqual(
    [main.dataset.ticket, kept, one.isBlocked, world.replaced],
    [`ticket of ${taken}`, false, false, ["/r/concert"]],
  );
  assert.equal((await holder().take("A".repeat(22))).kept, true, "there is a place now");
});

test("a place that is taken over where cookies are blocked is this tab's own", async () => {
  world.blocksCookies = true;
  const one = holder();
  await one.take("A".repeat(22));
  assert.deepEqual([one.isBlocked, one.own, world.replaced], [true, taken, [`#k=${taken}`]]);
  await one.link();
  assert.deepEqual(world.sent.at(-1), ["/r/concert/link", { secret: taken }]);
});

test("a link that is not used leaves the address, and a page without cookies keeps its own secret there", async () => {
  globalThis.location.hash = `#k=${"B".repeat(43)}`;
  holder().forgetLink();
  assert.deepEqual(world.replaced, ["/r/concert"]);
  world.blocksCookies = true;
  const one = holder();
  await one.join();
  one.forgetLink();
  const own = `#k=${String(world.sent[0]![1].secret)}`;
  assert.deepEqual(world.replaced.slice(1), [own, own]);
});

test("a new place is requested explicitly", async () => {
  await holder().join(undefined, { again: true });
  assert.equal(world.sent[0]![1].again, true);
});
