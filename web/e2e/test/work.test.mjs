// A lane that needs work: the visitor's browser solves a task on the room's page, and joins.
import assert from "node:assert/strict";

import { inSeconds, until } from "../stage/room.mjs";
import { scene, scenes } from "../stage/scene.mjs";
import { Server } from "../stage/server.mjs";

/** A room whose only lane needs work, and that opens soon. */
const laborious = (slug, bits, more = {}) => ({
  slug,
  beacon: "drand:quicknet",
  windows: [{ length: "24h" }],
  methods: [{ name: "task", kind: "work", bits }],
  lanes: [{ name: "general", weight: 1, needs: ["task"] }],
  ...more,
});

const begun = (room) =>
  until(`${room.slug} has its round`, async () => (await room.state()).work?.signature !== null && room.open());
const says = ({ page }, state) => page.locator(`[data-work-is="${state}"]`).waitFor();
const press = ({ page }, name) => page.getByRole("button", { name, exact: true }).click();
const kept = ({ page }) =>
  page.evaluate(() => {
    const key = Object.keys(localStorage).find((name) => name.startsWith("proofline work "));
    return key === undefined ? {} : JSON.parse(localStorage.getItem(key));
  });

/** Runs an action with a server of its own, which has a beacon. */
async function atBeacon(stage, act) {
  const server = await Server.start({ beacon: true });
  stage.origins.push(server.url);
  try {
    await act(server);
  } finally {
    await server.stop();
  }
}

scenes("work", () => {
  scene("a task of a few bits, begun before its round", (stage) =>
    atBeacon(stage, async (server) => {
      const room = await stage.room(laborious("few-bits", 8, { opens: inSeconds(3), starts: inSeconds(60) }), server);
      const visitor = await stage.visitor({ size: "phone", colorScheme: "dark" });
      await visitor.visit(room);
      await visitor.is("upcoming");
      await visitor.is("joinable");
      await visitor.page.getByRole("button", { name: "Solve the task and join" }).waitFor();
      await visitor.inspect("work-join");
      await press(visitor, "Solve the task and join");
      await visitor.is("waiting");
      assert.equal(new URL(visitor.page.url()).search, "");
      assert.deepEqual(await kept(visitor), {});
      const arrived = (await room.transcript()).filter(({ kind }) => kind === "arrive");
      assert.equal(arrived.length, 1);
      assert.ok(arrived[0].names(await visitor.ticket()) && arrived[0].names("task"), arrived[0].text);

      const plain = await stage.visitor({ size: "phone", javaScriptEnabled: false });
      await plain.visit(room);
      await plain.page.getByText("This line needs JavaScript").waitFor();
      assert.equal(await plain.page.locator("main form").count(), 1);
      assert.ok(await plain.page.locator("main form").isHidden());
      await plain.picture("work-plain");
    }),
  );

  scene("a hard task: pause, reload, continue, and no frozen page", (stage) =>
    atBeacon(stage, async (server) => {
      const room = await stage.room(laborious("many-bits", 40), server);
      const visitor = await stage.visitor({ size: "phone" });
      const { page } = visitor;
      const slow = await visitor.context.newCDPSession(page);
      await slow.send("Emulation.setCPUThrottlingRate", { rate: 6 });
      await begun(room);
      await visitor.visit(room);
      await press(visitor, "Solve the task and join");
      await says(visitor, "running");
      await page.getByText(/Usually done within \d+ hours/).waitFor();
      await page.getByText(/Your device tries [\d,]+ numbers a second/).waitFor();
      const longest = await page.evaluate(async () => {
        let [worst, was] = [0, performance.now()];
        for (let i = 0; i < 30; i++) {
          await new Promise((done) => setTimeout(done, 20));
          const now = performance.now();
          worst = Math.max(worst, now - was);
          was = now;
        }
        return worst;
      });
      assert.ok(longest < 1000, `the page stood still for ${longest} ms`);
      await press(visitor, "Pause");
      await says(visitor, "paused");
      const { next, on } = await kept(visitor);
      assert.ok(next > 0 && on === false);
      await slow.send("Emulation.setCPUThrottlingRate", { rate: 1 });
      await visitor.inspect("work-paused");
      await page.waitForTimeout(600);
      assert.equal((await kept(visitor)).next, next, "a paused task rests");
      await page.reload();
      await says(visitor, "paused");
      await press(visitor, "Continue");
      await says(visitor, "running");
      await until("the task goes on", async () => (await kept(visitor)).next > next);
      await page.reload(); // it goes on by itself
      await says(visitor, "running");
      await visitor.inspect("work-running");
      await press(visitor, "Pause");
    }),
  );

  scene("the server is away, and refuses", (stage) =>
    atBeacon(stage, async (server) => {
      const room = await stage.room(laborious("away", 6), server);
      await begun(room);
      const visitor = await stage.visitor({ size: "phone" });
      visitor.watch.allow(/Failed to load resource|net::ERR/);
      await visitor.visit(room);
      let refusals = 1;
      await visitor.page.route("**/join", (route) =>
        refusals-- > 0 ? route.abort() : route.fulfill({ status: 403, json: {} }),
      );
      await press(visitor, "Solve the task and join");
      await says(visitor, "away");
      await says(visitor, "wrong");
      await visitor.inspect("work-wrong");
      await visitor.page.unroute("**/join");
      await visitor.visit(room);
      await press(visitor, "Solve the task and join");
      await visitor.is("waiting");
    }),
  );

  scene("work after a code of the server's own issuer", (stage) =>
    atBeacon(stage, async (server) => {
      for (const kind of ["signed", "blind"]) {
        const room = await stage.room(
          laborious(`both-${kind}`, 8, {
            methods: [
              { name: "task", kind: "work", bits: 8 },
              { name: "presale", kind, key: "own" },
            ],
            lanes: [{ name: "early", weight: 1, needs: ["task", "presale"] }],
          }),
          server,
        );
        const { codes } = await server.ask("POST", `/v1/rooms/${room.slug}/methods/presale/codes`, { count: 1 });
        await begun(room);
        const visitor = await stage.visitor({ size: "phone" });
        const { page } = visitor;
        await visitor.visit(room);
        await page.getByText("After that, your device solves a task").waitFor();
        await page.getByRole("button", { name: /^Confirm with / }).click();
        await page.getByRole("button", { name: /^Continue to / }).click();
        await page.getByLabel("Your code", { exact: true }).fill(codes[0]);
        await page.getByRole("button", { name: "Confirm" }).click();
        await visitor.is("waiting");
        const [entry] = (await room.transcript()).filter(({ kind }) => kind === "arrive");
        assert.ok(entry.names("task") && entry.names("presale"), entry.text);
      }
    }),
  );
});
