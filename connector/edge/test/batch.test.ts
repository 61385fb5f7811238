// Batches of session updates.
import assert from "node:assert/strict";
import test from "node:test";
import { Batches, type Kind } from "../src/batch.ts";
import { RoomClient, type Runtime } from "../src/room.ts";
import { parse } from "../src/rules.ts";
import { type Session, tagOf } from "../src/session.ts";

interface Batch {
  touch: string[];
  release: string[];
}

/** Bench is a room that receives batches, and the queue for it. */
class Bench {
  received: Batch[] = [];
  results: string[] = [];
  status = 200;
  now = 0;
  under: Promise<unknown>[] = [];
  readonly batches: Batches;
  readonly #world: Runtime;
  door!: RoomClient;

  constructor() {
    this.#world = {
      ask: async (request) => {
        assert.equal(new URL(request.url).pathname, "/r/sale/sessions/batch");
        assert.deepEqual(
          [request.method, request.headers.get("Content-Type"), request.headers.get("Authorization")],
          ["POST", "application/json", null],
        );
        const batch = (await request.json()) as Batch;
        if (this.status !== 200) return new Response("", { status: this.status });
        this.received.push(batch);
        const say = (token: string) => (token.startsWith("over") ? "over" : "ok");
        return Response.json({ touch: batch.touch.map(say), release: batch.release.map(say) });
      },
      now: () => this.now,
      log: () => {},
    };
    this.batches = new Batches(this.#world, (kind, session, said) =>
      this.results.push(`${kind} ${session.token} ${String(said)}`),
    );
  }

  async open(): Promise<this> {
    const room = parse(`{"version":1,"rooms":{"sale":{"url":"https://queue.example.com/r/sale"}}}`).rooms.get("sale");
    assert.ok(room);
    this.door = RoomClient.make("sale", room, await tagOf(room.url, room.origin), undefined, this.#world);
    return this;
  }

  add(kind: Kind, token: string, gather = 20): boolean {
    return this.batches.add(this.door, kind, { token } as Session, (work) => this.under.push(work), gather);
  }

  get sizes(): number[] {
    return this.received.map(({ touch, release }) => touch.length + release.length);
  }

  async settle(): Promise<void> {
    await Promise.all(this.under.splice(0));
  }
}

test("updates within a second share a batch", async () => {
  const b = await new Bench().open();
  b.add("touch", "a");
  b.add("release", "b");
  b.add("touch", "over c");
  assert.equal(b.under.length, 1, "one request's work for all");
  assert.deepEqual(b.received, []);
  await b.settle();
  assert.deepEqual(b.received, [{ touch: ["a", "over c"], release: ["b"] }]);
  assert.deepEqual(b.results, ["touch a ok", "touch over c over", "release b ok"]);
  b.add("touch", "d", 0);
  await b.settle();
  assert.deepEqual(b.received[1], { touch: ["d"], release: [] });
});

test("a full batch is sent at once", async () => {
  const b = await new Bench().open();
  for (let i = 0; i < 499; i++) b.add("touch", `${i}`, 60_000);
  await new Promise((done) => setTimeout(done, 100));
  assert.deepEqual(b.sizes, []);
  b.add("release", "499", 60_000);
  await b.settle();
  assert.deepEqual(b.sizes, [500]);
  for (let i = 0; i < 1300; i++) b.add(i % 2 ? "touch" : "release", `${i}`, 60_000);
  await b.settle();
  assert.deepEqual(b.sizes, [500, 500, 500, 300]);
});

test("updates for a room that is out of reach are sent later, up to a limit", async () => {
  const b = await new Bench().open();
  b.status = 503;
  b.add("touch", "a");
  await b.settle();
  b.status = 429;
  b.add("release", "b");
  await b.settle();
  assert.deepEqual([b.received, b.results], [[], []]);
  b.status = 200;
  b.add("touch", "c");
  await b.settle();
  assert.deepEqual(b.received, [{ touch: ["a", "c"], release: ["b"] }]);
  b.status = 503;
  let taken = 0;
  for (let i = 0; i < 6000; i++) if (b.add("touch", `${i}`)) taken++;
  assert.equal(taken, 5000);
  assert.equal(b.under.length, 1);
  await b.settle();
  b.status = 200;
  assert.equal(b.add("touch", "one more"), false);
  await b.settle();
  assert.equal(b.results.length, 3 + 5000);
});

test("another request takes over work that the platform has stopped", async () => {
  const b = await new Bench().open();
  b.add("touch", "a", 300);
  b.under = []; // no request waits for it
  b.add("touch", "b");
  assert.equal(b.under.length, 0);
  b.now += 5301;
  b.add("touch", "c");
  await b.settle();
  assert.deepEqual(b.received, [{ touch: ["a", "b", "c"], release: [] }]);
});

test("a room without batches", async () => {
  const b = await new Bench().open();
  b.status = 404;
  b.add("touch", "a");
  await b.settle();
  b.status = 200;
  b.add("touch", "b");
  await b.settle();
  assert.deepEqual(b.received, [{ touch: ["b"], release: [] }], "it is reported only once");
  assert.deepEqual(b.results, ["touch b ok"], "nor is a session over for that");
});
