// From the preset "Presale codes" to printed codes, from the console alone, and what visitors read who have a code, none,
// or one that was used. The same with a list of members.
import assert from "node:assert/strict";
import { after, before } from "node:test";

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
  const organizer = await Organizer.at(stage, server, "owner@example.com", { storageState: kept, ...options });
  if (!kept) {
    await organizer.setUp("Concert hall", "Box office");
    kept = await organizer.context.storageState();
  }
  return organizer;
}

/** Follows the organizer from the list of presets to the sheet, and returns the room and its codes. */
async function print(organizer, title) {
  const { page } = organizer;
  await organizer.go("/rooms/new");
  await organizer.inspect("presets-new");
  const card = page.locator(".preset", { hasText: "Presale codes" });
  assert.match(
    await card.innerText(),
    /\d+ places in line, \d+ of the first \d+ \(.*%\)\. .*open door: \d+ of the first 1,000/,
  );
  await card.getByRole("link").click();
  await page.getByText("From here to the first visitor").waitFor();
  const method = page.locator(".method");
  assert.equal(await method.getByLabel("Name").inputValue(), "presale");
  assert.equal(await method.getByLabel("Kind").inputValue(), "signed");
  assert.equal(await method.getByLabel("Who confirms visitors").inputValue(), "own");
  assert.equal(await method.getByLabel("At most").inputValue(), "500");
  await organizer.fill({ Title: title });
  await organizer.unfold(page.locator("#f-opens"));
  await page.locator("#f-opens").fill("");
  await organizer.inspect("presets-editor");
  await organizer.decide("Publish");
  await organizer.told("The room is published");
  await organizer.heading(title);
  assert.equal(await page.getByLabel("How many").inputValue(), "500");
  await organizer.inspect("presets-codes");
  await organizer.press("Make a sheet to print");
  await organizer.heading(`500 codes for ${title}`);
  await page.locator(".sheet li").nth(499).waitFor();
  const codes = await page.locator(".sheet b").allTextContents();
  assert.equal(new Set(codes).size, 500);
  await organizer.fits("the sheet");
  await organizer.view(`presets-sheet-${organizer.name}`);
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator(".unprinted").isVisible(), false, "only the codes are printed");
  await organizer.view(`presets-sheet-${organizer.name}-print`);
  await page.emulateMedia({ media: "screen" });
  const slug = new URL(page.url()).pathname.split("/")[3];
  return { room: await Room.at(server, slug), codes };
}

/** Goes from the room's page to the issuer's and types a code. */
async function show({ page }, room, code) {
  await page.goto(room.url);
  await page.getByRole("button", { name: /^Confirm with / }).click();
  await page.getByRole("button", { name: /^Continue to / }).click();
  await page.getByLabel("Your code", { exact: true }).fill(code);
  await page.getByRole("button", { name: "Confirm" }).click();
}

