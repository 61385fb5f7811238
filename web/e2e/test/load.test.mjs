// A server that cannot keep up, because its database does not respond for a while.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

import { scene, scenes } from "../stage/scene.mjs";
import { Server } from "../stage/server.mjs";

/** The processes of the private PostgreSQL of a server that this test has started. */
function database(server) {
  const [postmaster] = readFileSync(`${server.data}/postgres/postmaster.pid`, "utf8").split("\n");
  const children = execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" })
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, parent]) => parent === postmaster);
  return [postmaster, ...children.map(([pid]) => pid)].map(Number);
}

scenes("overload", () => {
  scene("a join is tried until it succeeds, once", async (stage) => {
    const server = await Server.start();
    let stopped = [];
    const go = () => {
      for (const pid of stopped) process.kill(pid, "SIGCONT");
      stopped = [];
    };
    try {
      stage.origins.push(server.url);
      const room = await stage.room({ slug: "busy", windows: [{ length: "1h" }] }, server);
      const scripted = await stage.visitor({ size: "phone" });
      const plain = await stage.visitor({ size: "phone", javaScriptEnabled: false });
      scripted.watch.allow(/status of 503/); // unless it gives up before the server does
      plain.watch.expect(/status of 503/);
      await scripted.visit(room);
      await plain.visit(room);
      stopped = database(server);
      for (const pid of stopped) process.kill(pid, "SIGSTOP");
      await Promise.all([
        scripted
          .main()
          .then(() =>
            scripted.page.locator('[data-notice="joining"], [data-notice="trouble"]').locator("visible=true").waitFor(),
          ),
        plain.main().then(() => plain.page.locator('main#error[data-kind="busy"]').waitFor()),
      ]);
      await scripted.page.locator("[data-placed]").first().waitFor({ state: "hidden" }); // there is no place yet
      await scripted.inspect("joining");
      await plain.picture("busy-phone");
      await plain.fits("busy");
      go();
      await scripted.is("waiting");
      await plain.page.getByRole("link", { name: "Try again" }).click();
      if ((await plain.data()).state === "joinable") await plain.main();
      await plain.is("waiting");
      const arrivals = (await room.transcript()).filter(({ kind }) => kind === "arrive");
      assert.equal(arrivals.length, 2);
    } finally {
      go();
      await server.stop();
    }
  });
});
