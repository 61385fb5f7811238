// From a room's address to a verdict: the page that says what is proven, and
// saved proofs that a browser checks without sending them anywhere.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";

import { inSeconds, until } from "../stage/room.mjs";
import { scene, scenes } from "../stage/scene.mjs";

/** How much the page's content has shifted, as browsers measure it. */
function shift(page) {
  return page.evaluate(
    () =>
      new Promise((done) => {
        let sum = 0;
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value;
        }).observe({ type: "layout-shift", buffered: true });
        setTimeout(() => done(sum), 200); // until the observer is called
      }),
  );
}

scenes("was it fair?", () => {
  scene("from every state to the page, and on to the check", async (stage) => {
    const room = await stage.room({ slug: "fair", windows: [{ length: "1s" }], starts: inSeconds(3600) });
    for (const kind of [{ size: "phone" }, { size: "desktop" }, { size: "phone", locale: "ar-EG" }]) {
      const visitor = await stage.visitor(kind);
      await visitor.join(room);
      await visitor.is("drawn");
      await visitor.page.locator(`a[href="/r/${room.slug}/fair"]`).first().click();
      await visitor.page.locator("main#fair").waitFor();
      assert.match(
        await visitor.page.locator("pre").first().textContent(),
        new RegExp(`proofline-verify audit ${room.url} --vkey '`),
      );
      await visitor.inspect("fair");
    }
  });

  scene("a saved proof is checked in the browser, and sent nowhere", async (stage) => {
    const config = { windows: [{ length: "1s" }], starts: inSeconds(3600) };
    const [room, other] = [
      await stage.room({ slug: "proof-drop", ...config }),
      await stage.room({ slug: "proof-other", ...config }),
    ];
    const visitor = await stage.visitor({ size: "phone" });
    await visitor.join(room);
    await visitor.is("drawn");
    await until("all is published", async () => (await visitor.checks(room)).place === "green");
    const [file] = await Promise.all([
      visitor.page.waitForEvent("download"),
      visitor.page.locator("button[data-proof]").click(),
    ]);
    const proof = await readFile(await file.path());

    const friend = await stage.visitor({ size: "desktop" });
    for (const [where, note] of [
      [room, false],
      [other, true],
    ]) {
      await friend.page.goto(`${where.url}/check`);
      await friend.page.locator("[data-drop]").waitFor();
      const asked = [];
      friend.page.on("request", (request) => asked.push(`${request.method()} ${request.url()}`));
      await friend.page
        .locator("[data-file]")
        .setInputFiles({ name: "proof.json", mimeType: "application/json", buffer: proof });
      assert.deepEqual(await friend.verdict(), {
        overall: "amber",
        record: "green",
        group: "green",
        draw: "amber",
        place: "green",
      });
      assert.equal(await friend.page.locator('[data-drop-is="other"]').isVisible(), note);
      assert.deepEqual(
        asked.filter((request) => !request.includes("/assets/checker")),
        [],
        "nothing is asked or sent",
      );
      friend.page.removeAllListeners("request");
      if (!note) await friend.inspect("proof-checked");
    }
    const text = proof.toString();
    const changed = Buffer.from(text.replace(/"shown": "(\d+)"/, (_, n) => `"shown": "${Number(n) + 1}"`));
    for (const [content, expected] of [
      [changed, "red"],
      [Buffer.from("no proof"), "bad"],
    ]) {
      await friend.page.goto(`${room.url}/check`);
      await friend.page
        .locator("[data-file]")
        .setInputFiles({ name: "proof.json", mimeType: "application/json", buffer: content });
      if (expected === "bad") await friend.page.locator('[data-drop-is="bad"]:visible').waitFor();
      else assert.equal((await friend.verdict()).overall, expected);
    }
  });

  scene("the page of a place moves little when its script comes late", async (stage, t) => {
    const room = await stage.room({ slug: "still-line", windows: [{ length: "1s" }], starts: inSeconds(3600) });
    const visitor = await stage.visitor({ size: "phone" });
    await visitor.join(room);
    await visitor.is("drawn");
    await visitor.page.route("**/assets/page*.js", async (route) => {
      await pause(600);
      await route.continue();
    });
    await visitor.page.goto(room.url);
    await visitor.page.locator("button[data-alert]").waitFor();
    await visitor.page.locator("#line [data-verdict]:visible").waitFor();
    const moved = await shift(visitor.page);
    t.diagnostic(`layout shift of a place: ${moved.toFixed(3)}`);
    assert.ok(moved < 0.1, `the layout shifts by ${moved}`);
  });

  scene("the check moves nothing that is being read", async (stage, t) => {
    const room = await stage.room({ slug: "still-check", windows: [{ length: "1s" }], starts: inSeconds(3600) });
    for (const size of ["phone", "desktop"]) {
      const visitor = await stage.visitor({ size });
      await visitor.join(room);
      await visitor.is("drawn");
      await until("all is published", async () => (await visitor.checks(room)).place === "green");
      await visitor.page.route("**/assets/checker*", async (route) => {
        await pause(700); // as on a slow network, while the page is shown
        await route.continue();
      });
      await visitor.checks(room);
      const moved = await shift(visitor.page);
      assert.ok(moved < 0.1, `the layout shifts by ${moved} on ${size}`);
      t.diagnostic(`layout shift of the check on ${size}: ${moved.toFixed(3)}`);
      await visitor.page.evaluate(() =>
        document.querySelector("main").prepend(Object.assign(document.createElement("div"), { style: "height: 50vh" })),
      );
      assert.ok((await shift(visitor.page)) > 0.1, "what does move is seen");
    }
  });
});
