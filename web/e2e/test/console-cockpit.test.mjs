// The dashboard has the important figures and the controls on one screen, and a room whose claims
// are frozen says so on every page.
import assert from "node:assert/strict";

import { accessible } from "../stage/axe.mjs";
import { ownServer } from "../stage/office.mjs";
import { inSeconds, Room, until } from "../stage/room.mjs";
import { scene } from "../stage/scene.mjs";

const own = ownServer();
const { owner } = own;

/** Returns where an element ends, in pixels from the top of the unscrolled window. */
const bottom = (page, selector) =>
  page
    .locator(selector)
    .first()
    .evaluate((one) => Math.round(one.getBoundingClientRect().bottom));

/** A sale in which three of four called visitors do not come. */
async function sale(stage, slug) {
  const room = await Room.create(
    {
      slug,
      opens: inSeconds(2),
      starts: inSeconds(4),
      closes: inSeconds(7200),
      windows: [{ length: "2s" }],
      claim: "1s",
      outflow: { per_minute: 6000, max_active: 500 },
    },
    own.server,
  );
  stage.rooms.push(room);
  await room.open();
  await room.crowd(40);
  return room;
}

scene("numbers that matter and the controls are on one screen", async (stage) => {
  const organizer = await owner(stage);
  const room = await sale(stage, "cockpit");
  await organizer.go("/rooms/cockpit");
  await until("no-shows are counted", async () => (await organizer.figures()).no_shows > 20);
  await room.amend({ outflow: { per_minute: 60 } });
  await room.crowd(200);
  const phone = await owner(stage, { size: "phone" });
  for (const [one, height] of [
    [organizer, 800],
    [phone, 844],
  ]) {
    const { page } = one;
    await one.go("/rooms/cockpit");
    await page.getByText("Live, updated every second.").waitFor();
    await page.locator('[data-countdown="closes"]:not([hidden])').waitFor();
    assert.match(await page.locator('[data-countdown="closes"] b').innerText(), /^1:\d\d:\d\d$/);
    assert.match(await page.locator('[data-countdown="called"] b').innerText(), /^in \d+ to \d+ min$/);
    await page.locator('[data-level="bad"]').waitFor();
    const [warning, ink] = await page.evaluate(() => {
      const color = (selector) => getComputedStyle(document.querySelector(selector)).color;
      return [color('[data-figure="no_show_rate.recent"]'), color('[data-figure="waiting"]')];
    });
    assert.notEqual(warning, ink, "no-shows stand out");
    await page.getByText("of the called visitors do not show up").waitFor();
    const bar = await page.locator(".control-bar").evaluate((one) => one.getBoundingClientRect());
    assert.ok(
      (await bottom(page, ".figures.key")) <= bar.top,
      `the figures end at ${await bottom(page, ".figures.key")}, and the controls begin at ${bar.top}`,
    );
    if (height === 800)
      assert.ok((await bottom(page, ".cockpit")) <= bar.top, `the charts end at ${await bottom(page, ".cockpit")}`);
    assert.ok((await bottom(page, ".control-bar")) <= height, "the controls are in reach");
    for (const part of [0.5, 1]) {
      await page.evaluate((share) => scrollTo(0, document.body.scrollHeight * share), part);
      const box = await page.locator(".control-bar").evaluate((one) => one.getBoundingClientRect());
      assert.ok(box.top >= 0 && box.bottom <= height, `they stay in reach: from ${box.top} to ${box.bottom}`);
    }
    await page.evaluate(() => scrollTo(0, 0));
    assert.equal((await page.locator("main").innerText()).includes("Goroutines"), false);
    await one.inspect("cockpit");
    if (one === phone) await one.view("cockpit");
  }
  const cut = await phone.page
    .locator(".nav a, .tabs a")
    .evaluateAll((all) =>
      all.filter((one) => one.getBoundingClientRect().right > innerWidth).map((one) => one.textContent),
    );
  assert.deepEqual(cut, [], "links that are out of sight on a phone");
  await organizer.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await organizer.press("Copy");
  await organizer.page.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(await organizer.page.evaluate(() => navigator.clipboard.readText()), room.url);
  await organizer.page.getByText("QR code, for posters and screens").click();
  await organizer.page.getByRole("img", { name: "QR code of the address" }).waitFor();
  await room.end();
  await until("the dashboard says so", async () => (await organizer.figures()).phase === "ended");
  await until("the controls are gone", async () => (await organizer.page.locator(".control-bar").count()) === 0);
});

