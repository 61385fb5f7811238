import assert from "node:assert/strict";
import { test } from "node:test";

import { Feed, type Hearing, type State } from "../../src/console/live/feed.ts";
import { FakeTimers } from "../page/timers.ts";

/** A feed whose streams do what the test says. */
function feeding() {
  const timers = new FakeTimers();
  const streams: { hearing: Hearing; isOpen: boolean }[] = [];
  const heard: string[] = [];
  const states: State[] = [];
  const server = { status: 204 };
  const feed = new Feed(
    (hearing) => {
      const stream = { hearing, isOpen: true, close: () => void (stream.isOpen = false) };
      streams.push(stream);
      return stream;
    },
    () => Promise.resolve(server.status),
    { past: (text) => heard.push(`past ${text}`), figures: (text) => heard.push(text) },
    (state) => states.push(state),
    timers,
  );
  const state = () => states.at(-1)!.is;
  return { timers, streams, heard, states, server, feed, state };
}

test("figures are received, and silence is noticed", async () => {
  const { timers, streams, heard, feed, state } = feeding();
  feed.start();
  feed.start();
  assert.equal(streams.length, 1);
  assert.equal(state(), "connecting");
  streams[0]!.hearing.past("p");
  streams[0]!.hearing.figures("1");
  await timers.pass(4000);
  streams[0]!.hearing.figures("2");
  await timers.pass(4900);
  assert.equal(state(), "live");
  await timers.pass(200);
  assert.equal(state(), "stale");
  streams[0]!.hearing.figures("3");
  assert.equal(state(), "live");
  assert.deepEqual(heard, ["past p", "1", "2", "3"]);
});

test("a stream that fails is opened again, after longer and longer waits", async () => {
  const { timers, streams, feed, state, server } = feeding();
  feed.start();
  server.status = 0;
  const waits: number[] = [];
  for (let i = 0; i < 9; i++) {
    const began = timers.now();
    const count = streams.length;
    streams.at(-1)!.hearing.failed();
    await timers.pass(0);
    assert.equal(state(), "waiting");
    assert.equal(streams.at(-1)!.isOpen, false);
    while (streams.length === count) await timers.pass(100);
    waits.push(timers.now() - began);
  }
  assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  streams.at(-1)!.hearing.figures("1");
  streams.at(-1)!.hearing.failed();
  const count = streams.length;
  await timers.pass(600); // everything is fine again, so the next attempt is soon
  assert.equal(streams.length, count + 1);
});

test("a refusal is reported, and the feed stops", async () => {
  for (const status of [401, 403, 404]) {
    const { timers, streams, feed, states, server } = feeding();
    server.status = status;
    feed.start();
    streams[0]!.hearing.failed();
    await timers.pass(1000);
    streams[1]!.hearing.failed();
    await timers.pass(60_000);
    assert.deepEqual(states.at(-1), { is: "refused", status });
    feed.start();
    assert.equal(streams.length, 2);
  }
});

test("a hidden page stops listening, and resumes at once when it is visible", async () => {
  const { timers, streams, heard, feed, state } = feeding();
  feed.start();
  streams[0]!.hearing.figures("1");
  feed.show(false);
  await timers.pass(4000);
  feed.show(true); // soon enough
  await timers.pass(10_000);
  assert.equal(streams[0]!.isOpen, true);
  feed.show(false);
  await timers.pass(6000);
  assert.equal(state(), "hidden");
  assert.equal(streams[0]!.isOpen, false);
  streams[0]!.hearing.figures("late");
  streams[0]!.hearing.failed();
  await timers.pass(60_000);
  assert.deepEqual([heard, streams.length, timers.pending], [["1"], 1, 0]);
  feed.show(true);
  assert.equal(streams.length, 2);
  streams[1]!.hearing.figures("2");
  assert.equal(state(), "live");
});
