// A database that lost entries: what the organizer and visitors see while records of a room are
// missing, and after the room was ended because of that.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Organizer } from "../stage/organizer.mjs";
import { program } from "../stage/places.mjs";
import { inSeconds, until } from "../stage/room.mjs";
import { scene, scenes } from "../stage/scene.mjs";
import { Server } from "../stage/server.mjs";

const run = promisify(execFile);

scenes("records missing", () => {
  scene("the organizer sees what to do, and visitors the decision", async (stage) => {
    const server = await Server.start();
    try {
      stage.origins = [server.url];
      stage.honest = false; // the transcript is lost
      const organizer = await Organizer.at(stage, server, "anna@example.com");
      organizer.origins = [server.url];
      await organizer.setUp("Bühne Eins", "Anna");
      const room = await stage.room({ slug: "concert", windows: [{ length: "1s" }], starts: inSeconds(3600) }, server);
      const visitor = await stage.visitor({ size: "phone" });
      for (const someone of [organizer, visitor])
        someone.watch.allow(
          /status of (410|502|503)|ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED_ENCODING/,
        );
      await visitor.join(room);
      await visitor.is("drawn");
      await server.forget(async () => {
        const late = await stage.visitor();
        late.watch.allow(/status of 503|ERR_/);
        await late.join(room);
        await late.is("drawn");
        await late.context.close();
      });

      await organizer.go("/rooms");
      await organizer.page.getByText("records missing").waitFor();
      await organizer.go("/rooms/concert");
      await organizer.page.locator("[data-stopped]").waitFor();
      await organizer.lists(
        [
          "entries that visitors have seen",
          "proofline recover concert --from COPY --yes",
          "When the database goes back",
        ],
        "stopped",
      );
      await organizer.inspect("console-stopped");
      const late = await stage.visitor({ size: "phone" });
      late.watch.allow(/status of (410|503)/);
      await late.visit(room);
      await late.page.locator('main#error[data-kind="missing"]').waitFor();
      await late.inspect("missing");

      const words = "The database was lost at 14:02.\nAll tickets are refunded.";
      const { stdout } = await run(program("proofline"), [
        "recover",
        "concert",
        "--data",
        server.data,
        "--end-with",
        words,
        "--yes",
      ]);
      assert.match(stdout, /proofline\.dev\/ended-with-loss/);
      await until("the room has ended", async () => (await fetch(`${room.url}/state`)).status === 410);
      await visitor.page.evaluate(() => document.dispatchEvent(new Event("visibilitychange"))); // or the page asks within a minute
      await visitor.page.locator("main#error [data-statement]").waitFor();
      assert.equal(await visitor.page.locator("[data-statement] .message").textContent(), words);
      await visitor.page.locator("[data-statement] summary").click();
      await visitor.inspect("lost");
      await organizer.go("/rooms/concert");
      await organizer.lists(["records are lost", "All tickets are refunded."], "lost");
      await organizer.inspect("console-lost");
    } finally {
      await server.stop();
    }
  });
});
