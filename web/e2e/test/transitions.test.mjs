// Every way from one state of an open page to the next: no sentence of the earlier state may stay,
// and none may contradict another.
import assert from "node:assert/strict";

import { inSeconds, until } from "../stage/room.mjs";
import { scene, scenes } from "../stage/scene.mjs";
import { Shop } from "../stage/shop.mjs";

const soon = { windows: [{ length: "1s" }] };
const rush = { ...soon, outflow: { per_minute: 60_000 } };
const later = inSeconds(3600);

/** The organizer's message in these rooms. */
const broadcast = "Everybody in line: you keep your place.";

/** Sentences that only visitors with a valid place may read. */
const ofPlace = [
  /you keep your place/i,
  /keeps their place/,
  /Your place is (fixed|\d|safe|kept)/,
  /people are ahead of you/,
  /You are next/,
];
const ofWait = [
  /likely between/,
  /at the earliest/,
  /so it takes longer/,
  /let in from/,
  /keeps itself up to date/,
  /Check again every/,
  /will be drawn|are being drawn|are drawn at/,
];
const ofTurn = [/Go in now/, /Go in by/, /Time left/, /your turn comes/i, /your time to go in stands still/i];
const final = [...ofPlace, ...ofWait, ...ofTurn];
/** Visitors who are no longer in line still read the organizer's message, until it ends. */
const gone = final.filter((words) => !/you keep your place/.test(words.source));

/** Texts that must not appear in a state. */
const forbidden = {
  upcoming: [/Your place is/, ...ofTurn],
  joinable: [/Your place is/, ...ofTurn, /are being drawn/],
  full: [/Your place is/, ...ofTurn],
  closed: [/Your place is/, ...ofTurn, /let in from/],
  waiting: [
    /Your place is (fixed|\d)/,
    /likely between/,
    /More people have joined/,
    ...ofTurn.filter((words) => !/turn comes/.test(words.source)),
  ],
  drawn: [/at the earliest/, /More people have joined/, /still growing/, /are being drawn|are drawn at/, ...ofTurn],
  called: [...ofWait.filter((words) => !/up to date/.test(words.source)), /ahead of you/],
  admitted: gone,
  over: gone,
  missed: gone,
  left: gone,
  revoked: final,
  ended: final,
};

/** Pairs of texts that contradict each other in every state. */
const pairs = [
  [/Letting people in is paused/, /likely between|at the earliest|so it takes longer/],
  [/Letting people in is paused/, /Go in by/],
  [/Going in is stopped/, /Go in now|Go in by|Letting people in is paused/],
  [/was withdrawn|has ended/, /Your place is|keeps? (your|their) place|Go in now/],
];

/** Reads what a visitor sees, and checks that it has no sentence of another state. */
async function reads(visitor, state) {
  await visitor.is(state);
  const words = await visitor.page.evaluate(() => {
    const spoken = document.querySelector("[data-announce]")?.innerText; // which pass after some seconds
    return spoken ? document.body.innerText.replace(spoken, "") : document.body.innerText;
  });
  for (const pattern of forbidden[state]) assert.doesNotMatch(words, pattern, `in state ${state}`);
  for (const [one, other] of pairs)
    assert.ok(!(one.test(words) && other.test(words)), `in state ${state}, ${one} next to ${other}:\n${words}`);
  return words;
}

/** Waits until the open page is in a state, without reloading it, and reads it. */
async function comes(visitor, ...states) {
  for (const state of states) await reads(visitor, state);
}

