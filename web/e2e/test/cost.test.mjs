// The size of a page's first load, and the time to check a place among 100,000, in a real browser
// over HTTP.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { top } from "../stage/places.mjs";
import { scene, scenes } from "../stage/scene.mjs";
import { Server } from "../stage/server.mjs";

const people = 100_000;
const limit = 1500; // milliseconds

/** Writes the transcript of a drawn window with a number of visitors, and returns the visitor in its middle. */
async function largeRoom(origin) {
  const { build } = createRequire(`${top}/web/ui/package.json`)("esbuild");
  const folder = await mkdtemp(join(tmpdir(), "proofline-large-"));
  try {
    const outfile = join(folder, "room.mjs");
    await build({
      entryPoints: [`${top}/web/ui/test/support/room.ts`],
      outfile,
      bundle: true,
      format: "esm",
      platform: "node",
      logLevel: "error",
    });
    const { Operator, Room, opens, visitorAt } = await import(outfile);
    const operator = new Operator(origin, "large");
    const room = new Room(operator);
    room.join(opens, people);
    room.draw(opens + 60_000);
    room.assign();
    const log = room.log();
    return { files: log.publish(operator).map, visitor: visitorAt(operator, log, people / 2) };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Serves that transcript with the page of the check, and all other files from the real server. */
async function serve(room, page) {
  const prefix = new URL(room.url).pathname;
  const site = createServer(async ({ url }, answer) => {
    const path = url.slice(prefix.length + 1);
    const file = site.files.get(path);
    if (file) return answer.end(file);
    if (path === "check") return answer.writeHead(200, page.headers).end(page.text(site.visitor));
    if (path.endsWith("/receipt")) return answer.end(site.visitor.receipt);
    const real = await fetch(Server.running().url + url);
    const kept = ["content-type", "content-security-policy"].map((name) => [name, real.headers.get(name)]);
    answer.writeHead(real.status, Object.fromEntries(kept)).end(Buffer.from(await real.arrayBuffer()));
  });
  site.unref();
  await new Promise((done) => site.listen(0, "127.0.0.1", done));
  site.origin = `http://127.0.0.1:${site.address().port}`;
  return Object.assign(site, await largeRoom(`${site.origin.slice(7)}${prefix}`));
}

/** Measures a check, from the moment at which the page says that it runs. */
function stopwatch() {
  const look = () => {
    const status = document.querySelector("[data-verdict]")?.dataset.status;
    if (status === "running") window.began ??= performance.now();
    else if (status && window.took === undefined) window.took = performance.now() - window.began;
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, attributes: true });
}

scenes("cost", () => {
  scene("the first load of a room's page matches the README", async (stage, t) => {
    const room = await stage.room({ slug: "first-load", windows: [{ length: "24h" }] });
    const visitor = await stage.visitor({ size: "phone" });
    const finished = [];
    visitor.page.on("requestfinished", (request) => finished.push(request));
    await visitor.page.goto(room.url, { waitUntil: "networkidle" });
    const kinds = ["document", "stylesheet", "script", "image", "font", "other"];
    const loaded = finished.filter((request) => kinds.includes(request.resourceType())); // what its script requests later does not count
    const sizes = await Promise.all(loaded.map((request) => request.sizes()));
    const bytes = sizes.reduce((sum, { responseBodySize }) => sum + responseBodySize, 0);
    const [, said, requests] = /first load of a room's page \| ([0-9.]+) kB in ([0-9]+) requests/.exec(
      await readFile(`${top}/README.md`, "utf8"),
    );
    t.diagnostic(
      `first load: ${(bytes / 1000).toFixed(1)} kB in ${loaded.length} requests; the README says ${said} kB in ${requests}`,
    );
    assert.equal(loaded.length, Number(requests), loaded.map((request) => request.url()).join(" "));
    assert.ok(Math.abs(bytes / 1000 - Number(said)) < 0.03 * Number(said), `${bytes} bytes`);
  });

  scene(`the check of a place among ${people}`, async (stage, t) => {
    const room = await stage.room({ slug: "large", windows: [{ length: "1h" }] });
    const visitor = await stage.visitor();
    await visitor.join(room);
    const answer = await visitor.page.goto(`${room.url}/check`);
    const html = await answer.text();
    const page = {
      headers: {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": (await answer.allHeaders())["content-security-policy"],
      },
      text: ({ ticket, origin, vkey }) =>
        html
          .replace(/data-ticket="[^"]*"/, `data-ticket="${ticket}"`)
          .replace(/data-origin="[^"]*"/, `data-origin="${origin}"`)
          .replace(/data-vkey="[^"]*"/, `data-vkey="${vkey}"`),
    };
    const site = await serve(room, page);
    try {
      stage.origins.push(site.origin);
      await visitor.page.addInitScript(stopwatch);
      const times = [];
      for (let round = 0; round < 3; round++) {
        const result = await visitor.checks({ url: `${site.origin}${new URL(room.url).pathname}` });
        assert.deepEqual(result, { overall: "amber", record: "green", group: "green", draw: "amber", place: "green" });
        times.push(Math.round(await visitor.page.evaluate(() => window.took)));
      }
      t.diagnostic(
        `checks of a place among ${people}: ${times.join(", ")} ms, with loading the checker and the log; promise: ${limit} ms`,
      );
      assert.ok(Math.min(...times) < limit, `${times} ms`);
    } finally {
      site.closeAllConnections();
      site.close();
    }
  });
});
