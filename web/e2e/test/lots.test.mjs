// From a room's page to an issuer whose confirmation gives one more lot, and back: before joining and while waiting, by
// keyboard, with and without scripts, signed and blind.
import assert from "node:assert/strict";

import { reachable } from "../stage/keyboard.mjs";
import { byReading, press, tick } from "../stage/puzzle.mjs";
import { scene, scenes } from "../stage/scene.mjs";

/** A room that anybody can join, in which a method gives one more lot. */
const giving = (slug, method, window = "24h") => ({
  slug,
  windows: [{ length: window }],
  methods: [{ name: "more", ...method }],
  lots: ["more"],
  lanes: [{ name: "general", weight: 1 }],
});
const puzzle = { kind: "signed", key: "own-puzzle" };
const offers = (page) => page.getByRole("button", { name: /for one more lot$/ });
const offer = /^Confirm with .* for one more lot$/;

/** What the page says of the lots. */
const lots = ({ page }) => page.locator("[data-lots]").innerText();

/** Presses the button that a name matches, by keyboard. */
async function pressLike(page, name) {
  const found = await page.getByRole("button", { name }).textContent();
  await press(page, found.trim());
}

/** Solves the puzzle and comes back. */
async function solve({ page }) {
  await page.locator("fieldset legend").waitFor();
  await tick(page, await byReading(page));
  // Before the join, and after it.
  await page.getByRole("heading", { name: /^(One tap left: join the line|Almost done: take the lot)$/ }).waitFor();
  await pressLike(page, /^(Join the line|Return to the room)$/);
}

const shown = async (room) => (await room.transcript()).filter(({ kind }) => kind === "merit");

scenes("lots", () => {
  for (const size of ["phone", "desktop"]) {
    scene(`a puzzle for one more lot, before joining and while waiting, ${size}`, async (stage) => {
      const room = await stage.room(giving(`lots-${size}`, puzzle));
      const early = await stage.visitor({ size });
      await early.visit(room);
      assert.match(await early.page.locator("main").innerText(), /The lot drawn first counts/);
      await early.inspect("lots-joinable");
      await reachable(early.page, "lots-joinable");
      await early.visit(room);
      await pressLike(early.page, offer);
      await early.page.getByRole("button", { name: /^Continue to / }).waitFor();
      await early.picture(`lots-go-${size}`);
      await pressLike(early.page, /^Continue to /);
      await solve(early);
      await early.is("waiting");
      assert.match(await lots(early), /Your place has 2 lots in the draw/);
      assert.equal(await offers(early.page).count(), 0);
      await early.inspect("lots-two");

      const later = await stage.visitor({ size });
      await later.join(room);
      assert.match(await lots(later), /Your place has 1 lot in the draw/);
      await later.inspect("lots-waiting");
      await reachable(later.page, "lots-waiting");
      await later.visit(room);
      const ticket = await later.ticket();
      await pressLike(later.page, offer);
      await solve(later);
      await later.is("waiting");
      assert.match(await lots(later), /Your place has 2 lots in the draw/);
      assert.equal(await later.ticket(), ticket);
      assert.equal((await shown(room)).length, 1);
    });
  }

  scene("without scripts, and the offer goes with the window", async (stage) => {
    const room = await stage.room(giving("lots-plain", puzzle));
    const plain = await stage.visitor({ size: "phone", javaScriptEnabled: false });
    await plain.join(room);
    await plain.picture("lots-waiting-plain");
    await pressLike(plain.page, offer);
    await solve(plain);
    await plain.page.locator("[data-lots='2']").waitFor();

    // Nothing has to happen within this window: the page may even appear after its end.
    const brief = await stage.room(giving("lots-brief", puzzle, "20s"));
    const scripted = await stage.visitor({ size: "phone" });
    await scripted.join(brief);
    const end = Number((await scripted.data()).closes);
    await offers(scripted.page).waitFor({ state: "hidden", timeout: Math.max(0, end - Date.now()) + 60_000 });
    assert.ok(Date.now() > end - 1000, "the offer is there until the window ends");
  });

  scene("blind: the browser shows what it has unblinded", async (stage) => {
    const room = await stage.room(giving("lots-blind", { kind: "blind", key: "own" }));
    const path = `/v1/rooms/${room.slug}/methods/more/codes`;
    const { codes } = await room.server.ask("POST", path, { count: 2 });
    const answer = async ({ page }, code) => {
      await page.getByLabel("Your code", { exact: true }).fill(code);
      await page.getByRole("button", { name: "Confirm" }).click();
    };
    const waits = await stage.visitor({ size: "phone" });
    await waits.join(room);
    await offers(waits.page).click();
    await answer(waits, codes[0]);
    await waits.page.locator("[data-lots='2']").waitFor();
    assert.equal(new URL(waits.page.url()).hash, "");
    assert.equal((await shown(room)).length, 1);

    const joins = await stage.visitor();
    await joins.visit(room);
    await offers(joins.page).click();
    await joins.page.getByRole("button", { name: /^Continue to / }).click();
    await answer(joins, codes[1]);
    await joins.page.locator("[data-lots='2']").waitFor();
    assert.equal((await shown(room)).length, 1);
  });

  scene("in German and Arabic", async (stage) => {
    const room = await stage.room(giving("lose", puzzle));
    for (const [locale, name] of [
      ["de-DE", /für ein weiteres Los$/],
      ["ar-EG", /لقسيمة إضافية$/],
    ]) {
      const visitor = await stage.visitor({ size: "phone", locale });
      await visitor.join(room);
      await visitor.page.getByRole("button", { name }).waitFor();
      await visitor.inspect("lots-language");
    }
  });
});