for (const size of ["desktop", "phone"]) {
  scene(`presale codes on a ${size}: from the preset to a sheet, and three visitors`, async (stage) => {
    const organizer = await owner(stage, { size });
    const { room, codes } = await print(organizer, `Presale on a ${size}`);
    stage.rooms.push(room);

    const first = await stage.visitor({ size });
    await first.visit(room);
    await first.page.getByRole("heading", { name: "Needed to join: the code that you were given" }).waitFor();
    await first.inspect("presets-visitor");
    await show(first, room, codes[499]);
    await first.page.getByRole("heading", { name: "One tap left: join the line" }).waitFor();
    await first.inspect("presets-confirmed");
    await first.page.getByRole("button", { name: "Join the line" }).click();
    await first.is("waiting");

    const none = await stage.visitor({ size });
    none.watch.expect(/status of 40[39]/);
    await show(none, room, "no-code-at-all");
    await none.page.getByRole("alert").filter({ hasText: "not on the list" }).waitFor();
    await none.inspect("presets-no-code");

    const late = await stage.visitor({ size });
    late.watch.expect(/status of 40[39]/);
    await show(late, room, codes[499]);
    await late.page.getByRole("alert").filter({ hasText: "A place was already confirmed with this" }).waitFor();
    await late.inspect("presets-used-code");
    assert.equal((await room.transcript()).filter(({ kind }) => kind === "arrive").length, 1);

    await organizer.go(`/rooms/${room.slug}/codes`);
    assert.match(await organizer.page.locator("main").innerText(), /Not used yet\s+499\s+Used\s+1\s+Void\s+0/);
    await organizer.page.getByLabel("Codes", { exact: true }).fill(`${codes[0]}\n${codes[499]}\nno code`);
    await organizer.inspect("presets-used");
    await organizer.press("Check the codes");
    await organizer.page.getByRole("heading", { name: "Void 1 code of presale?" }).waitFor();
    await organizer.inspect("presets-void");
    await organizer.press("Void 1 code");
    await organizer.page.getByRole("heading", { name: "1 code of presale is void" }).waitFor();
    await organizer.page.getByRole("link", { name: "To the codes" }).click();
    await organizer.press("Void batch 1 of presale");
    await organizer.page.getByRole("heading", { name: "Void 498 codes of presale?" }).waitFor();
    await organizer.press("Void 498 codes");
    await organizer.page.getByRole("heading", { name: "498 codes of presale are void" }).waitFor();
    const leaked = await stage.visitor({ size });
    leaked.watch.expect(/status of 410/);
    await show(leaked, room, codes[0]);
    await leaked.page.getByRole("alert").filter({ hasText: "The organizer has voided this code" }).waitFor();
    await leaked.inspect("presets-void-code");
  });
}

scene("members only: an uploaded list, a member and a stranger", async (stage) => {
  for (const size of ["desktop", "phone"]) {
    const organizer = await owner(stage, { size });
    const { page } = organizer;
    const room = await Room.create(
      {
        slug: `members-${size}`,
        windows: [{ length: "24h" }],
        methods: [{ name: "members", kind: "signed", key: "own" }],
        lanes: [{ name: "general", weight: 1, needs: ["members"] }],
      },
      server,
    );
    stage.rooms.push(room);
    await organizer.go(`/rooms/${room.slug}/members`);
    await organizer.heading("Summer tour, Vienna");
    await organizer.inspect("members-form");
    await page.getByLabel("Members (CSV)").setInputFiles({
      name: "members.csv",
      mimeType: "text/csv",
      buffer: Buffer.from("number,birthday\n1001,1990-01-02\n1002,1980-03-04\n1002,1980-03-04\n"),
    });
    await organizer.press("Check the list");
    await page.getByRole("heading", { name: "Use this list of 2 members?" }).waitFor();
    await organizer.inspect("members-question");
    await organizer.press("Use this list");
    await page.getByRole("heading", { name: "2 members can be confirmed" }).waitFor();
    await organizer.inspect("members-done");

    const visitor = await stage.visitor({ size });
    visitor.watch.expect(/status of 403/);
    await visitor.page.goto(room.url);
    await visitor.page.getByRole("button", { name: /^Confirm with / }).click();
    await visitor.page.getByRole("button", { name: /^Continue to / }).click();
    await visitor.page.getByLabel("number").fill("1001");
    await visitor.page.getByLabel("birthday").fill("1980-03-04");
    await visitor.page.getByRole("button", { name: "Confirm" }).click();
    await visitor.page.getByRole("alert").filter({ hasText: "not on the list" }).waitFor();
    await visitor.inspect("members-stranger");
    await visitor.page.getByLabel("number").fill("1001");
    await visitor.page.getByLabel("birthday").fill("1990-01-02");
    await visitor.page.getByRole("button", { name: "Confirm" }).click();
    await visitor.page.getByRole("button", { name: "Join the line" }).click();
    await visitor.is("waiting");
  }
});
