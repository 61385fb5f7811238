// The check of a place must turn red when the server lies.
import assert from "node:assert/strict";

import { inSeconds, until } from "../stage/room.mjs";
import { scene, scenes } from "../stage/scene.mjs";

const honest = { overall: "amber", record: "green", group: "green", draw: "amber", place: "green" };

/** Changes the bytes of a response before they reach the browser. */
async function tamper(page, url, change) {
  await page.route(url, async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, body: change(await answer.body()) });
  });
}

/** Returns the bytes with another digit or letter after a text. */
function after(pattern) {
  return (body) => {
    const text = body.toString("latin1");
    const match = pattern.exec(text);
    if (!match) return body;
    const at = match.index + match[0].length;
    const other = text[at] === "1" ? "2" : "1";
    return Buffer.from(text.slice(0, at) + other + text.slice(at + 1), "latin1");
  };
}

/** Flips a bit in every hash of a tile. */
function flipHashes(body) {
  const changed = Buffer.from(body);
  for (let at = 7; at < changed.length; at += 32) changed[at] ^= 1;
  return changed;
}

/** What a server could change in the published log, for all visitors or for one. */
const lies = [
  ["the seed of the draw", "**/tile/entries/**", after(/draw \d+ \d+ - /)],
  ["the number of people in the group", "**/tile/entries/**", after(/freeze \d+ \d+ /)],
  ["the time of the freeze", "**/tile/entries/**", after(/freeze \d{6}/)],
  ["the places", "**/tile/entries/**", swapPlaces],
  ["the policy", "**/tile/entries/**", after(/outflow \d/)],
  ["the hashes of the tree", /\/tile\/[01]\//, flipHashes],
  ["the root of the checkpoint", "**/checkpoint", after(/\n\d+\n.{4}/)],
  ["the signature of the checkpoint", "**/checkpoint", after(/\u00e2\u0080\u0094 \S+ .{20}/)],
  ["the size of the checkpoint", "**/checkpoint", after(/^[^\n]+\n/)],
];

/** Swaps the tickets of the first two places in a bundle. */
function swapPlaces(body) {
  let text = body.toString("latin1");
  const [one, two] = [...text.matchAll(/assign \d+ general \d+ ([0-9a-f-]{36})/g)].map((match) => match[1]);
  if (two === undefined) return body;
  text = text.replace(
    /(assign \d+ general \d+ )([0-9a-f-]{36})/g,
    (_all, start, ticket) => start + (ticket === one ? two : ticket === two ? one : ticket),
  );
  return Buffer.from(text, "latin1");
}

scenes("lies of the server", () => {
  scene("the check of a drawn place goes red", async (stage) => {
    const room = await stage.room({ slug: "lies", windows: [{ length: "2s" }], starts: inSeconds(3600) });
    const visitor = await stage.visitor({ size: "phone" });
    await room.crowd(300); // more than a tile has
    await visitor.join(room);
    await room.crowd(1);
    await visitor.is("drawn");
    await until("all is published", async () => (await visitor.checks(room)).place === "green");
    let pictured = 0;
    for (const [what, url, change] of lies) {
      await tamper(visitor.page, url, change);
      const result = await visitor.checks(room);
      assert.equal(result.overall, "red", `${what}: ${JSON.stringify(result)}`);
      assert.notEqual(result.place, "green", `${what}: ${JSON.stringify(result)}`);
      if (url === "**/checkpoint" && !pictured++) await visitor.inspect("check-red");
      await visitor.page.unroute(url);
    }
    assert.deepEqual(await visitor.checks(room), honest, "nothing of it stays");
  });

  scene("a receipt that is not in the record, or is changed", async (stage) => {
    const windows = [{ length: "1s" }];
    const [room, other] = [
      await stage.room({ slug: "receipt", windows, starts: inSeconds(3600) }),
      await stage.room({ slug: "receipt-other", windows: [{ length: "1h" }] }),
    ];
    const foreign = await stage.visitor();
    await foreign.join(other);
    const { ticket } = await foreign.data();
    const stranger = await (await fetch(`${other.url}/tickets/${ticket}/receipt`)).text();
    const changes = [
      (receipt) => receipt.replace(/index (\d+)/, (_, n) => `index ${Number(n) + 1}`),
      (receipt) => after(/\n\d+\n.{6}/)(Buffer.from(receipt)).toString(),
      () => stranger,
    ];
    for (const change of changes) {
      const visitor = await stage.visitor({ size: "phone" });
      await tamper(visitor.page, "**/line", (body) => {
        const answer = JSON.parse(body);
        return JSON.stringify({ ...answer, receipt: change(answer.receipt) });
      });
      await visitor.join(room);
      await visitor.is("drawn");
      const { overall, record } = await visitor.checks(room);
      assert.deepEqual([overall, record], ["red", "red"]);
    }
  });

  scene("a page that names another place than the record", async (stage) => {
    stage.honest = false;
    const room = await stage.room({ slug: "place", windows: [{ length: "2s" }], starts: inSeconds(3600) });
    const visitor = await stage.visitor({ size: "phone" });
    const better = (body) =>
      body
        .toString()
        .replace(/data-position="\d+"/, 'data-position="1"')
        .replace(/<b>\d+<\/b>/, "<b>1</b>");
    await room.crowd(30);
    await room.drawn(); // so the visitor's place is not the first
    await tamper(visitor.page, "**/r/place?fragment=1*", better);
    await visitor.join(room);
    await visitor.is("drawn");
    assert.equal(await visitor.position(), 1);
    await visitor.page.unroute("**/r/place?fragment=1*");
    const result = await visitor.checks(room);
    assert.deepEqual([result.overall, result.place], ["red", "red"]);
  });

  scene("a later place than before is not shown without saying so", async (stage) => {
    stage.honest = false;
    const room = await stage.room({ slug: "later", windows: [{ length: "1s" }], starts: inSeconds(3600) });
    const visitor = await stage.visitor({ size: "phone" });
    await visitor.join(room);
    await visitor.is("drawn");
    const was = await visitor.position();
    visitor.watch.seen.length = 0; // the browser cannot stop a server from writing anything into a new page
    await tamper(visitor.page, room.url, (body) =>
      body
        .toString()
        .replace(/data-position="\d+"/, 'data-position="99"')
        .replace(/<b>\d+<\/b>/, "<b>99</b>"),
    );
    await visitor.page.reload();
    await visitor.page.locator('[data-notice="changed"]').waitFor();
    await visitor.inspect("changed");
    await visitor.page.unroute(room.url);
    await visitor.page.reload();
    await visitor.is("drawn");
    assert.equal(await visitor.position(), was);
  });

  scene("an old answer of a cache takes nothing back", async (stage) => {
    const room = await stage.room({ slug: "cache", windows: [{ length: "3s" }], outflow: { per_minute: 60 } });
    const people = await room.crowd(40);
    await room.drawn();
    const old = JSON.stringify(await room.state());
    const visitor = await stage.visitor();
    await visitor.join(room);
    await visitor.is("drawn");
    let asked = 0;
    await visitor.page.route("**/state", (route) =>
      ++asked % 2 === 0 ? route.fulfill({ body: old, contentType: "application/json" }) : route.continue(),
    );
    await until("it has asked five times", () => asked >= 5);
    assert.equal(people.length, 40); // the watch notices whether a number rises
  });

  scene("a log that cannot be read says nothing about the place", async (stage) => {
    const room = await stage.room({ slug: "unread", windows: [{ length: "1s" }], starts: inSeconds(3600) });
    const visitor = await stage.visitor();
    await visitor.join(room);
    await visitor.is("drawn");
    await visitor.page.route("**/tile/**", (route) => route.fulfill({ status: 503 }));
    assert.equal((await visitor.checks(room)).overall, "failed");
    await visitor.inspect("check-failed");
    await visitor.page.unroute("**/tile/**");
    await visitor.page.locator("[data-again]").click();
    await visitor.page.locator('[data-verdict][data-status="amber"]').waitFor();
  });
});
