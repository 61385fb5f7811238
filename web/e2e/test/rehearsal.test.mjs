// A rehearsal of a room whose joins need an account, with a script that asks for many tickets: what the page says while
// it runs and afterwards, on a phone and on a desktop, in light and dark.
import assert from "node:assert/strict";
import { after, before } from "node:test";

import { reachable } from "../stage/keyboard.mjs";
import { Organizer } from "../stage/organizer.mjs";
import { inSeconds, Room, until } from "../stage/room.mjs";
import { scene } from "../stage/scene.mjs";
import { Server } from "../stage/server.mjs";

let server;
before(async () => (server = await Server.start()));
after(() => server?.stop());

scene("a rehearsal with a script, against a door", async (stage) => {
  stage.origins = [server.url];
  const phone = await Organizer.at(stage, server, "owner@example.com", { size: "phone" });
  await phone.setUp("Halls", "Owner");
  const room = await Room.create(
    {
      slug: "members",
      opens: inSeconds(3600),
      methods: [{ name: "account", kind: "signed", key: `58${"66".repeat(31)}` }],
      lanes: [{ name: "general", weight: 1, needs: ["account"] }],
      outflow: { per_minute: 6000 },
    },
    server,
  );
  const path = `/rooms/${room.slug}/rehearsal`;
  await phone.go(path);
  await phone.inspect("rehearsal-form");
  await phone.fill({ "Synthetic visitors": "100", "Seconds of a window, at most": "3" });
  await phone.page
    .getByLabel("A script that asks for many tickets")
    .selectOption({ label: "100 tickets from one machine" });
  await phone.press("Start the rehearsal");
  await phone.told("The rehearsal begins in a few seconds.");
  const card = phone.page.locator("section.card", { hasText: "The script" });
  await card.getByText("A join needs account, and the script has 10 accounts.").waitFor();
  await until("places are drawn, on the page that is open", async () =>
    /Of the first \d+ places it has/.test(await card.innerText()),
  );
  await phone.press("Stop it");
  await phone.told("The rehearsal is stopped.");
  const { rehearsals } = await server.ask("GET", "/v1/rehearsals");
  const { script, joined, over } = rehearsals[0];
  assert.ok(over && joined > 0 && script.joined === 10 && script.refused.account === 90, JSON.stringify(rehearsals[0]));
  const words = "It got 10 places in line. 90 joins were refused: 90 because their account or code had a place.";
  await phone.lists([words, "The simulator, which knows the windows and the door"], "the result");
  await phone.inspect("rehearsal-over");
  const state = await phone.context.storageState();
  const desktop = await Organizer.at(stage, server, "owner@example.com", { size: "desktop", storageState: state });
  await desktop.go(path);
  await desktop.lists([words], "the result");
  await desktop.inspect("rehearsal-over");
  await reachable(desktop.page, path);
});
