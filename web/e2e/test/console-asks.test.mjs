// Every control shows what it changes before it acts, and shows problems next to their fields.
import assert from "node:assert/strict";
import { after, before } from "node:test";

import { accessible } from "../stage/axe.mjs";
import { Organizer } from "../stage/organizer.mjs";
import { Room } from "../stage/room.mjs";
import { scene } from "../stage/scene.mjs";
import { Server } from "../stage/server.mjs";

let server;
let kept; // the owner's cookies

before(async () => (server = await Server.start({ beacon: true })));
after(() => server?.stop());

async function owner(stage, options) {
  stage.origins = [server.url];
  return Organizer.at(stage, server, "owner@example.com", { storageState: kept, ...options });
}

const dialog = (organizer) => organizer.page.getByRole("dialog");

/** Returns the lines of the dialog, by their labels: [before, after] or [value]. */
async function changes(organizer) {
  const rows = dialog(organizer).locator(".changes > div");
  return Object.fromEntries(
    await rows.evaluateAll((all) =>
      all.map((row) => {
        const plain = (one) => one.innerText.replace(/^(before|after): ?/, "").trim();
        const values = [...row.querySelectorAll("del, ins")];
        return [
          row.querySelector("dt").innerText,
          values.length ? values.map(plain) : [plain(row.querySelector("dd"))],
        ];
      }),
    ),
  );
}

