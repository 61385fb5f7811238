// A visitor's whole way, from before the opening to the target, and what may happen in between:
// reloads, a second tab, another device, no network, no cookies, no mouse.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { launch } from "../stage/launch.mjs";
import { inSeconds, until } from "../stage/room.mjs";
import { scene, scenes } from "../stage/scene.mjs";
import { readPass, Shop } from "../stage/shop.mjs";
import { sizes, Visitor } from "../stage/visitor.mjs";

const arrivals = (entries) => entries.filter(({ kind }) => kind === "arrive");

scenes("the way", () => {
  scene("from the countdown to the target, without a reload", async (stage) => {
    const shop = await Shop.open();
    stage.origins.push(shop.origin);
    try {
      const visitors = [await stage.visitor({ size: "phone" }), await stage.visitor()];
      const room = await stage.room({
        slug: "way",
        opens: inSeconds(8),
        windows: [{ length: "5s" }],
        outflow: { per_minute: 600 },
        targets: [shop.target],
      });
      await room.callByHand();
      const wait = async (visitor) => {
        await visitor.visit(room, `?to=${encodeURIComponent(`${shop.target}/row-1?seat=2`)}`);
        for (const state of ["upcoming", "joinable"]) await visitor.is(state);
        await visitor.main();
        for (const state of ["waiting", "drawn"]) await visitor.is(state);
      };
      const enter = async (visitor) => {
        await visitor.is("called");
        const { ticket } = await visitor.data();
        await visitor.main();
        await visitor.page.waitForURL(`${shop.target}/row-1?seat=2&proofline_pass=*`);
        const pass = await readPass(room, new URL(visitor.page.url()).searchParams.get("proofline_pass"));
        assert.equal(pass.sub, ticket);
        assert.deepEqual(pass.aud, [room.origin]);
        const place = visitor.watch.seen.findLast(({ position }) => position !== undefined);
        assert.equal(pass.position, place.position, "the pass has the place that was shown");
        return ticket;
      };
      await Promise.all(visitors.map(wait));
      await room.pull(2); // once both have seen their place, because a visitor who is called at once never does
      const tickets = await Promise.all(visitors.map(enter));
      const entries = await room.transcript();
      for (const ticket of tickets) {
        const kinds = entries.filter((entry) => entry.names(ticket)).map(({ kind }) => kind);
        assert.deepEqual(kinds, ["arrive", "assign", "admit"]);
      }
    } finally {
      shop.close();
    }
  });

  scene("a reload, the back button and a new tab keep the place", async (stage) => {
    const room = await stage.room({ slug: "keep", windows: [{ length: "1s" }], starts: inSeconds(3600) });
    const visitor = await stage.visitor({ size: "phone" });
    await visitor.join(room);
    await visitor.is("drawn");
    const { ticket, position } = await visitor.data();
    const same = async (page) => {
      await page.locator(`main[data-ticket="${ticket}"][data-position="${position}"]`).waitFor();
    };
    await visitor.page.reload();
    await same(visitor.page);
    await visitor.page.goto(`${room.url}/check`);
    await visitor.page.goBack();
    await same(visitor.page);
    await visitor.page.goForward();
    await visitor.page.goBack();
    await same(visitor.page);
    const tab = await visitor.context.newPage();
    await tab.goto(room.url);
    await same(tab);
    await visitor.page.close();
    const again = await visitor.context.newPage();
    await again.goto(room.url);
    await same(again);
    assert.equal(arrivals(await room.transcript()).length, 1);
  });

  scene("joining in three tabs at once yields one ticket", async (stage) => {
    const room = await stage.room({ slug: "tabs", windows: [{ length: "1h" }] });
    const visitor = await stage.visitor();
    const tabs = [visitor.page, await visitor.context.newPage(), await visitor.context.newPage()];
    for (const tab of tabs) await tab.goto(room.url);
    await Promise.all(tabs.map((tab) => tab.locator("form button.main").evaluate((button) => button.click())));
    const tickets = await Promise.all(tabs.map((tab) => tab.locator("main[data-ticket]").getAttribute("data-ticket")));
    assert.equal(new Set(tickets).size, 1);
    assert.equal(arrivals(await room.transcript()).length, 1);
  });

  scene("a link takes the place to another device, once, and asks before", async (stage) => {
    const room = await stage.room({ slug: "resume", windows: [{ length: "1h" }] });
    const visitor = await stage.visitor({ size: "phone", permissions: ["clipboard-read", "clipboard-write"] });
    await visitor.join(room);
    await visitor.page.locator("[data-save]").click();
    await visitor.page.locator("[data-saved]").waitFor();
    const field = visitor.page.locator("[data-saved] input");
    const link = await field.inputValue();
    assert.match(link.slice(room.url.length), /^#t=[\w-]{22}$/);
    await visitor.inspect("saved");
    await visitor.page.locator("[data-copy]").click();
    await visitor.page.locator("[data-copied]").waitFor();
    assert.equal(await visitor.page.evaluate(() => navigator.clipboard.readText()), link);

    const settled = await stage.visitor();
    await settled.join(room);
    const own = await settled.ticket();
    await settled.page.goto("about:blank");
    await settled.page.goto(link);
    await settled.page.locator('[data-notice="otherplace"]').waitFor();
    assert.equal(await settled.ticket(), own, "a link does not take a place away");

    const careful = await stage.visitor();
    await careful.page.goto(link);
    await careful.page.locator('[data-notice="take"]').waitFor();
    await careful.inspect("take");
    await careful.is("joinable"); // nothing happens without being asked
    await careful.page.locator('[data-take="no"]').click();
    await careful.page.locator('[data-notice="take"]').waitFor({ state: "hidden" });
    assert.equal(new URL(careful.page.url()).hash, "");

    const other = await stage.visitor({ size: "phone" });
    other.watch.allow(/status of 410/);
    await other.page.goto(link);
    await other.page.locator('[data-take="yes"]').focus();
    await other.page.keyboard.press("Enter");
    await other.is("waiting");
    assert.equal(await other.ticket(), await visitor.ticket());
    assert.equal(new URL(other.page.url()).hash, "", "the code does not stay in the address");
    await other.page.reload();
    await other.is("waiting");

    const late = await stage.visitor();
    late.watch.allow(/status of 410/);
    await late.page.goto(link);
    await late.page.locator('[data-take="yes"]').click();
    await late.page.locator('[data-notice="takegone"]').waitFor();
    await late.is("joinable");
    assert.equal(arrivals(await room.transcript()).length, 2);
  });

  scene("a link that an attacker spreads does not take over a visitor's place", async (stage) => {
    const room = await stage.room({ slug: "spread", windows: [{ length: "1h" }] });
    const [crowd] = await room.crowd(1);
    const visitor = await stage.visitor();
    await visitor.page.goto(`${room.url}#k=${crowd?.secret ?? "A".repeat(43)}`);
    await visitor.page.locator('[data-notice="takegone"]').waitFor();
    await visitor.is("joinable");
    assert.equal(new URL(visitor.page.url()).hash, "");
    assert.equal(await visitor.ticket(), undefined);
  });

  scene("a minute without network", async (stage) => {
    const room = await stage.room({ slug: "offline", windows: [{ length: "12s" }], claim: "10m" });
    const visitor = await stage.visitor({ size: "phone" });
    visitor.watch.expect(/ERR_INTERNET_DISCONNECTED/);
    await visitor.join(room);
    await visitor.is("waiting");
    await visitor.context.setOffline(true);
    const left = Date.now();
    await visitor.page.locator('[data-notice="offline"]').waitFor();
    await visitor.page.getByText("Your place is safe.").first().waitFor();
    await visitor.inspect("offline");
    const { ticket } = await visitor.data();
    await until("the line moves on", async () => {
      const { status } = await (await fetch(`${room.url}/tickets/${ticket}`)).json();
      return status === "called";
    });
    await until("a minute has gone", () => Date.now() - left > 60_000, 90_000);
    await visitor.is("waiting"); // the last state that it knew
    await visitor.context.setOffline(false);
    await visitor.is("called");
    await visitor.page.locator('[data-notice="offline"]').waitFor({ state: "hidden" });
    await visitor.main();
    await visitor.is("admitted");
  });

  scene("a no-show sees that the line is full, and that it has ended", async (stage) => {
    const room = await stage.room({ slug: "rest", windows: [{ length: "1s" }], claim: "1s", max_waiting: 1 });
    await room.callByHand();
    const visitor = await stage.visitor();
    await visitor.page.clock.install(); // the page polls every two minutes
    await visitor.join(room);
    await visitor.is("drawn");
    await room.pull(1);
    await visitor.is("missed");
    const join = visitor.page.getByRole("button", { name: "Take a new place" });
    await join.waitFor();
    await room.crowd(1);
    await until("the line is full", async () => (await (await fetch(`${room.url}/state`)).json()).full);
    await visitor.page.clock.fastForward("03:00");
    await visitor.page
      .locator("[role=status]", { hasText: "The line is full right now." })
      .waitFor({ state: "attached" }); // and the page says so
    assert.equal(await join.count(), 0);
    await room.end();
    await visitor.page.clock.fastForward("03:00");
    await visitor.page.locator("[data-again]", { hasText: "Nobody can join this line any more." }).waitFor();
    await visitor.is("missed");
  });

  scene("going in on two devices at once makes one admission", async (stage) => {
    const room = await stage.room({ slug: "twice", windows: [{ length: "1s" }], outflow: { per_minute: 60_000 } });
    const visitor = await stage.visitor();
    await visitor.join(room);
    await visitor.is("called");
    const tab = await visitor.context.newPage();
    await tab.goto(room.url);
    const enter = (page) => page.locator("form button.main").evaluate((button) => button.click());
    await Promise.all([enter(visitor.page), enter(tab)]);
    await visitor.is("admitted");
    await tab.locator('main[data-state="admitted"]').waitFor();
    assert.equal((await room.transcript()).filter(({ kind }) => kind === "admit").length, 1);
  });

  scene("more time to go in, once: by keyboard, and what a screen reader says", async (stage) => {
    const room = await stage.room({
      slug: "more-time",
      windows: [{ length: "1s" }],
      outflow: { per_minute: 60_000 },
      claim: "5m",
      extend: "10m",
    });
    const visitor = await stage.visitor({ size: "phone" });
    const { page } = visitor;
    await visitor.join(room);
    await visitor.is("called");
    const more = page.getByRole("button", { name: "I need more time" });
    const describedBy = await more.evaluate((button) => {
      return document.getElementById(button.getAttribute("aria-describedby")).innerText;
    });
    assert.equal(describedBy, "If you need longer, you can get 10 minutes more, once. Nobody asks why.");
    const lead = page.locator('[data-show="unpaused"]');
    const before = await lead.innerText();
    await more.focus();
    await page.keyboard.press("Enter");
    await more.waitFor({ state: "detached" });
    const after = await lead.innerText();
    assert.match(after, /^Go in by /);
    assert.notEqual(after, before);
    await page.locator("[role=status]", { hasText: after }).waitFor({ state: "attached" });
    assert.equal(await page.evaluate(() => document.activeElement.tagName), "H1", "the focus is on the heading");
    assert.match(await page.getByRole("timer").textContent(), /^1[45]:\d\d$/);
    await page.reload();
    await visitor.is("called");
    assert.equal(await more.count(), 0);
    const ticket = await visitor.ticket();
    const { extend_ms, left_ms } = await (await fetch(`${room.url}/tickets/${ticket}`)).json();
    assert.equal(extend_ms, undefined);
    assert.ok(left_ms > 800_000);
    const entries = await room.transcript();
    assert.deepEqual(
      entries.filter(({ kind }) => kind === "extend").map(({ fields }) => fields[1]),
      [ticket],
    );
    await visitor.main();
    await visitor.is("admitted");
  });

  scene("more time when none is left: the page says so", async (stage) => {
    const room = await stage.room({
      slug: "too-late",
      windows: [{ length: "1s" }],
      outflow: { per_minute: 60_000 },
      claim: "4s",
      extend: "10m",
    });
    const visitor = await stage.visitor({ size: "phone" });
    const { page } = visitor;
    await visitor.join(room);
    await visitor.is("called");
    await page.route(`${room.url}/extend`, async (route) => {
      await until("the turn has passed", async () => {
        const { status } = await (await fetch(`${room.url}/tickets/${await visitor.ticket()}`)).json();
        return status === "skipped";
      });
      await route.continue();
    });
    visitor.watch.expect(/410/);
    await page.getByRole("button", { name: "I need more time" }).click();
    await page.getByText("There was no time left to extend.").first().waitFor();
    await visitor.is("missed");
  });

  scene("a revoked place that is given back comes back to the open page", async (stage) => {
    const room = await stage.room({ slug: "given-back", windows: [{ length: "1s" }], outflow: { per_minute: 60_000 } });
    await room.callByHand();
    const visitor = await stage.visitor({ size: "phone" });
    const { page } = visitor;
    await page.clock.install(); // a page of a revoked place polls every two minutes
    await visitor.join(room);
    await visitor.is("drawn");
    const [ticket, position] = [await visitor.ticket(), await visitor.position()];
    await room.revoke(ticket);
    await page.clock.fastForward("01:00");
    await visitor.is("revoked");
    await page.getByText("If the organizer gives you the place back, this page shows it.").waitFor();
    await page.clock.fastForward("03:00");
    await visitor.is("revoked");
    await room.restore(ticket);
    await page.clock.fastForward("03:00");
    await visitor.is("drawn");
    assert.deepEqual([await visitor.ticket(), await visitor.position()], [ticket, position]);
    await page.locator("[role=status]", { hasText: `Your place is ${position}` }).waitFor({ state: "attached" });
    await room.pull(1);
    await page.clock.fastForward("01:00");
    await visitor.is("called");
    await visitor.main();
    await visitor.is("admitted");
  });

  scene("a revoked place whose room ends: the page stops asking", async (stage) => {
    const room = await stage.room({ slug: "not-given-back", windows: [{ length: "1h" }] });
    const visitor = await stage.visitor({ size: "phone" });
    const { page } = visitor;
    await page.clock.install();
    await visitor.join(room);
    await room.revoke(await visitor.ticket());
    await page.clock.fastForward("01:00");
    await visitor.is("revoked");
    await room.end();
    await until("it has ended", async () => (await room.state()).phase === "ended");
    await page.clock.fastForward("03:00");
    await page.locator('main[data-without="ended"]').waitFor();
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    for (let i = 0; i < 3; i++) await page.clock.fastForward("05:00");
    await page.waitForTimeout(500);
    assert.deepEqual(asked, []);
    assert.equal(await page.getByText("gives you the place back").count(), 0);
  });

  scene(
    "a number of seats: chosen by keyboard, kept while the page updates itself, and chosen again",
    async (stage) => {
      const room = await stage.room({ slug: "seats", windows: [{ length: "1h" }], party: 4, max_waiting: 2 });
      const visitor = await stage.visitor();
      const { page } = visitor;
      await page.clock.install();
      await visitor.visit(room);
      const seats = page.getByLabel("How many seats do you need?");
      await seats.focus();
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowDown");
      assert.equal(await seats.inputValue(), "3");
      assert.equal(await seats.evaluate((field) => field.labels.length), 1);
      const fetched = page.waitForResponse((answer) => answer.url().includes("fragment=1"));
      await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange"))); // as after a look at another tab
      await fetched;
      await page.clock.fastForward("00:02");
      await visitor.is("joinable");
      assert.equal(await seats.inputValue(), "3", "the choice stays");
      await visitor.main();
      await visitor.is("waiting");
      await page.getByText("Your place in line is for 3 seats.").waitFor();
      await page.locator("details summary").click();
      await page.locator('[data-post="leave"] button').click();
      await visitor.is("left");
      await seats.selectOption("2");
      await visitor.main();
      await visitor.is("waiting");
      await page.getByText("Your place in line is for 2 seats.").waitFor();
      const parties = (await room.transcript())
        .filter(({ kind }) => kind === "arrive")
        .map(({ fields }) => fields.at(-1));
      assert.deepEqual(parties, ["3", "2"]);
    },
  );

  scene("leaving, and joining again at the end", async (stage) => {
    const room = await stage.room({ slug: "again", windows: [{ length: "1h" }] });
    const visitor = await stage.visitor({ size: "phone" });
    await visitor.join(room);
    const first = await visitor.ticket();
    await visitor.page.locator("details summary").click();
    await visitor.page.locator('[data-post="leave"] button').click();
    await visitor.is("left");
    await visitor.main();
    await visitor.is("waiting");
    const second = await visitor.ticket();
    assert.notEqual(first, second);
    const story = (await room.transcript()).filter((entry) => entry.names(first) || entry.names(second));
    assert.deepEqual(
      story.map(({ kind, fields }) => `${kind} ${fields.at(-1)}`),
      ["arrive general", "skip left", "arrive general"],
    );
  });

  scene("cookies blocked: the place is in the address", async (stage) => {
    const profile = await mkdtemp(join(tmpdir(), "proofline-profile-"));
    let context;
    try {
      await mkdir(join(profile, "Default"));
      const blocked = { profile: { default_content_setting_values: { cookies: 2 } } };
      await writeFile(join(profile, "Default", "Preferences"), JSON.stringify(blocked));
      context = await chromium.launchPersistentContext(profile, { ...launch, ...sizes.phone, locale: "en-GB" });
      const visitor = stage.add(await Visitor.in(context, stage.origins, "phone"));
      const room = await stage.room({ slug: "blocked", windows: [{ length: "3s" }], outflow: { per_minute: 60_000 } });
      await visitor.join(room);
      await visitor.page.locator('[data-notice="cookies"]').waitFor();
      assert.match(new URL(visitor.page.url()).hash, /^#k=[\w-]{43}$/);
      assert.deepEqual(await context.cookies(), []);
      await visitor.inspect("cookies");
      const { ticket } = await visitor.data();
      await visitor.page.reload();
      await visitor.page.locator(`main[data-ticket="${ticket}"]`).waitFor();
      const stranger = await context.newPage();
      await stranger.goto(visitor.page.url());
      await stranger.locator('[data-notice="takegone"]').waitFor();
      assert.equal(await stranger.locator("main[data-ticket]").count(), 0, "an address from elsewhere takes no place");
      await stranger.close();
      await visitor.is("called");
      await visitor.main();
      await visitor.is("admitted");
      const entries = await room.transcript();
      assert.equal(arrivals(entries).length, 1);
      assert.equal(entries.filter(({ kind }) => kind === "admit").length, 1);
    } finally {
      await context?.close();
      await rm(profile, { recursive: true, force: true });
    }
  });

  scene("by keyboard alone", async (stage) => {
    const room = await stage.room({ slug: "keyboard", windows: [{ length: "1h" }] });
    const visitor = await stage.visitor();
    const { page } = visitor;
    /** Returns the focused element, which must be visible. */
    const focused = () =>
      page.evaluate(() => {
        const element = document.activeElement;
        if (!element || element === document.body) return "";
        const { outlineStyle, outlineWidth } = getComputedStyle(element);
        if (outlineStyle === "none" || outlineWidth === "0px")
          throw new Error(`${element.outerHTML} has the focus unseen`);
        return element.textContent.trim() || element.tagName;
      });
    const tabTo = async (text) => {
      for (let i = 0; i < 40; i++) {
        await page.keyboard.press("Tab");
        if ((await focused()) === text) return;
      }
      throw new Error(`"${text}" cannot be reached`);
    };
    await visitor.visit(room);
    await tabTo("Join the line");
    await page.keyboard.press("Enter");
    await visitor.is("waiting");
    assert.equal(await page.evaluate(() => document.activeElement.tagName), "H1", "the focus goes where the news is");
    await tabTo("Continue on another device");
    await page.keyboard.press("Enter");
    await page.locator("[data-saved] input").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.tagName), "INPUT");
    await tabTo("Deutsch"); // all the way round
    await page.locator("h1").focus();
    await tabTo("Leave the line");
    await page.keyboard.press("Space");
    await tabTo("Give up my place");
    await page.keyboard.press("Enter");
    await visitor.is("left");
  });

  scene("a screen reader announces each change once", async (stage) => {
    const room = await stage.room({ slug: "voice", windows: [{ length: "4s" }], outflow: { per_minute: 60_000 } });
    const visitor = await stage.visitor();
    await visitor.page.addInitScript(() => {
      window.heard = [];
      addEventListener("DOMContentLoaded", () => {
        const voice = document.querySelector("[data-announce]");
        new MutationObserver(() => window.heard.push(voice.textContent)).observe(voice, {
          childList: true,
          characterData: true,
          subtree: true,
        });
      });
    });
    await visitor.join(room);
    await visitor.is("called");
    const heard = await visitor.page.evaluate(() => window.heard);
    assert.match(heard.at(0), /^You are in the group that joined between .* and .*\./);
    assert.match(heard.at(-1), /^It is your turn\./);
    assert.ok(heard.length <= 3, `heard: ${heard.join(" | ")}`);
    assert.equal(
      await visitor.page.getByRole("timer").evaluate((timer) => timer.closest("[aria-live]:not([aria-live=off])")),
      null,
      "the countdown is silent",
    );
  });
});
