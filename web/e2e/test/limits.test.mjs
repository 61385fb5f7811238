// Limits of joins: what a visitor sees who is refused for the moment.
import assert from "node:assert/strict";

import { scene, scenes } from "../stage/scene.mjs";

/** A room that has just taken as many joins as it takes in a minute. */
async function crowded(stage, slug) {
  const room = await stage.room({ slug, windows: [{ length: "1h" }], joins_per_minute: 30 });
  for (let status = 201; status !== 429; ) ({ status } = await fetch(`${room.url}/join`, { method: "POST" }));
  return room;
}

scenes("limits of joins", () => {
  scene("without JavaScript the page goes back to the line by itself", async (stage) => {
    const visitor = await stage.visitor({ size: "phone", javaScriptEnabled: false });
    const room = await crowded(stage, "limits-plain");
    await visitor.visit(room);
    visitor.watch.expect(/status of 429/);
    await fetch(`${room.url}/join`, { method: "POST" });
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
    const room = await crowded(stage, "limits-script");
    await visitor.visit(room);
    visitor.watch.expect(/status of 429/);
    await fetch(`${room.url}/join`, { method: "POST" });
    await visitor.main();
    await visitor.page.locator('[data-notice="joining"]:visible').waitFor();
    await visitor.fits("joining");
    await visitor.picture("limited-script-phone");
    await visitor.page.locator('main#line[data-state="waiting"]').waitFor({ timeout: 90_000 });
  });
});
