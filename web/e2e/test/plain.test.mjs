// Without JavaScript: forms, links and, for visitors who choose it, a page that reloads itself.
import assert from "node:assert/strict";

import { scene, scenes } from "../stage/scene.mjs";
import { readPass, Shop } from "../stage/shop.mjs";

const plain = { javaScriptEnabled: false };

/** Follows "Check again" until the page is in a state. */
async function checkAgain(visitor, state) {
  for (const end = Date.now() + 60_000; Date.now() < end; ) {
    if ((await visitor.data()).state === state) return;
    await visitor.page.getByRole("link", { name: "Check again", exact: true }).click();
  }
  throw new Error(`not ${state}`);
}

scenes("without JavaScript", () => {
  scene("from joining to the target", async (stage) => {
    const shop = await Shop.open();
    stage.origins.push(shop.origin);
    try {
      const walk = async (size) => {
        const visitor = await stage.visitor({ size, ...plain });
        const room = await stage.room({
          slug: `plain-${size}`,
          windows: [{ length: "6s" }],
          outflow: { per_minute: 60_000 },
          targets: [shop.target],
        });
        await room.callByHand();
        await visitor.visit(room);
        await visitor.picture(`plain-joinable-${size}`);
        await visitor.main();
        await visitor.is("waiting");
        assert.equal(await visitor.page.locator("h1 b").count(), 0, "no place before the draw");
        await visitor.fits("waiting");
        await visitor.picture(`plain-waiting-${size}`);
        const { ticket } = await visitor.data();
        await checkAgain(visitor, "drawn");
        assert.equal(await visitor.position(), 1);
        await visitor.fits("drawn");
        await visitor.page.reload();
        await visitor.is("drawn");
        await room.pull(1);
        await checkAgain(visitor, "called");
        await visitor.picture(`plain-called-${size}`);
        await visitor.main();
        await visitor.page.waitForURL(`${shop.target}?proofline_pass=*`);
        const pass = await readPass(room, new URL(visitor.page.url()).searchParams.get("proofline_pass"));
        assert.equal(pass.sub, ticket);
        await visitor.visit(room);
        await visitor.is("admitted");
        await visitor.page.goto(`${room.url}/check`);
        await visitor.page.getByText("needs JavaScript").waitFor();
        await visitor.picture(`plain-check-${size}`);
        const [download] = await Promise.all([
          visitor.page.waitForEvent("download"),
          visitor.page.getByRole("link", { name: "Save my receipt" }).click(),
        ]);
        assert.equal(download.suggestedFilename(), "receipt.txt");
      };
      await Promise.all([walk("phone"), walk("desktop")]);
    } finally {
      shop.close();
    }
  });

  scene("a script that does not load: the page without it is complete", async (stage) => {
    const room = await stage.room({ slug: "plain-lost", windows: [{ length: "3s" }], outflow: { per_minute: 60_000 } });
    await room.callByHand();
    for (const size of ["phone", "desktop"]) {
      const visitor = await stage.visitor({ size });
      visitor.watch.expect(/ERR_FAILED/);
      await visitor.page.route("**/assets/*.js", (route) => route.abort());
      await visitor.visit(room);
      await visitor.inspect("lost-joinable");
      await visitor.main();
      await visitor.is("waiting");
      await visitor.page.getByRole("link", { name: "Check again every 30 seconds" }).waitFor();
      await visitor.inspect("lost-waiting");
      await checkAgain(visitor, "drawn");
      await visitor.inspect("lost-drawn");
      await visitor.page.goto(`${room.url}/check`);
      await visitor.inspect("lost-check");
    }
  });

  scene("more time to go in, by form", async (stage) => {
    const room = await stage.room({
      slug: "plain-extend",
      windows: [{ length: "1s" }],
      outflow: { per_minute: 60_000 },
      claim: "5m",
      extend: "10m",
    });
    for (const size of ["phone", "desktop"]) {
      const visitor = await stage.visitor({ size, ...plain });
      await visitor.visit(room);
      await visitor.main();
      await checkAgain(visitor, "called");
      assert.ok(Number((await visitor.data()).left) < 301_000);
      const more = visitor.page.getByRole("button", { name: "I need more time" });
      await visitor.fits("extend");
      await visitor.picture(`plain-extend-${size}`);
      await more.click();
      await visitor.is("called");
      assert.ok(Number((await visitor.data()).left) > 800_000);
      assert.equal(await more.count(), 0);
    }
  });

  scene("joining for a party, by form", async (stage) => {
    const room = await stage.room({ slug: "plain-party", windows: [{ length: "1h" }], party: 4 });
    for (const size of ["phone", "desktop"]) {
      const visitor = await stage.visitor({ size, ...plain });
      await visitor.visit(room);
      await visitor.page.getByLabel("How many seats do you need?").selectOption("3");
      await visitor.picture(`plain-party-${size}`);
      await visitor.main();
      await visitor.is("waiting");
      await visitor.page.getByText("Your place in line is for 3 seats.").waitFor();
      const ticket = await visitor.ticket();
      assert.equal((await (await fetch(`${room.url}/tickets/${ticket}`)).json()).seats, 3);
      const { fields } = (await room.transcript()).find((entry) => entry.names(ticket));
      assert.equal(fields.at(-1), "3");
    }
  });

  scene("leaving by form, joining again", async (stage) => {
    const room = await stage.room({ slug: "plain-leave", windows: [{ length: "1h" }] });
    const visitor = await stage.visitor({ size: "phone", ...plain });
    await visitor.visit(room);
    await visitor.main();
    await visitor.is("waiting");
    const first = await visitor.ticket();
    await visitor.page.locator("details summary").click();
    await visitor.page.locator('[data-post="leave"] button').click();
    await visitor.is("left");
    await visitor.main();
    await visitor.is("waiting");
    assert.notEqual(await visitor.ticket(), first);
  });

  scene("the page reloads itself if the visitor asks for it", async (stage) => {
    const room = await stage.room({ slug: "plain-refresh", windows: [{ length: "1h" }] });
    const visitor = await stage.visitor({ size: "phone", ...plain });
    const { page } = visitor;
    await visitor.visit(room);
    await visitor.main();
    await visitor.is("waiting");
    const refresh = page.locator('meta[http-equiv="refresh"]');
    assert.equal(await refresh.count(), 0, "nothing reloads unasked");
    await page.getByRole("link", { name: "Check again every 30 seconds" }).click();
    assert.equal(await refresh.getAttribute("content"), "30");
    await visitor.visit(room, "?refresh=15");
    await page.waitForEvent("request", (request) => request.isNavigationRequest());
    await visitor.is("waiting");
    await page.getByRole("link", { name: "Stop" }).click();
    await visitor.is("waiting");
    assert.equal(await refresh.count(), 0);
  });
});
