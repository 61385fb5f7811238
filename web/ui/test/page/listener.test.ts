import assert from "node:assert/strict";
import { test } from "node:test";

import { Listener, type Source } from "../../src/page/listener.ts";
import { FakeTimers } from "./timers.ts";

/** A stream that the test controls. */
class FakeSource implements Source {
  onmessage: Source["onmessage"] = null;
  onerror: Source["onerror"] = null;
  isOpen = true;

  say(data: string): void {
    this.onmessage?.call(this as never, { data } as MessageEvent<string>);
  }

  fail(): void {
    this.onerror?.call(this as never, {} as Event);
  }

  close(): void {
    this.isOpen = false;
  }
}

function listening() {
  const timers = new FakeTimers();
  const sources: FakeSource[] = [];
  const received: string[] = [];
  const open = () => {
    const source = new FakeSource();
    sources.push(source);
    return source;
  };
  return { timers, sources, received, listener: new Listener(open, (text) => received.push(text), timers) };
}

test("one stream is opened, read, and closed", () => {
  const { sources, received, listener } = listening();
  listener.want(false);
  assert.equal(sources.length, 0);
  listener.want(true);
  listener.want(true);
  assert.equal(sources.length, 1);
  assert.equal(listener.hasReceived, false);
  sources[0]!.say("a");
  sources[0]!.say("b");
  assert.deepEqual(received, ["a", "b"]);
  assert.equal(listener.hasReceived, true);
  listener.want(false);
  assert.equal(sources[0]!.isOpen, false);
  assert.equal(listener.hasReceived, false);
  sources[0]!.say("late");
  assert.deepEqual(received, ["a", "b"]);
});

test("a stream that fails is left alone for a minute", async () => {
  const { timers, sources, listener } = listening();
  listener.want(true);
  sources[0]!.fail();
  assert.equal(sources[0]!.isOpen, false);
  listener.want(true);
  await timers.pass(59_000);
  listener.want(true);
  assert.equal(sources.length, 1);
  await timers.pass(2000);
  listener.want(true);
  assert.equal(sources.length, 2);
});
