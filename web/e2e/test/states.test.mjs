// Every state of the page, on a phone and on a desktop, in English and Arabic, light and dark:
// complete, accessible, within the screen's width.
import assert from "node:assert/strict";

import { inSeconds, until } from "../stage/room.mjs";
import { scene, scenes } from "../stage/scene.mjs";
import { Shop } from "../stage/shop.mjs";

/** Brings a visitor with each kind of screen into a state, and checks the page. */
async function everywhere(stage, what, bring) {
  const kinds = [{ size: "phone" }, { size: "desktop" }, { size: "phone", locale: "ar-EG" }];
  await Promise.all(
    kinds.map(async (kind) => {
      const visitor = await stage.visitor(kind);
      await bring(visitor);
      await visitor.inspect(what);
    }),
  );
}

const soon = { windows: [{ length: "1s" }] }; // drawn soon
const rush = { ...soon, outflow: { per_minute: 60_000 } }; // and called at once

/** A PNG of one dot. */
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** All settings of a brand. */
const looks = {
  color: "#7a1fa2",
  background: "#faf5ff",
  logo: `data:image/png;base64,${dot}`,
  dark: { color: "#ffd54f", background: "#12001a", logo: `data:image/png;base64,${dot}` },
  font: "serif",
  corners: "square",
  languages: ["en", "ar"],
  texts: {
    en: {
      headline: "Everybody is welcome <b>",
      intro: "Doors open early.\nBring water.",
      help: "Ask us.",
      help_url: "mailto:help@example.com",
      footer: "All rights reserved.",
      privacy_url: "https://example.com/privacy",
      imprint_url: "https://example.com/imprint",
    },
  },
  css: `
    header { background: linear-gradient(to right, #7a1fa2, #512da8); color: #fff; padding: 1rem }
    main section { background: #fff3e0; padding: 1rem; border: 1px solid #7a1fa2 }
    .track { border-block-start: 2px solid var(--accent); padding-block-start: 1rem }
    footer { background: var(--accent); padding: 1rem }
    .main { background: #004d40; color: #fff; letter-spacing: 0.02em }
    @media (prefers-color-scheme: dark) { main section { background: #1d1226 } }
  `,
};

