// The organizer's message to everyone in line: in several languages, with an end at which it
// disappears, from the console to visitors' pages.
import assert from "node:assert/strict";

import { accessible } from "../stage/axe.mjs";
import { ownServer } from "../stage/office.mjs";
import { Room, until } from "../stage/room.mjs";
import { scene } from "../stage/scene.mjs";

const own = ownServer();
const { owner } = own;

/** The message that a visitor sees, and its language; null: none. */
const told = ({ page }) =>
  page.locator("[data-message]").evaluate((box) => {
    const text = box.querySelector("[data-said]");
    return box.hidden ? null : `${text.lang}: ${text.textContent}`;
  });

scene("visitors read a message in their language, and it vanishes by itself", async (stage) => {
  stage.origins = [own.server.url];
  const room = await Room.create({ slug: "told", windows: [{ length: "1h" }], claim: "10s" }, own.server);
  stage.rooms.push(room);
  const readers = {
    "de-AT": await stage.visitor({ locale: "de-AT", size: "phone" }),
    nl: await stage.visitor({ locale: "nl" }), // not a language of the pages
    fr: await stage.visitor({ locale: "fr" }),
    "ar-EG": await stage.visitor({ locale: "ar-EG", size: "phone" }),
  };
  for (const reader of Object.values(readers)) await reader.join(room);
  await room.amend({
    message: {
      default: "en",
      texts: {
        en: "The shop is slow.",
        de: "Der Shop ist langsam.",
        nl: "De winkel is traag.",
        ar: "\u0627\u0644\u0645\u062a\u062c\u0631 \u0628\u0637\u064a\u0621.",
      },
      for: "25s",
    },
  });
  const want = {
    "de-AT": "de: Der Shop ist langsam.",
    nl: "nl: De winkel is traag.",
    fr: "en: The shop is slow.",
    "ar-EG": "ar: \u0627\u0644\u0645\u062a\u062c\u0631 \u0628\u0637\u064a\u0621.",
  };
  // An open page, a newly loaded one and one without scripts show the same message.
  for (const [locale, reader] of Object.entries(readers))
    await until(`${locale} sees the message`, async () => (await told(reader)) === want[locale]);
  const plain = await stage.visitor({ locale: "nl", javaScriptEnabled: false });
  await plain.visit(room);
  assert.equal(await told(plain), want.nl);
  assert.match(await plain.page.locator("[data-message]").innerText(), /Until \d\d:\d\d/);
  await plain.visit(room, "?lang=de"); // a chosen language comes first
  assert.equal(await told(plain), want["de-AT"]);
  for (const reader of [readers["de-AT"], readers.nl]) await reader.inspect("message");
  readers.fr.watch.allow(/ERR_INTERNET_DISCONNECTED/);
  await readers.fr.context.setOffline(true); // the end needs no network
  for (const [locale, reader] of Object.entries(readers))
    await until(`${locale} no longer sees the message`, async () => (await told(reader)) === null);
  await plain.visit(room);
  assert.equal(await told(plain), null);
  assert.equal((await room.state()).message, null);
  await readers.fr.context.setOffline(false);
  assert.equal((await room.show()).counts.amends, 1, "the end is no entry");
});

scene("the console shows a message in two languages, lists what is live, and removes it", async (stage) => {
  const organizer = await owner(stage);
  const room = await Room.create({ slug: "say", windows: [{ length: "1h" }], claim: "10s" }, own.server);
  stage.rooms.push(room);
  const german = await stage.visitor({ locale: "de", size: "phone" });
  await german.join(room);
  for (const one of [organizer, await owner(stage, { size: "phone" })]) {
    const { page } = one;
    one.watch.expect(/status of 400/);
    const field = (name) => page.locator(`[id="f-${name}"]`);
    await one.go("/rooms/say");
    await page.getByText("Visitors see no message now.").waitFor();
    await field("message[0].text").fill("The shop is slow.");
    await one.press("Add a language");
    await field("message[1].language").fill("Klingon!");
    await field("message[1].text").fill("Der Shop ist langsam.");
    await page.getByRole("button", { name: "Show the message", exact: true }).click();
    await page.getByText("Choose a language, or type a tag such as nl or pt-BR.").waitFor(); // next to its field, on the same page
    await field("message[1].language").fill("German");
    await one.press("Add a language");
    await page.getByRole("button", { name: "Remove this language" }).nth(1).click();
    assert.equal(await field("message[2].text").count(), 0);
    assert.equal(await field("until").isVisible(), false);
    await page.getByLabel("Show it").selectOption("Until a time");
    assert.equal(await field("until").isVisible(), true);
    await one.inspect("message-form");
    await page.getByLabel("Show it").selectOption("For 10 minutes");
    await page.getByRole("button", { name: "Show the message", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("10 min from now, then it disappears").waitFor();
    await accessible(page, "the question of a message");
    await one.picture(`message-question-${one.name}`);
    await one.press("Show the message", dialog);
    await one.told("The message is on its way");
    await until("the visitor sees the message", async () => (await told(german)) === "de: Der Shop ist langsam.");
    await page.getByText(/Visitors see now, until \d/).waitFor();
    assert.equal(await page.getByLabel("Show it").inputValue(), "at");
    assert.equal(await field("message[1].language").inputValue(), "German");
    await one.inspect("message-live");
    await one.decide("Remove it");
    await one.told("The message is removed.");
    await until("the visitor no longer sees the message", async () => (await told(german)) === null);
  }
});

scene("without JavaScript a language is added and removed", async (stage) => {
  const organizer = await owner(stage, { javaScriptEnabled: false });
  const room = await Room.create({ slug: "plainly", windows: [{ length: "1h" }] }, own.server);
  const { page } = organizer;
  const field = (name) => page.locator(`[id="f-${name}"]`);
  await organizer.go("/rooms/plainly/message");
  await field("message[0].text").fill("Soon.");
  await organizer.press("Add a language");
  await field("message[1].language").fill("fr");
  await field("message[1].text").fill("Bient\u00f4t.");
  await organizer.press("Add a language");
  await page.getByRole("button", { name: "Remove this language" }).nth(1).click();
  assert.equal(await field("message[2].text").count(), 0);
  await page.getByRole("button", { name: "Show the message", exact: true }).click();
  await organizer.heading("Show this message?");
  await organizer.press("Show the message");
  await organizer.told("The message is on its way");
  assert.deepEqual((await room.state()).message, { default: "en", texts: { en: "Soon.", fr: "Bient\u00f4t." } });
});
