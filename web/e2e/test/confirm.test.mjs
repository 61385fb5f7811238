// From a room's page to an issuer and back, with the ticket: codes of the server's own issuer, with and without
// scripts, signed and blind, and an issuer of another organization on another site.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

import { accessible } from "../stage/axe.mjs";
import { program } from "../stage/places.mjs";
import { scene, scenes } from "../stage/scene.mjs";

const run = promisify(execFile);

/** A room whose only lane needs a code of the server's own issuer. */
const coded = (slug, kind, more = {}) => ({
  slug,
  windows: [{ length: "24h" }],
  methods: [{ name: "presale", kind, key: "own" }],
  lanes: [{ name: "early", weight: 1, needs: ["presale"] }],
  ...more,
});

const makeCodes = async (room, count) =>
  (await room.server.ask("POST", `/v1/rooms/${room.slug}/methods/presale/codes`, { count })).codes;

/** Goes from the room's page to the issuer's form. */
async function toIssuer({ page }) {
  await page.getByRole("button", { name: /^Confirm with / }).click();
  await page.getByRole("button", { name: /^Continue to / }).click();
  await page.getByRole("heading", { name: /^Confirm with / }).waitFor();
}

async function answer({ page }, label, value) {
  await page.getByLabel(label, { exact: true }).fill(value);
  await page.getByRole("button", { name: "Confirm" }).click();
}

const says = ({ page }, text) => page.getByRole("alert").filter({ hasText: text }).waitFor();
const refused = /the server responded with a status of 40[39]/;
const arrived = async (room) => (await room.transcript()).filter(({ kind }) => kind === "arrive");

/** Runs an issuer of another organization, on another site than the rooms. */
class Club {
  static async start(room, more) {
    const club = new Club();
    club.dir = await mkdtemp(join(tmpdir(), "proofline-club-"));
    club.port = await freePort();
    club.origin = `http://localhost:${club.port}`;
    await writeFile(join(club.dir, "members.csv"), "number\nFC-1\nFC-2\n");
    await club.run("members", "--list", "fans", "--from", join(club.dir, "members.csv"));
    const { url } = await room(await club.method(more));
    const { stdout } = await run(program("proofline"), ["issuer", "room", url]);
    await club.configure({ ...more, room: url, entry: /^entry ([0-9a-f]{64})$/m.exec(stdout)[1] });
    const args = ["issuer", "serve", "--config", club.config, "--addr", `127.0.0.1:${club.port}`, ...club.data];
    club.child = spawn(program("proofline"), args, { stdio: ["ignore", "pipe", "ignore"] });
    await new Promise((done, fail) => {
      club.child.once("exit", (code) => fail(new Error(`proofline issuer exits with ${code}`)));
      createInterface({ input: club.child.stdout }).on("line", (line) => line.startsWith("listening on ") && done());
    });
    return club;
  }

  get config() {
    return join(this.dir, "issuer.yaml");
  }

  get data() {
    return ["--data", join(this.dir, "data")];
  }

  run(...args) {
    return run(program("proofline"), ["issuer", ...args, ...this.data]);
  }

  configure(offer) {
    const fields = { name: "derby", method: "club", proof: "list", list: "fans", lanes: "[members]", ...offer };
    const lines = Object.entries(fields).map(([name, value]) => `  ${name}: ${value}\n`);
    const head = `url: ${this.origin}\nname: Example Club\noffers:\n`;
    return writeFile(this.config, head + lines.join("").replace(/^ {2}/, "- "));
  }

  /** The method for the policy of a room. */
  async method(offer) {
    await this.configure({ room: "http://127.0.0.1/r/derby", ...offer });
    const { stdout } = await this.run("methods", "--config", this.config);
    const [, name, kind, key, limit] = stdout.split("\n")[0].split(" ");
    return { name, kind, key, limit: Number(limit) };
  }

  async stop() {
    this.child.kill("SIGTERM");
    await rm(this.dir, { recursive: true, force: true });
  }
}

async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

const membersLane = {
  lanes: [
    { name: "general", weight: 1 },
    { name: "members", weight: 3, needs: ["club"] },
  ],
};

/** A room that uses what a club confirms, mostly for a lane of members, and the club. */
async function clubRoom(stage, slug, kind, more = membersLane, offer = {}) {
  let room;
  const club = await Club.start(
    async (method) => {
      room = await stage.room({
        slug,
        windows: [{ length: "24h" }],
        methods: [method],
        ...more,
      });
      return room;
    },
    { kind, ...offer },
  );
  await room.amend({ issuers: [`club ${club.origin}/derby Example Club`] });
  stage.origins.push(club.origin);
  return { room, club };
}