scenes("transitions", () => {
  scene("a whole visit: upcoming to over", async (stage) => {
    const shop = await Shop.open();
    stage.origins.push(shop.origin);
    try {
      const visitor = await stage.visitor({ size: "phone" }); // before the room, which opens soon
      const room = await stage.room({
        slug: "way-whole",
        opens: inSeconds(12),
        windows: [{ length: "6s" }],
        starts: inSeconds(26),
        outflow: { per_minute: 60 },
        targets: [shop.target],
      });
      await room.say(broadcast);
      await visitor.visit(room);
      await comes(visitor, "upcoming", "joinable");
      await visitor.main();
      const words = await reads(visitor, "waiting");
      assert.match(words, /at the earliest/, "before the draw there is no upper bound");
      await comes(visitor, "drawn", "called");
      await visitor.main();
      await visitor.page.waitForURL(`${shop.target}?proofline_pass=*`);
      const pass = new URL(visitor.page.url()).searchParams.get("proofline_pass");
      await visitor.visit(room);
      await comes(visitor, "admitted");
      await fetch(`${room.url}/sessions/release`, { method: "POST", headers: { Authorization: `Bearer ${pass}` } });
      await visitor.visit(room);
      await comes(visitor, "over");
    } finally {
      shop.close();
    }
  });

  for (const from of ["waiting", "drawn", "called"]) {
    const windows = [{ length: from === "waiting" ? "1h" : "1s" }];
    // A short claim time makes pages poll often, even if their turn is far away.
    const config = {
      windows,
      ...(from === "called" ? { outflow: { per_minute: 60_000 }, claim: "10m" } : { starts: later, claim: "12s" }),
    };

    scene(`${from}: paused, held, resumed, and ended`, async (stage) => {
      const room = await stage.room({ slug: `way-${from}-ended`, ...config });
      await room.say(broadcast);
      const visitor = await stage.visitor({ size: "phone" });
      await visitor.join(room);
      await comes(visitor, from);
      await room.pause();
      await visitor.page.locator('[data-show="paused"]:visible').first().waitFor();
      await comes(visitor, from);
      await room.resume();
      await until(
        "the pause is over on the page",
        async () => (await visitor.page.locator('[data-show="paused"]:visible').count()) === 0,
      );
      await comes(visitor, from);
      await room.pause();
      await visitor.page.locator('[data-show="paused"]:visible').first().waitFor();
      await room.end();
      await comes(visitor, "ended");
    });

    scene(`${from}: withdrawn in a pause`, async (stage) => {
      const room = await stage.room({ slug: `way-${from}-revoked`, ...config });
      await room.say(broadcast);
      const visitor = await stage.visitor({ size: "phone" });
      const other = await stage.visitor({ size: "desktop" });
      await visitor.join(room);
      await other.join(room);
      await comes(visitor, from);
      await comes(other, from);
      await room.pause();
      await visitor.page.locator('[data-show="paused"]:visible').first().waitFor();
      await room.revoke(await visitor.ticket());
      await comes(visitor, "revoked"); // on the open page, automatically
      await comes(other, from);
    });

    if (from !== "called")
      scene(`${from}: given up, and the room ends`, async (stage) => {
        const room = await stage.room({ slug: `way-${from}-left`, ...config });
        const visitor = await stage.visitor({ size: "phone" });
        await visitor.join(room);
        await comes(visitor, from);
        await visitor.page.locator("details summary").first().click();
        await visitor.page.locator('[data-post="leave"] button').click();
        await comes(visitor, "left");
        await room.end();
        await visitor.page.reload();
        await comes(visitor, "left");
      });
  }

  scene("called to missed, and the line ends", async (stage) => {
    const room = await stage.room({ slug: "way-missed", ...rush, claim: "3s" });
    const visitor = await stage.visitor({ size: "phone" });
    await visitor.join(room);
    await comes(visitor, "called", "missed");
    await room.end();
    await visitor.page.reload();
    await comes(visitor, "missed");
  });

  scene("full, closed and ended to visitors without a place", async (stage) => {
    const room = await stage.room({
      slug: "way-without",
      windows: [{ length: "1h" }],
      max_waiting: 3,
      closes: inSeconds(12),
      starts: later,
    });
    await room.say(broadcast);
    const visitor = await stage.visitor({ size: "phone" });
    await visitor.visit(room);
    await comes(visitor, "joinable");
    await room.crowd(3);
    await visitor.visit(room);
    await comes(visitor, "full");
    await until("it is closed", async () => (await room.state()).phase === "closed");
    await visitor.visit(room);
    await comes(visitor, "closed");
    await room.end();
    await visitor.visit(room);
    await comes(visitor, "ended");
  });
});