scene("lanes and seats have their figures", async (stage) => {
  const lanes = [
    { name: "general", weight: 7 },
    { name: "members", weight: 3 },
  ];
  const more = { lanes, party: 4, seats: 60, opens: inSeconds(2), starts: inSeconds(4), windows: [{ length: "2s" }] };
  const room = await Room.create(
    { slug: "lanes", closes: inSeconds(7200), claim: "1h", outflow: { per_minute: 6000 }, ...more },
    own.server,
  );
  stage.rooms.push(room);
  await room.open();
  await room.crowd(20, { seats: 2 });
  await room.crowd(20, { lane: "members", seats: 2 });
  await until("the seats are called", async () => (await room.state()).lanes.members.called === 10);
  for (const size of ["desktop", "phone"]) {
    const one = await owner(stage, { size });
    await one.go("/rooms/lanes");
    await one.page.getByText("Live, updated every second.").waitFor();
    const row = one.page.locator("[data-rows=lanes] tr", { hasText: "members" });
    await until("the table has the lane's figures", async () => {
      const cells = await row.locator("td").allInnerTexts();
      return cells[1] === "30.0 %" && cells[3] === "10" && cells[4] === "10" && cells[5] === "20" && cells[6] === "0";
    });
    assert.equal(await one.page.locator('[data-figure="seats.held"]').innerText(), "60");
    assert.equal(await one.page.locator('[data-figure="seats.wanted"]').innerText(), "80");
    await one.page.getByRole("heading", { name: "Lanes" }).evaluate((heading) => heading.scrollIntoView());
    await one.fits("the dashboard of lanes");
    await accessible(one.page, "the dashboard of lanes");
    await one.view(`lanes-${size}`);
  }
  await room.end();
});

scene("every page of the room distinguishes frozen claims from a pause", async (stage) => {
  const organizer = await owner(stage);
  organizer.watch.allow(/^console: Blocked script execution in/); // the watch itself, in the preview's frame
  const { page } = organizer;
  const room = await sale(stage, "stopped");
  const watching = await organizer.another();
  await watching.go("/rooms/stopped");
  await watching.page.getByText("Live, updated every second.").waitFor();
  await room.pause();
  await watching.page.locator('h1 [data-phase="paused"]').waitFor();
  await watching.page.getByRole("button", { name: "Resume", exact: true }).waitFor(); // without reloading the page
  assert.equal(await watching.page.locator(".frozen-bar").count(), 0, "a pause freezes no claims");
  await organizer.go("/rooms/stopped");
  assert.equal(await page.locator("h1 .badge").innerText(), "calls paused");
  await organizer.decide("Freeze claims");
  await organizer.told("Claims are frozen.");
  await watching.page.locator(".frozen-bar").waitFor();
  assert.equal(await watching.page.locator("h1 .badge").innerText(), "claims frozen");
  for (const path of [
    "/rooms/stopped",
    "/rooms/stopped/settings",
    "/rooms/stopped/brand",
    "/rooms/stopped/preview",
    "/rooms/stopped/rehearsal",
    "/rooms/stopped/history",
    "/rooms/stopped/ticket",
    "/rooms/stopped/queue-it",
    "/activity?object=stopped",
  ]) {
    await organizer.go(path);
    const bar = page.locator(".frozen-bar");
    assert.equal(await bar.count(), 1, `${path} says that claims are frozen`);
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    assert.ok((await bar.evaluate((one) => one.getBoundingClientRect().top)) >= 0, `${path}: the bar stays in sight`);
  }
  await organizer.go("/rooms/stopped");
  await accessible(page, "a room whose claims are frozen");
  await organizer.view("claims-frozen");
  await organizer.go("/rooms");
  await page.locator(".badge.bad", { hasText: "claims frozen" }).waitFor();
  await organizer.go("/rooms/stopped/settings");
  await organizer.decide("Resume");
  await organizer.told("The line continues.");
  await watching.page.locator(".frozen-bar").waitFor({ state: "detached" });
});
