// Limits of joins: what a visitor sees who is refused for the moment.
import assert from "node:assert/strict";

import { scene, scenes } from "../stage/scene.mjs";

const roomOf = (stage, slug) => stage.room({ slug, windows: [{ length: "1h" }], joins_per_minute: 10 });

/** Joins a room until it has taken as many joins as it takes in a minute. */
async function crowd(room) {
  for (let status = 201; status !== 429; ) ({ status } = await fetch(`${room.url}/join`, { method: "POST" }));
}

scenes("limits of joins", () => {
  scene("without JavaScript the page goes back to the line by itself", async (stage) => {
    const visitor = await stage.visitor({ size: "phone", javaScriptEnabled: false });
    const room = await roomOf(stage, "limits-plain");
    await visitor.visit(room);
    visitor.watch.expect(/status of 429/);
    await crowd(room);
    await visitor.main();
    await visitor.page.locator('main#error[data-kind="limited"]').waitFor();
    await visitor.fits("limited");
    await visitor.picture("limited-phone");
    const [, seconds] = /^(\d+); url=\/r\/limits-plain$/.exec(
      await visitor.page.locator('meta[http-equiv="refresh"]').getAttribute("content"),
    );
    assert.ok(seconds >= 3 && seconds <= 40, `${seconds} s`);
    await visitor.page.locator('main#line[data-state="joinable"]').waitFor({ timeout: 60_000 });
    await visitor.main();
    await visitor.is("waiting");
  });

  scene("with JavaScript the page joins by itself", async (stage) => {
    const visitor = await stage.visitor({ size: "phone" });
    const room = await roomOf(stage, "limits-script");
    await visitor.visit(room);
    visitor.watch.expect(/status of 429/);
    await crowd(room);
    await visitor.main();
    await visitor.page.locator('[data-notice="joining"]:visible').waitFor();
    await visitor.fits("joining");
    await visitor.picture("limited-script-phone");
    await visitor.page.locator('main#line[data-state="waiting"]').waitFor({ timeout: 90_000 });
  });
});
