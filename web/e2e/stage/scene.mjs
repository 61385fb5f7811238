import { after, before, describe, test } from "node:test";
import { chromium } from "playwright-core";

import { launch } from "./launch.mjs";
import { Room } from "./room.mjs";
import { Server } from "./server.mjs";
import { Visitor } from "./visitor.mjs";

let browser;
before(async () => (browser = await chromium.launch(launch)));
after(() => browser?.close());

/** What a test works with: rooms, visitors, and the problems seen on their pages. */
class Stage {
  rooms = [];
  visitors = [];
  browser = browser;
  origins = [Server.running().url];
  honest = true; // false: the test changes the server's responses

  async room(config, server) {
    const room = await Room.create(config, server);
    this.rooms.push(room);
    return room;
  }

  async visitor(options = {}) {
    return this.add(await Visitor.open(this.browser, { origins: this.origins, ...options }));
  }

  add(visitor) {
    this.visitors.push(visitor);
    return visitor;
  }

  async check() {
    for (const { watch } of this.visitors) {
      watch.check();
      for (const room of this.honest ? this.rooms : []) await watch.checkTranscript(room);
    }
  }
}

/** A test with a scene; it fails if there was a problem on any page. */
export function scene(name, act) {
  test(name, async (t) => {
    const stage = new Stage();
    try {
      await act(stage, t);
      await stage.check();
    } catch (failure) {
      for (const { watch } of stage.visitors) for (const problem of watch.problems) t.diagnostic(problem);
      throw failure;
    } finally {
      for (const { context } of stage.visitors) await context.close();
    }
  });
}

/** Runs the scenes of a file, a few at a time, because they mostly wait for draws. */
export function scenes(name, define) {
  describe(name, { concurrency: 3 }, define);
}
