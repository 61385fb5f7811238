// What a visitor reads in a line whose draw used public randomness: the real pages and the real
// checker, with a transcript that has a round published by drand's quicknet.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { screenshots, top } from "../stage/places.mjs";
import { inSeconds } from "../stage/room.mjs";
import { scene, scenes } from "../stage/scene.mjs";
import { Server } from "../stage/server.mjs";

const people = 412;
const round = 657413n; // the recorded one

/** Writes the transcript of a window that was drawn with that round. */
async function recordedRoom(origin) {
  const { build } = createRequire(`${top}/web/ui/package.json`)("esbuild");
  const folder = await mkdtemp(join(tmpdir(), "proofline-recorded-"));
  try {
    const outfile = join(folder, "room.mjs");
    const contents =
      'export * from "./test/support/room.ts"; export { roundTime } from "./src/check/beacon.ts"; export { fromHex } from "./src/check/hex.ts"; export { parseEntry } from "./src/check/entry.ts";';
    await build({
      stdin: { contents, resolveDir: `${top}/web/ui`, loader: "ts" },
      outfile,
      bundle: true,
      format: "esm",
      platform: "node",
      logLevel: "error",
    });
    const { Operator, Room, fromHex, parseEntry, roundTime, visitorAt } = await import(outfile);
    const { chains } = JSON.parse(await readFile(`${top}/fairness/beacon/testdata/drand-rounds.json`, "utf8"));
    const [{ beacon_id: id, public_key: key, genesis, period_seconds: period, seed: group, rounds }] = chains;
    const beacon = { id, key: fromHex(key), genesis: BigInt(genesis), period, group: fromHex(group), margin: 5000 };
    const sign = (wanted) => fromHex(rounds.find((one) => BigInt(one.round) === wanted).signature);
    const closed = Number(roundTime(beacon, round)) - 5500;
    const from = closed - 60_000;
    const operator = new Operator(origin, "recorded");
    const rules = {
      created: from - 60_000,
      opens: from,
      starts: closed,
      closes: closed + 600_000,
      windows: [{ from, length: 60_000 }],
    };
    const room = new Room(operator, rules, { beacon, sign });
    room.join(from, people);
    room.draw(closed);
    room.assign();
    const log = room.log();
    const entries = log.entries.map((entry) => parseEntry(entry));
    const at = (position) => {
      const { ticket } = entries.find((entry) => entry.kind === "assign" && entry.position === BigInt(position));
      return visitorAt(
        operator,
        log,
        entries.findIndex((entry) => entry.kind === "arrive" && entry.ticket === ticket),
      );
    };
    return { files: log.publish(operator).map, at };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Takes a picture of the first screen on a phone, for the documentation. */
async function picture(visitor, name, colorScheme = "light") {
  await visitor.page.emulateMedia({ colorScheme });
  await visitor.page.evaluate(() => scrollTo(0, 0));
  await visitor.page.screenshot({ path: `${screenshots}/visit-${name}.png`, animations: "disabled" });
}

/** Serves that transcript and the pages of the real server, with the recorded visitor in place of the real one. */
async function serve(room, real) {
  const prefix = new URL(room.url).pathname;
  const site = createServer(async ({ url, headers }, answer) => {
    const path = url.slice(prefix.length + 1);
    const file = url.startsWith(`${prefix}/`) && site.files.get(path);
    if (file) return answer.end(file);
    const mine = site.visitor;
    if (path.endsWith("/receipt")) return answer.end(mine.receipt);
    const found = await fetch(Server.running().url + url.replaceAll(mine.ticket, real.ticket), {
      headers: { cookie: headers.cookie ?? "", accept: headers.accept ?? "*/*" },
    });
    const kept = ["content-type", "content-security-policy"]
      .map((name) => [name, found.headers.get(name)])
      .filter(([, value]) => value !== null);
    let body = Buffer.from(await found.arrayBuffer());
    if (/html|json/.test(found.headers.get("content-type") ?? "")) {
      body = Buffer.from(
        body
          .toString()
          .replaceAll(real.ticket, mine.ticket)
          .replaceAll(real.origin, mine.origin)
          .replace(/data-vkey="[^"]*"/g, `data-vkey="${mine.vkey}"`),
      );
    }
    answer.writeHead(found.status, Object.fromEntries(kept)).end(body);
  });
  site.unref();
  await new Promise((done) => site.listen(0, "127.0.0.1", done));
  site.origin = `http://127.0.0.1:${site.address().port}`;
  return Object.assign(site, await recordedRoom(`${site.origin.slice(7)}${prefix}`));
}

scenes("public randomness", () => {
  scene("the check is green, on its page and next to the place", async (stage) => {
    const room = await stage.room({ slug: "green", windows: [{ length: "5s" }], starts: inSeconds(3600) });
    const visitor = await stage.visitor({ size: "phone" });
    await visitor.visit(room);
    await Promise.all([room.crowd(people - 1), visitor.main()]);
    await visitor.is("drawn");
    const real = { ticket: await visitor.ticket(), origin: room.origin };
    const position = await visitor.position();
    const site = await serve(room, real);
    try {
      stage.origins.push(site.origin);
      site.visitor = site.at(position);
      stage.honest = false; // the transcript shown with the place is the recorded one
      const shown = { url: `${site.origin}${new URL(room.url).pathname}` };
      const result = await visitor.checks(shown);
      assert.deepEqual(result, { overall: "green", record: "green", group: "green", draw: "green", place: "green" });
      await visitor.inspect("green-check");
      await picture(visitor, "check");
      for (const [query, name] of [
        ["?lang=ar", "arabic"],
        ["?lang=en", "drawn"],
      ]) {
        await visitor.visit(shown, query);
        await visitor.page.locator('#line [data-verdict][data-status="green"]').waitFor();
        await visitor.inspect(`green-${name}`);
        await picture(visitor, name);
      }
    } finally {
      site.closeAllConnections();
      site.close();
    }
  });

  scene("before and after that, for the documentation", async (stage) => {
    const upcoming = await stage.room({ slug: "pictured-upcoming", opens: inSeconds(754), starts: inSeconds(3600) });
    const waiting = await stage.room({
      slug: "pictured-waiting",
      windows: [{ length: "10m" }],
      starts: inSeconds(3600),
    });
    const called = await stage.room({
      slug: "pictured-called",
      windows: [{ length: "2s" }],
      outflow: { per_minute: 60_000 },
    });
    const visitor = await stage.visitor({ size: "phone" });
    await visitor.visit(upcoming);
    await visitor.is("upcoming");
    await picture(visitor, "upcoming");
    await waiting.crowd(411);
    await visitor.join(waiting);
    await visitor.is("waiting");
    await picture(visitor, "waiting");
    await visitor.join(called);
    await visitor.is("called");
    await picture(visitor, "called", "dark");
  });
});