scenes("states", () => {
  scene("before the opening: a countdown", async (stage) => {
    const room = await stage.room({ slug: "upcoming", opens: inSeconds(754), starts: inSeconds(2554) });
    await everywhere(stage, "upcoming", async (visitor) => {
      await (await visitor.visit(room)).is("upcoming");
      const countdown = visitor.page.getByRole("timer");
      const first = await countdown.textContent();
      assert.match(first, /^1[12]:\d\d$/);
      await visitor.page.waitForFunction(
        (first) => document.querySelector("[role=timer]").textContent !== first,
        first,
      );
    });
  });

  scene("open, and no place yet", async (stage) => {
    const room = await stage.room({
      slug: "joinable",
      starts: inSeconds(1800),
      closes: inSeconds(7200),
      brand: looks,
    });
    await room.say("Doors open at 19:00.\nBring your ID.");
    await everywhere(stage, "joinable", async (visitor) => {
      await (await visitor.visit(room)).is("joinable");
      await visitor.page.getByText("Bring your ID.").waitFor();
      await visitor.page.getByText("Everybody is welcome <b>").waitFor();
      assert.equal(await visitor.page.locator(".languages li").count(), 2);
    });
  });

  scene("a party: a number of seats to choose, and on every page of the place", async (stage) => {
    const room = await stage.room({ slug: "party", windows: [{ length: "3s" }], party: 6 });
    await room.callByHand();
    await everywhere(stage, "party-joinable", async (visitor) => {
      await (await visitor.visit(room)).is("joinable");
      assert.equal(await visitor.page.locator("select").inputValue(), "1");
      assert.equal(await visitor.page.locator("option").count(), 6);
    });
    await everywhere(stage, "party-drawn", async (visitor) => {
      await visitor.visit(room);
      await visitor.page.locator("select").selectOption("4");
      await visitor.main();
      await visitor.page.locator('[data-seats="4"]').waitFor();
      await visitor.is("drawn");
      await visitor.page.locator('[data-seats="4"]').waitFor();
    });
  });

  scene("drawn, in an organizer's looks", async (stage) => {
    const room = await stage.room({
      slug: "looks",
      windows: [{ length: "3s" }],
      outflow: { per_minute: 20 },
      brand: looks,
    });
    await room.crowd(60);
    await room.drawn();
    await room.crowd(20);
    await everywhere(stage, "looks", async (visitor) => {
      await visitor.join(room);
      await visitor.is("drawn");
      const track = visitor.page.locator(".track");
      assert.equal(await track.evaluate((list) => getComputedStyle(list).borderTopWidth), "2px");
    });
  });

  scene("in a group that is not drawn", async (stage) => {
    const [opens, then] = [inSeconds(2), inSeconds(12)];
    const windows = [{ length: "10s" }, { from: then, length: "1h" }];
    const room = await stage.room({
      slug: "waiting",
      opens,
      windows,
      starts: inSeconds(900),
      outflow: { per_minute: 300 },
    });
    await room.open();
    await room.crowd(320);
    await room.drawn();
    await room.crowd(86);
    await everywhere(stage, "waiting", async (visitor) => {
      await visitor.join(room);
      await visitor.is("waiting");
      const { position } = await visitor.data();
      assert.equal(position, undefined, "no position before the draw");
      await visitor.page.getByText("320").first().waitFor();
    });
  });

  scene("drawn", async (stage) => {
    const room = await stage.room({ slug: "drawn", windows: [{ length: "3s" }], outflow: { per_minute: 20 } });
    await room.crowd(400);
    await room.drawn();
    await room.crowd(200);
    await everywhere(stage, "drawn", async (visitor) => {
      await visitor.join(room);
      await visitor.is("drawn");
      assert.ok((await visitor.position()) > 400);
      await visitor.page.locator("#line [data-verdict][data-status=amber]").waitFor(); // the page checks by itself
    });
  });

  scene("paused while in line", async (stage) => {
    const room = await stage.room({ slug: "paused", ...soon, starts: inSeconds(3600) });
    let drawn = 0;
    await everywhere(stage, "paused", async (visitor) => {
      await visitor.join(room);
      await visitor.is("drawn");
      if (++drawn === 3) await room.pause();
      await until("it is paused", async () => (await room.state()).paused);
      await visitor.page.reload();
      await visitor.page.locator('[data-show="paused"]').waitFor();
    });
  });

  scene("called, with time to go in", async (stage) => {
    const room = await stage.room({
      slug: "called",
      ...rush,
      claim: "5m",
      targets: ["https://shop.example.com/tickets"],
    });
    await everywhere(stage, "called", async (visitor) => {
      await visitor.join(room);
      await visitor.is("called");
      assert.match(await visitor.page.getByRole("timer").textContent(), /^[45]:\d\d$/);
    });
  });

  scene("called, with more time to ask for", async (stage) => {
    const room = await stage.room({ slug: "called-extend", ...rush, claim: "5m", extend: "10m" });
    await everywhere(stage, "called-extend", async (visitor) => {
      await visitor.join(room);
      await visitor.is("called");
    });
    await everywhere(stage, "called-extended", async (visitor) => {
      await visitor.join(room);
      await visitor.is("called");
      await visitor.page.locator('[data-post="extend"] button').click();
      await visitor.page.locator('[data-post="extend"]').waitFor({ state: "detached" });
      assert.match(await visitor.page.getByRole("timer").textContent(), /^1[45]:\d\d$/);
    });
  });

  scene("called, with little time left", async (stage) => {
    const room = await stage.room({ slug: "hurry", ...rush, claim: "59s" });
    await everywhere(stage, "hurry", async (visitor) => {
      await visitor.join(room);
      await visitor.is("called");
      await visitor.page.locator(".urgent").waitFor();
    });
  });

  scene("called, and paused: the time stands still", async (stage) => {
    const room = await stage.room({ slug: "still", ...rush, claim: "4m" });
    const all = [];
    await everywhere(stage, "called-paused", async (visitor) => {
      await visitor.join(room);
      await visitor.is("called");
      all.push(visitor);
      if (all.length === 3) await room.pause();
      await visitor.page.locator('main[data-paused] [data-show="paused"]').first().waitFor();
      const timer = visitor.page.getByRole("timer");
      const left = await timer.textContent();
      const ticks = await visitor.page.evaluate(() => new Promise((done) => setTimeout(() => done(2), 2100))); // of one second each
      assert.equal(ticks, 2);
      assert.equal(await timer.textContent(), left);
    });
  });

  scene("admitted: redirected to the target, and back", async (stage) => {
    const shop = await Shop.open();
    stage.origins.push(shop.origin);
    try {
      const room = await stage.room({ slug: "admitted", ...rush, targets: [shop.target] });
      await everywhere(stage, "admitted", async (visitor) => {
        await visitor.join(room);
        await visitor.is("called");
        await visitor.main();
        await visitor.page.waitForURL(`${shop.target}?proofline_pass=*`);
        await visitor.visit(room);
        await visitor.is("admitted");
      });
    } finally {
      shop.close();
    }
  });

  scene("back in the line after the visit: a new place", async (stage) => {
    const shop = await Shop.open();
    stage.origins.push(shop.origin);
    try {
      const room = await stage.room({ slug: "visit-over", ...rush, targets: [shop.target] });
      await everywhere(stage, "over", async (visitor) => {
        await visitor.join(room);
        await visitor.is("called");
        await visitor.main();
        await visitor.page.waitForURL(`${shop.target}?proofline_pass=*`);
        const pass = new URL(visitor.page.url()).searchParams.get("proofline_pass");
        const released = await fetch(`${room.url}/sessions/release`, {
          method: "POST",
          headers: { Authorization: `Bearer ${pass}` },
        });
        assert.equal(released.status, 200);
        await visitor.visit(room);
        await visitor.is("over");
      });
      const [{ page }] = stage.visitors;
      const { ticket } = await stage.visitors[0].data();
      await page.getByRole("button", { name: "Take a new place" }).click();
      await page.locator(`main[data-ticket]:not([data-ticket="${ticket}"])`).waitFor();
    } finally {
      shop.close();
    }
  });

  scene("missed", async (stage) => {
    const room = await stage.room({ slug: "missed", ...rush, claim: "1s" });
    await everywhere(stage, "missed", async (visitor) => {
      await visitor.join(room);
      await visitor.is("missed");
    });
  });

  scene("left the line", async (stage) => {
    const room = await stage.room({ slug: "left", windows: [{ length: "1h" }] });
    await everywhere(stage, "left", async (visitor) => {
      await visitor.join(room);
      await visitor.page.locator("details summary").click();
      await visitor.picture(`leaving-${visitor.name}`);
      await visitor.page.locator('[data-post="leave"] button').click();
      await visitor.is("left");
    });
    const skips = (await room.transcript()).filter(({ kind }) => kind === "skip");
    assert.equal(skips.length, 3);
    for (const { fields } of skips) assert.equal(fields[2], "left");
  });

  scene("the place was withdrawn", async (stage) => {
    const room = await stage.room({ slug: "revoked", ...soon, starts: inSeconds(3600) });
    await everywhere(stage, "revoked", async (visitor) => {
      await visitor.join(room);
      await visitor.is("drawn");
      await room.revoke(await visitor.ticket());
      await visitor.page.reload();
      await visitor.is("revoked");
      assert.equal(await visitor.page.locator("form").count(), 0, "a withdrawn place is not given again");
    });
  });

  scene("full, for a visitor without a place", async (stage) => {
    const room = await stage.room({ slug: "full", windows: [{ length: "1h" }], max_waiting: 5 });
    await room.crowd(5);
    await everywhere(stage, "full", async (visitor) => {
      await visitor.visit(room);
      await visitor.is("full");
    });
  });

  scene("closed, for a visitor without a place", async (stage) => {
    const room = await stage.room({ slug: "closed", ...soon, starts: inSeconds(3600), closes: inSeconds(8) });
    await room.crowd(3);
    await until("it is closed", async () => (await room.state()).phase === "closed");
    await everywhere(stage, "closed", async (visitor) => {
      await visitor.visit(room);
      await visitor.is("closed");
    });
  });

  scene("ended, with a place and without", async (stage) => {
    const room = await stage.room({ slug: "ended", windows: [{ length: "1h" }] });
    let joined = 0;
    await everywhere(stage, "ended-waiting", async (visitor) => {
      await visitor.join(room);
      if (++joined === 3) await room.end();
      await until("it is over", async () => (await room.state()).phase === "ended");
      await visitor.page.reload();
      await visitor.is("ended");
    });
    await everywhere(stage, "ended", async (visitor) => {
      await visitor.visit(room);
      await visitor.is("ended");
    });
  });

  scene("the check of a place", async (stage) => {
    const room = await stage.room({ slug: "checked", ...soon, starts: inSeconds(3600) });
    await room.crowd(80);
    await everywhere(stage, "check", async (visitor) => {
      await visitor.join(room);
      await visitor.is("drawn");
      const result = await visitor.checks(room);
      assert.deepEqual(
        result,
        { overall: "amber", record: "green", group: "green", draw: "amber", place: "green" },
        "amber, because there is no beacon",
      );
    });
  });

  scene("the check without a place, and before the draw", async (stage) => {
    const room = await stage.room({ slug: "unchecked", windows: [{ length: "1h" }] });
    await everywhere(stage, "check-none", (visitor) => visitor.page.goto(`${room.url}/check`));
    await everywhere(stage, "check-waiting", async (visitor) => {
      await visitor.join(room);
      await room.transcript(); // waits until the join is published, up to a second later: until then the published transcript is behind
      assert.deepEqual(await visitor.checks(room), {
        overall: "neutral",
        record: "green",
        group: "neutral",
        draw: "neutral",
        place: "neutral",
      });
    });
  });

  scene("errors: no such room, and a form that comes too early", async (stage) => {
    const room = await stage.room({ slug: "early", opens: inSeconds(3600) });
    await everywhere(stage, "not-found", async (visitor) => {
      visitor.watch.expect(/status of 404/);
      const answer = await visitor.page.goto(`${room.url}-is-no-room`);
      assert.equal(answer.status(), 404);
      await visitor.page.locator('main#error[data-kind="not-found"]').waitFor();
    });
    await everywhere(stage, "early", async (visitor) => {
      visitor.watch.expect(/status of 409/);
      await visitor.visit(room);
      await visitor.page.evaluate((action) => {
        const form = Object.assign(document.createElement("form"), { method: "post", action });
        document.body.append(form);
        form.submit(); // unlike a tap on a button, this does not depend on the page's script
      }, `${room.url}/line`);
      await visitor.page.locator('main#error[data-kind="early"]').waitFor();
    });
  });
});
