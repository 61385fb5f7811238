// Revoking a list of places, what its visitors see, and giving it back.
import assert from "node:assert/strict";
import { after, before } from "node:test";

import { Organizer } from "../stage/organizer.mjs";
import { Room } from "../stage/room.mjs";
import { scene } from "../stage/scene.mjs";
import { Server } from "../stage/server.mjs";

let server;
let kept; // the owner's cookies

before(async () => (server = await Server.start()));
after(() => server?.stop());

const list = (text) => ({ name: "bots.csv", mimeType: "text/csv", buffer: Buffer.from(text) });

/** Waits for a part of the page. */
const part = (page, name) => page.getByRole("heading", { level: 2, name }).waitFor();

scene("a list of places is checked, revoked, and given back", async (stage) => {
  stage.origins = [server.url];
  for (const [index, size] of ["phone", "desktop"].entries()) {
    const organizer = await Organizer.at(stage, server, "owner@example.com", { storageState: kept, size });
    if (!kept) {
      await organizer.setUp("Concert hall", "Box office");
      kept = await organizer.context.storageState();
    }
    const slug = `list-${size}`;
    const appeal = ["help@example.com", "https://example.com/appeal"][index];
    const room = await Room.create({ slug, windows: [{ length: "24h" }], appeal }, server);
    stage.rooms.push(room);
    const people = await room.crowd(3);
    const { page } = organizer;
    organizer.watch.expect(/status of 400/);
    await organizer.go(`/rooms/${slug}`);
    await page.getByRole("link", { name: "Revoke many" }).click();
    await organizer.heading("Revoke many places");
    await organizer.inspect("list-form");
    await page.getByLabel("File", { exact: true }).setInputFiles(list(`${people[0].ticket}\nnobody\n`));
    await organizer.press("Check the list");
    await page.getByText('Line 2: "nobody" is no ticket.').waitFor();
    await organizer.inspect("list-bad");
    await page
      .getByLabel("File", { exact: true })
      .setInputFiles(list(people.map(({ ticket }) => `${ticket}\n`).join("")));
    await page.getByLabel("Reason (public)").selectOption("one of several places of the same visitor");
    await organizer.press("Check the list");
    await part(page, "Revoke 3 places?");
    await organizer.inspect("list-question");
    assert.equal((await room.show()).counts.revoked, 0, "nothing is done before the answer");
    await organizer.press("Revoke 3 places");
    await part(page, "Revoked: 3 places");
    await organizer.inspect("list-done");
    assert.equal((await room.show()).counts.revoked, 3);

    const visitor = await fetch(`${room.url}?fragment=1&ticket=${people[1].ticket}`, {
      headers: { Accept: "text/html" },
    });
    const seen = await visitor.text();
    assert.match(seen, /one person had several places/);
    assert.ok(seen.includes(`href="${index ? "" : "mailto:"}${appeal}"`), seen);

    await page.getByRole("link", { name: "give the places back" }).click();
    await organizer.heading("Give many places back");
    await page
      .getByLabel("File", { exact: true })
      .setInputFiles(list(people.map(({ ticket }) => `${ticket}\n`).join("")));
    await organizer.press("Check the list");
    await part(page, "Give 3 places back?");
    await organizer.press("Give back 3 places");
    await part(page, "Given back: 3 places");
    assert.equal((await room.show()).counts.revoked, 0);
  }
});

scene("a list longer than one request goes on by itself, and by a button without scripts", async (stage) => {
  stage.origins = [server.url];
  for (const javaScriptEnabled of [true, false]) {
    const organizer = await Organizer.at(stage, server, "owner@example.com", { storageState: kept, javaScriptEnabled });
    const slug = `long-${javaScriptEnabled}`;
    const room = await Room.create({ slug, windows: [{ length: "24h" }] }, server);
    stage.rooms.push(room);
    const [{ ticket }] = await room.crowd(1);
    const others = Array.from(
      { length: 10_500 },
      (_, i) => `${i.toString(16).padStart(8, "0")}-0000-8000-8000-000000000000\n`,
    );
    const { page } = organizer;
    await organizer.go(`/rooms/${slug}/revoke-list`);
    await page.getByLabel("File", { exact: true }).setInputFiles(list(`${others.join("")}${ticket}\n`));
    await page.getByLabel("Leave out tickets").check();
    await organizer.press("Check the list");
    await part(page, "Revoke 1 place?");
    await organizer.press("Revoke 1 place");
    if (!javaScriptEnabled) {
      await part(page, "10,000 of 10,501 lines are done");
      await organizer.press("Continue");
    }
    await part(page, "Revoked: 1 place");
    assert.equal((await room.show()).counts.revoked, 1);
  }
});