scenes("confirmations", () => {
  for (const javaScriptEnabled of [true, false]) {
    const how = javaScriptEnabled ? "with scripts" : "without scripts";
    scene(`presale codes of the server's own issuer, ${how}`, async (stage) => {
      const room = await stage.room(coded(`presale-${javaScriptEnabled}`, "signed"));
      const [code, other] = await makeCodes(room, 2);
      const visitor = await stage.visitor({ size: "phone", javaScriptEnabled });
      const look = async (what) => {
        if (javaScriptEnabled) await visitor.inspect(`confirm-${what}`);
        else await visitor.picture(`confirm-${what}-plain`);
      };
      const { page } = visitor;
      await visitor.visit(room);
      await visitor.is("joinable");
      assert.match(await page.locator("main").innerText(), /Nothing about you is published but a number/);
      await look("begin");
      await page.getByRole("button", { name: /^Confirm with / }).click();
      await page.getByRole("button", { name: /^Continue to / }).waitFor();
      await look("go");
      const own = (await visitor.context.cookies()).find(({ name }) => name.startsWith("__Host-proofline-"));
      const asked = page.waitForRequest((request) => request.url().includes("/issuer/"));
      await page.getByRole("button", { name: /^Continue to / }).click();
      const request = await asked;
      assert.ok(!request.url().includes(own.value) && !request.postData().includes(own.value), "the secret stays");
      await page.getByRole("heading", { name: /^Confirm with / }).waitFor();
      await look("code");
      visitor.watch.expect(refused);
      await answer(visitor, "Your code", "0000-0000-0000-0000");
      await says(visitor, "not on the list");
      await look("wrong");
      await answer(visitor, "Your code", code.toLowerCase().replaceAll("-", " "));
      await page.getByRole("heading", { name: "One tap left: join the line" }).waitFor();
      await look("done");
      await page.getByRole("button", { name: "Join the line" }).click();
      await visitor.is("waiting");
      await look("waiting");
      const [entry] = await arrived(room);
      assert.ok(entry.names(await visitor.ticket()));
      assert.equal(new URL(page.url()).search, "");

      const late = await stage.visitor({ size: "phone", javaScriptEnabled });
      late.watch.expect(refused);
      await late.visit(room);
      await toIssuer(late);
      await answer(late, "Your code", code);
      await says(late, "A place was already confirmed with this");
      if (javaScriptEnabled) await accessible(late.page, "a used code");
      await late.picture(`confirm-used-${how.replace(" ", "-")}`);
      await late.page.getByRole("link", { name: "Back to the room" }).click();
      await late.page.getByRole("button", { name: /^Continue to / }).click();
      await answer(late, "Your code", other);
      await late.page.getByRole("button", { name: "Join the line" }).click();
      await late.is("waiting");
      assert.equal((await arrived(room)).length, 2);
    });
  }

  scene("a blind code: the browser blinds and unblinds, and one code takes one place", async (stage) => {
    const room = await stage.room(coded("blind", "blind"));
    const [code] = await makeCodes(room, 1);
    const visitor = await stage.visitor({ size: "phone" });
    await visitor.visit(room);
    assert.match(await visitor.page.locator("main").innerText(), /one server runs both pages/);
    const asked = visitor.page.waitForRequest(
      (request) => request.method() === "POST" && request.url().includes("/issuer/"),
    );
    await toIssuer(visitor);
    assert.match((await asked).postData(), /^blinded=[0-9a-f]{512}&response=fragment&lang=en$/);
    await visitor.inspect("confirm-blind-code");
    await visitor.page.goBack(); // the same message is blinded in the same way
    await visitor.page.getByRole("button", { name: /^Continue to / }).click();
    await answer(visitor, "Your code", code);
    await visitor.is("waiting");
    assert.equal(new URL(visitor.page.url()).hash, "");
    const [entry] = await arrived(room);
    assert.ok(entry.names(await visitor.ticket()));

    const late = await stage.visitor({ size: "phone" });
    late.watch.expect(refused);
    await late.visit(room);
    await toIssuer(late);
    await answer(late, "Your code", code);
    await says(late, "A place was already confirmed with this");
    await late.page.goto(`${room.url}#blind_signature=presale+${"ab".repeat(256)}`); // made up
    await late.page.locator('[data-notice="unproven"]').waitFor();
    assert.equal(new URL(late.page.url()).hash, "");
    await late.picture("confirm-blind-forged-phone");
    assert.equal((await arrived(room)).length, 1);

    const plain = await stage.visitor({ size: "phone", javaScriptEnabled: false });
    await plain.visit(room);
    await plain.page.getByRole("button", { name: /^Confirm with / }).click();
    await plain.page.getByText("This confirmation needs JavaScript").waitFor();
  });

  scene("a club on another site: a member has one place", async (stage) => {
    const { room, club } = await clubRoom(stage, "club", "signed");
    try {
      const visitor = await stage.visitor({ size: "phone" });
      await visitor.visit(room);
      assert.match(await visitor.page.locator("main").innerText(), /Example Club could link your place/);
      await visitor.inspect("confirm-club");
      await toIssuer(visitor);
      await answer(visitor, "number", "fc 1");
      await visitor.page.getByRole("button", { name: "Join the line" }).click();
      await visitor.is("waiting");
      assert.equal((await visitor.data()).lane, "members");

      const again = await stage.visitor({ size: "phone" });
      again.watch.expect(refused);
      await again.visit(room);
      await toIssuer(again);
      await answer(again, "number", "FC-1");
      await again.page.getByRole("button", { name: "Join the line" }).click();
      await again.page.getByRole("heading", { name: "This confirmation was used already" }).waitFor();
      await again.inspect("confirm-used-by-member");
      await again.page.getByRole("link", { name: "Go to the line" }).click();
      await again.is("joinable");
      await again.main(); // the lane that needs nothing
      await again.is("waiting");
      assert.equal((await again.data()).lane, "general");
    } finally {
      await club.stop();
    }
  });

  scene("a club on another site that signs blindly", async (stage) => {
    const { room, club } = await clubRoom(stage, "club-blind", "blind");
    try {
      const visitor = await stage.visitor();
      await visitor.visit(room);
      assert.match(await visitor.page.locator("main").innerText(), /Example Club cannot learn which place/);
      await toIssuer(visitor);
      await answer(visitor, "number", "FC-2");
      await visitor.is("waiting");
      assert.equal((await visitor.data()).lane, "members");
    } finally {
      await club.stop();
    }
  });

  scene(
    "a club on another site gives one more lot: before joining, and by one more tap while waiting",
    async (stage) => {
      const { room, club } = await clubRoom(stage, "club-lots", "signed", { lots: ["club"] }, { lanes: "[general]" });
      try {
        const early = await stage.visitor();
        await early.visit(room);
        await toIssuer(early);
        await answer(early, "number", "FC-1");
        await early.page.getByRole("button", { name: "Join the line" }).click();
        await early.page.locator('main[data-state="waiting"] [data-lots="2"]').waitFor();

        for (const javaScriptEnabled of [true, false]) {
          const visitor = await stage.visitor({ size: "phone", javaScriptEnabled });
          const { page } = visitor;
          if (javaScriptEnabled) visitor.watch.expect(refused);
          await visitor.join(room);
          await page.getByRole("button", { name: "Confirm with Example Club for one more lot" }).click();
          await answer(visitor, "number", javaScriptEnabled ? "FC-1" : "FC-2");
          await page.getByRole("button", { name: "Return to the room" }).click();
          await page.getByText("One more step, and your place has one more lot").waitFor();
          if (javaScriptEnabled) await visitor.inspect("lots-take");
          await page.getByRole("button", { name: "Take the lot" }).click();
          if (javaScriptEnabled)
            await page.getByRole("heading", { name: "This confirmation was used already" }).waitFor();
          else await page.locator('main[data-state="waiting"] [data-lots="2"]').waitFor();
        }
        assert.equal((await room.transcript()).filter(({ kind }) => kind === "merit").length, 1);
      } finally {
        await club.stop();
      }
    },
  );

  scene("in German and Arabic, on the room's page and on the issuer's", async (stage) => {
    const room = await stage.room(coded("sprachen", "signed"));
    await makeCodes(room, 1);
    for (const [locale, begin, go, hint] of [
      ["de-DE", /bestätigen$/, /^Weiter zu /, "Groß- und Kleinschreibung"],
      ["ar-EG", /^التأكيد عبر/, /^المتابعة إلى/, "الأحرف"],
    ]) {
      const visitor = await stage.visitor({ size: "phone", locale });
      await visitor.visit(room);
      await visitor.inspect("confirm-language");
      await visitor.page.getByRole("button", { name: begin }).click();
      await visitor.page.getByRole("button", { name: go }).click();
      await visitor.page.getByText(hint).waitFor();
      await visitor.inspect("confirm-language-issuer");
    }
  });
});
