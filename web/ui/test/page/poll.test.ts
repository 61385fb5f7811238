import assert from "node:assert/strict";
import { test } from "node:test";

import { backoff, type Next, Poller } from "../../src/page/poll.ts";
import { FakeTimers, settle } from "./timers.ts";

const every = (after: number): Next => ({ after, jitter: 0.3 });

/** A poller whose requests are recorded with their time, and get scripted responses. */
function polling(answer: (n: number) => Next | Promise<Next>) {
  const timers = new FakeTimers();
  const asked: number[] = [];
  const poller = new Poller(async () => {
    asked.push(timers.now());
    return answer(asked.length);
  }, timers);
  return { timers, asked, poller };
}

test("it asks at the interval of the latest answer", async () => {
  const { timers, asked, poller } = polling((n) => every(n * 1000));
  poller.start(every(500));
  await timers.pass(10_500);
  assert.deepEqual(asked, [500, 1500, 3500, 6500, 10_500]);
});

test("intervals vary by the jitter, and no further", async () => {
  for (const [chance, first] of [
    [0, 1400],
    [0.5, 2000],
    [1, 2600],
  ] as const) {
    const { timers, asked, poller } = polling(() => every(60_000));
    timers.chance = chance;
    poller.start(every(2000));
    await timers.pass(3000);
    assert.deepEqual(asked, [first]);
  }
});

test("failures double the time up to a minute, and success forgets them", async () => {
  const { timers, asked, poller } = polling((n) => {
    if (n <= 7) throw new Error("away");
    return every(1000);
  });
  poller.start(every(0));
  await timers.pass(200_000);
  const gaps = asked.slice(1).map((at, i) => at - asked[i]!);
  assert.deepEqual(gaps.slice(0, 8), [2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 1000]);
  assert.equal(poller.failures, 0);
  assert.equal(backoff(1000), 60_000);
});

test("one question at a time", async () => {
  let finish: (next: Next) => void = () => {};
  const { timers, asked, poller } = polling(() => new Promise((resolve) => (finish = resolve)));
  poller.start(every(0));
  await timers.pass(0);
  poller.now();
  poller.wake();
  await timers.pass(100_000);
  assert.equal(asked.length, 1);
  finish(every(1000));
  await timers.pass(1000);
  assert.equal(asked.length, 2);
});

test("asleep it does not poll; awake it catches up at once", async () => {
  const { timers, asked, poller } = polling(() => every(2000));
  poller.start(every(2000));
  await timers.pass(2000);
  poller.sleep();
  await timers.pass(3_600_000);
  assert.deepEqual(asked, [2000]);
  assert.equal(timers.pending, 0);
  poller.wake();
  await settle();
  assert.deepEqual(asked, [2000, 3_602_000]);
});

test("falling asleep while a question is under way sets no timer", async () => {
  let finish: (next: Next) => void = () => {};
  const { timers, asked, poller } = polling(() => new Promise((resolve) => (finish = resolve)));
  poller.start(every(0));
  await timers.pass(0);
  poller.sleep();
  finish(every(1000));
  await timers.pass(100_000);
  assert.equal(asked.length, 1);
  assert.equal(timers.pending, 0);
});

test("a glance away does not ask again", async () => {
  const { timers, asked, poller } = polling(() => every(2000));
  poller.start(every(0));
  await timers.pass(500);
  poller.sleep();
  poller.wake();
  await timers.pass(1000);
  assert.deepEqual(asked, [0]);
  await timers.pass(1000);
  assert.deepEqual(asked, [0, 2000]);
});

test("a distant visitor who returns after long is served at once", async () => {
  const { timers, asked, poller } = polling(() => every(60_000));
  poller.start(every(0));
  await timers.pass(0);
  poller.sleep();
  await timers.pass(10_000);
  poller.wake();
  await settle();
  assert.deepEqual(asked, [0, 10_000]);
});

test("asleep it does not ask even at once", async () => {
  const { timers, asked, poller } = polling(() => every(1000));
  poller.start(every(1000));
  poller.sleep();
  poller.now();
  await timers.pass(10_000);
  assert.deepEqual(asked, []);
});

test("a stopped poller stays stopped when it is woken", async () => {
  const { timers, asked, poller } = polling(() => every(1000));
  poller.start(every(1000));
  poller.stop();
  poller.wake();
  poller.now();
  await timers.pass(10_000);
  assert.deepEqual(asked, []);
});