scene("publishing checks the draft first, and shows what it makes", async (stage) => {
  const organizer = await owner(stage, { storageState: undefined });
  await organizer.setUp("Concert hall", "Box office");
  kept = await organizer.context.storageState();
  const { page } = organizer;
  organizer.watch.expect(/status of 400/);
  await organizer.go("/rooms/new?preset=draw-then-minutes");
  await organizer.fill({ Title: "Evening concert", "People per minute": "abc" });
  await organizer.press("Publish");
  await page.locator('[id="e-outflow.per_minute"]').waitFor();
  assert.equal(await dialog(organizer).count(), 0, "a draft that cannot be published asks nothing");
  await organizer.fill({ "People per minute": "600", "Addresses of the shop": "https://shop.example.com/tickets" });
  await organizer.press("Publish");
  await dialog(organizer).waitFor();
  const shown = await changes(organizer);
  assert.deepEqual(shown.Title, ["Evening concert"]);
  assert.deepEqual(shown["Time zone"], ["Europe/Vienna"]);
  assert.match(shown.Opens[0], /^\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d(:\d\d)?$/);
  assert.match(shown.Starts[0], /^\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d(:\d\d)?$/);
  assert.deepEqual(shown.Beacon, ["drand:quicknet"]);
  assert.equal(
    await dialog(organizer).locator(".warn").count(),
    0,
    "public randomness by default leaves nothing to warn of",
  );
  assert.deepEqual(shown.Pace, ["600 a minute"]);
  assert.deepEqual(shown.Shop, ["https://shop.example.com/tickets"]);
  const size = page.viewportSize();
  await page.setViewportSize({ width: 1280, height: 800 });
  for (const scrolled of [0, 10_000]) {
    await dialog(organizer).evaluate((one, top) => one.scrollTo(0, top), scrolled);
    const button = await dialog(organizer).getByRole("button", { name: "Publish" }).boundingBox();
    const frame = await dialog(organizer).boundingBox();
    const end = Math.min(800, frame.y + frame.height);
    assert.ok(
      button.y > frame.y && button.y + button.height <= end,
      `the button is at ${button.y}, the dialog ends at ${end}`,
    );
  }
  await dialog(organizer).evaluate((one) => one.scrollTo(0, 0));
  await page.setViewportSize(size);
  await accessible(page, "the publish dialog");
  await organizer.view("publish-dialog");
  await dialog(organizer).getByRole("link", { name: "Cancel" }).click();
  await page.waitForURL(/\/drafts\//);
  await organizer.fill({ "Time zone of the event": "Asia/Tokyo" });
  await organizer.press("Publish");
  await dialog(organizer).waitFor();
  assert.deepEqual((await changes(organizer))["Time zone"], ["Asia/Tokyo (times here: Europe/Vienna)"]);
  await dialog(organizer).getByRole("link", { name: "Cancel" }).click();
  await page.waitForURL(/\/drafts\//);
  await organizer.decide("Publish");
  await organizer.told("The room is published");
});

scene("controls show old and new values, and show errors next to the field", async (stage) => {
  const organizer = await owner(stage);
  const { page } = organizer;
  const room = await Room.create({ slug: "asks", windows: [{ length: "24h" }], outflow: { per_minute: 60 } }, server);
  stage.rooms.push(room);
  await room.crowd(30);
  organizer.watch.expect(/status of 400/);
  await organizer.go("/rooms/asks");
  await organizer.fill({ "People per minute": "abc" });
  await organizer.press("Change the outflow");
  const wrong = page.locator('[id="e-outflow.per_minute"]');
  await wrong.waitFor();
  assert.equal(await wrong.innerText(), "Enter a whole number, such as 300.");
  assert.equal(new URL(page.url()).pathname, "/console/rooms/asks", "the page stays");
  assert.equal(await page.evaluate(() => document.activeElement.id), "f-outflow.per_minute");
  assert.equal(await dialog(organizer).count(), 0);
  await organizer.fill({ "People per minute": "900" });
  await organizer.press("Change the outflow");
  await dialog(organizer).waitFor();
  assert.deepEqual((await changes(organizer))["People per minute"], ["60", "900"]);
  await accessible(page, "a question");
  await page.keyboard.press("Escape");
  await dialog(organizer).waitFor({ state: "detached" });
  assert.equal((await room.show()).outflow.per_minute, 60, "a dialog that was closed changes nothing");
  await organizer.decide("Change the outflow");
  await organizer.told("The outflow is changed.");
  await organizer.fill({ "Enter asks to end the room permanently": "other" });
  await organizer.press("End the room");
  await page.locator("#e-slug").waitFor();
  await organizer.fill({ "Enter asks to end the room permanently": "asks" });
  await organizer.press("End the room");
  await dialog(organizer).waitFor();
  assert.deepEqual((await changes(organizer))["Waiting in line"], ["30 people", "sent away"]);
  await dialog(organizer).getByText("no site in this console uses the room").waitFor();
  await organizer.press("End the room", dialog(organizer));
  await organizer.told("The room has ended.");
});

scene("a revoked place is given back, once, with words when that is not possible now", async (stage) => {
  const config = { windows: [{ length: "1s" }], outflow: { per_minute: 60_000 } };
  const room = await Room.create({ slug: "gives-back", ...config }, server);
  stage.rooms.push(room);
  await room.callByHand();
  const people = await room.crowd(2);
  await room.drawn();
  await room.pull(2);
  for (const { ticket } of people) await room.revoke(ticket);
  for (const [size, { ticket }] of [
    ["phone", people[0]],
    ["desktop", people[1]],
  ]) {
    const organizer = await owner(stage, { size });
    const { page } = organizer;
    organizer.watch.expect(/status of 400/);
    await organizer.go(`/rooms/gives-back/ticket?id=${ticket}`);
    await page.getByRole("heading", { name: "skipped: revoked" }).waitFor();
    await organizer.inspect("restore-lookup");
    await room.pause();
    await organizer.press("Give the place back");
    const problem = page.getByRole("alert");
    await problem.waitFor();
    assert.match(await problem.innerText(), /calls are paused. Resume the line first.$/);
    await organizer.inspect("restore-refused");
    await room.resume();
    await organizer.press("Give the place back");
    await dialog(organizer).waitFor();
    assert.equal(await page.getByRole("alert").count(), 0, "the problem is over");
    const { Place: place } = await changes(organizer);
    assert.equal(place[0], "skipped: revoked");
    assert.match(place[1], /^place [12], called at once$/);
    await organizer.inspect("restore-question");
    await organizer.press("Give the place back", dialog(organizer));
    await organizer.told("The visitor has the place again.");
    const { status } = await (await fetch(`${room.url}/tickets/${ticket}`)).json();
    assert.equal(status, "called");
    await organizer.go(`/rooms/gives-back/ticket?id=${ticket}`);
    await page.getByText("This place was revoked before, and given back.").waitFor();
    await room.revoke(ticket);
    await page.reload();
    await page.getByText("That is possible only once.").waitFor();
    assert.equal(await page.getByRole("button", { name: "Give the place back" }).count(), 0);
    await organizer.go("/activity?object=gives-back");
    await page.getByText("gave a revoked place back").first().waitFor();
  }
});

scene("a revoked place is given back without scripts", async (stage) => {
  const room = await Room.create({ slug: "gives-plain", windows: [{ length: "24h" }] }, server);
  stage.rooms.push(room);
  const [{ ticket }] = await room.crowd(1);
  await room.revoke(ticket);
  const organizer = await owner(stage, { javaScriptEnabled: false });
  await organizer.go(`/rooms/gives-plain/ticket?id=${ticket}`);
  await organizer.press("Give the place back");
  await organizer.heading("Give this place back?");
  await organizer.press("Give the place back");
  await organizer.told("The visitor has the place again.");
  const { status } = await (await fetch(`${room.url}/tickets/${ticket}`)).json();
  assert.equal(status, "waiting");
});

for (const size of ["desktop", "phone"]) {
  scene(`the editor's sections, its wrong fields and its methods on a ${size}`, async (stage) => {
    const organizer = await owner(stage, { size });
    const { page } = organizer;
    organizer.watch.expect(/status of 400/);
    const notice = page.locator("[data-wrong]");
    const section = (id) => page.locator(`#${id}[data-section]`);
    await organizer.go("/rooms/new?preset=draw-then-minutes");
    await page.locator("#windows[open]").waitFor();
    assert.equal(await page.locator("[data-section][open]").count(), 1, "only the times are open");
    await organizer.inspect("editor-new");
    await organizer.fill({ "People per minute": "abc" });
    await section("outflow").locator("> summary").press("Enter"); // folds it
    const said = section("outflow").locator("[data-said]");
    assert.match(await said.innerText(), /People per minute: abc · /);
    await organizer.press("Publish");
    await notice.waitFor();
    assert.match(await notice.innerText(), /2 fields below need a change/);
    assert.equal(await page.locator("[data-section][open]").getAttribute("id"), "outflow");
    await organizer.inspect("editor-wrong");
    await notice.getByRole("link", { name: "Title" }).click();
    assert.equal(await page.evaluate(() => document.activeElement.id), "f-title", "the link leads to the title");
    await organizer.fill({ Title: `An evening on a ${size}` });
    assert.match(await notice.innerText(), /one field below needs a change/);
    await organizer.fill({ "People per minute": "600" });
    assert.match(await notice.innerText(), /All fields named here were changed/);
    assert.equal(await page.locator(".error").filter({ visible: true }).count(), 0);
    await organizer.fill({ "People per minute": "abc" });
    assert.match(await notice.innerText(), /one field below needs a change/, "the wrong value is wrong again");
    await organizer.fill({ "People per minute": "600" });

    await section("door").locator("> summary").click();
    await organizer.press("Add a method");
    const row = page.locator(".method");
    await row.getByLabel("Name").fill("Fan Club");
    await row.getByLabel("Kind").selectOption("work");
    assert.equal(await row.getByLabel("Who confirms visitors").isVisible(), false, "work has no issuer");
    await row.getByLabel("Bits of work").fill("many");
    await organizer.press("Publish");
    await notice.getByRole("link", { name: "Methods, row 1, Bits of work" }).click();
    assert.equal(await row.getByLabel("Bits of work").inputValue(), "many");
    assert.ok(await row.getByLabel("Bits of work").evaluate((one) => one === document.activeElement));
    await row.getByLabel("Bits of work").fill("12");
    await row.getByLabel("Kind").selectOption("signed");
    await row.getByLabel("Who confirms visitors").selectOption("");
    await row.getByLabel("Key of the issuer").fill("00ff");
    await organizer.inspect("editor-methods");
    await organizer.press("Edit as text");
    assert.equal(await page.getByLabel("Methods", { exact: true }).inputValue(), "fan-club signed 00ff");
    await page.getByLabel("Methods", { exact: true }).fill("fan-club work 12");
    await organizer.press("Edit the methods in rows");
    assert.equal(await row.getByLabel("Bits of work").inputValue(), "12");
    await organizer.fill({ Lanes: "general 1 fan-club" });
    await organizer.decide("Publish");
    await organizer.told("The room is published");
  });
}
