// The connectors' script for pages: a page fetches protected resources, behind the real proxy.
import assert from "node:assert/strict";

import { Front } from "../stage/front.mjs";
import { until } from "../stage/room.mjs";
import { scene, scenes } from "../stage/scene.mjs";

const sale = (slug) => ({ slug, windows: [{ length: "1s" }], outflow: { per_minute: 600 } });

/** A scene with a site and its room, and a visitor who has opened the site's page. */
function atSite(name, slug, act, { config, ...site } = {}) {
  scene(name, async (stage) => {
    const room = await stage.room({ ...sale(slug), ...config });
    const front = await Front.open(room, site);
    stage.origins.push(front.origin);
    try {
      const visitor = await stage.visitor({ size: "phone" });
      visitor.watch.allow(/status of 403/); // browsers report every refusal
      await act({ visitor, page: visitor.page, room, front, stage });
    } finally {
      await front.close();
    }
  });
}

const button = (page) => page.getByRole("button", { name: "How many are left?" });
const said = (page, text) => page.locator("#said", { hasText: text }).waitFor();

/** Waits in line, and comes back. */
async function through(visitor) {
  await visitor.is("joinable");
  await visitor.main();
  await visitor.is("called");
  await visitor.main();
}

scenes("the script for pages", () => {
  for (const by of ["fetch", "xhr"]) {
    atSite(
      `${by}: to the line, and back to the same address`,
      `script-${by}`,
      async ({ visitor, page, room, front }) => {
        const here = `${front.origin}/?by=${by}&a=%C3%A4%26b#row-7`;
        await page.goto(here);
        await button(page).click();
        await page.waitForURL(`${room.url}?to=*`);
        assert.equal(new URL(page.url()).searchParams.get("to"), here.split("#")[0]);
        await through(visitor);
        await page.waitForURL(here);
        await button(page).click();
        await said(page, "200 3 left");
        assert.equal(page.url(), here);
      },
    );
  }

  atSite(
    "to the line, and back to a page that does not wait, where the room wants signatures",
    "script-signed",
    async ({ visitor, page, room, front }) => {
      const here = `${front.origin}/?a=%C3%A4%26b#row-7`;
      await page.goto(here);
      await button(page).click();
      await page.waitForURL(`${room.url}?to=*&to_sig=*`);
      assert.equal(
        new URL(page.url()).searchParams.get("to"),
        `${front.origin}/.proofline/enter?to=${encodeURIComponent(here.split("#")[0])}`,
      );
      await through(visitor);
      await page.waitForURL(here);
      await button(page).click();
      await said(page, "200 3 left");
      await page.goto(`${room.url}?to=${encodeURIComponent(`${front.origin}/elsewhere`)}`); // a link that anyone can make
      await visitor.is("admitted");
      await visitor.main();
      await page.waitForURL(here.split("#")[0]);
      assert.ok(!front.asked.includes("/elsewhere"));
    },
    { config: { signed_return: true }, hosts: ["localhost"] },
  );

  atSite("the back button leads out of the line, and nowhere else", "script-back", async ({ page, room, front }) => {
    const here = `${front.origin}/?at-once`;
    await page.goto(front.origin);
    await page.goto(here);
    await page.waitForURL(`${room.url}?to=*`);
    // Unlike the button, this does not skip pages without user activation. The call returns before the page is left.
    await page.evaluate(() => void setTimeout(() => history.back()));
    await page.waitForURL(here);
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    await said(page, "403");
    await dialog.getByRole("button", { name: "Join the line" }).click();
    await page.waitForURL(`${room.url}?to=*`);
  });

  atSite(
    "a dialog asks first",
    "script-dialog",
    async ({ visitor, page, front }) => {
      await page.goto(`${front.origin}/`);
      await button(page).click();
      const dialog = page.getByRole("dialog", { name: "There is a waiting line. Join it?" });
      await dialog.waitFor();
      await visitor.inspect("script-dialog");
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      assert.equal(
        await page.evaluate(() => document.activeElement.textContent),
        "How many are left?",
        "the focus is back",
      );
      await page.evaluate(() => ask()); // by itself, like a page that polls
      await said(page, "403");
      await page.waitForTimeout(200);
      assert.equal(await dialog.count(), 0, "a dialog opened without an action");
      await page.evaluate(() => (document.documentElement.lang = "ar"));
      await button(page).click();
      const inArabic = page.getByRole("dialog");
      assert.deepEqual(await inArabic.evaluate(({ lang, dir }) => [lang, dir]), ["ar", "rtl"]);
      await visitor.picture("script-dialog-ar");
      await inArabic.getByRole("button").first().click();
      await through(visitor);
      await page.waitForURL(`${front.origin}/`);
      await button(page).click();
      await said(page, "200 3 left");
    },
    { options: 'data-mode="dialog"' },
  );

  atSite(
    "an open gate lets in, and a shut one leads to the line",
    "script-gate",
    async ({ visitor, page, room, front, stage }) => {
      await until("the gate is open", async () => (await room.state()).gate === "open");
      visitor.watch.allow(/status of 403/);
      await until("the proxy has its share", async () => {
        await visitor.context.clearCookies();
        await page.goto(`${front.origin}/`);
        await button(page).click();
        const isIn = page
          .locator("#said", { hasText: /^\d/ })
          .waitFor()
          .then(() => true);
        const isLed = page.waitForURL(`${room.url}?to=*`).then(() => false);
        return (await Promise.race([isIn, isLed])) && (await page.locator("#said").textContent()) === "200 3 left";
      });
      await button(page).click();
      await said(page, "200 3 left"); // the session continues
      const late = await stage.visitor();
      late.watch.allow(/status of 403/);
      let guests = 0;
      await until("the gate is shut", async () => {
        await front.guest(guests++, "/tickets/left"); // other visitors, each in another network
        return (await room.state()).gate === "shut";
      });
      await late.page.goto(`${front.origin}/`);
      await button(late.page).click();
      await late.page.waitForURL(`${room.url}?to=*`);
      await through(late);
      await late.page.waitForURL(`${front.origin}/`);
      await button(late.page).click();
      await said(late.page, "200 3 left");
      await button(page).click();
      await said(page, "200 3 left"); // visitors with a session stay in
      const changes = (await room.transcript()).filter(({ kind }) => kind === "amend").map(({ fields }) => fields[1]);
      assert.deepEqual(changes, ["open", "shut"]);
    },
    { config: { outflow: { per_minute: 10 } }, mode: "safety-net" }, // as many as one network may begin
  );

  atSite("a visitor who leaves must wait again", "script-leave", async ({ visitor, page, room, front }) => {
    await page.goto(`${front.origin}/`);
    assert.equal(await page.evaluate(() => proofline.leave()), true, "leaving without a session succeeds");
    await button(page).click();
    await page.waitForURL(`${room.url}?to=*`);
    await through(visitor);
    await page.waitForURL(`${front.origin}/`);
    await button(page).click();
    await said(page, "200 3 left");
    assert.equal(await page.evaluate(() => proofline.leave()), true);
    assert.deepEqual(await visitor.context.cookies(front.origin), [], "cookies of the site");
    await button(page).click();
    await said(page, '403 {"error":"queue"');
  });

  atSite("a site shows a dialog of its own", "script-own", async ({ page, room, front }) => {
    await page.goto(`${front.origin}/?own`);
    await button(page).click();
    await page.waitForFunction(
      (join) => document.title === join,
      `${room.url}?to=${encodeURIComponent(`${front.origin}/?own`)}`,
    );
    await said(page, '403 {"error":"queue"');
    assert.equal(await page.getByRole("dialog").count(), 0);
    assert.equal(page.url(), `${front.origin}/?own`);
  });

  atSite("other requests of a page are left alone", "script-else", async ({ visitor, page, room, front, stage }) => {
    const other = await Front.open(room); // of another origin, which says the same
    stage.origins.push(other.origin);
    visitor.watch.allow(/CORS policy|ERR_FAILED/);
    try {
      await page.goto(`${front.origin}/?ask=/refuse`);
      await button(page).click();
      await said(page, "403 not for you");
      const answers = await page.evaluate(async (elsewhere) => {
        const failed = await fetch(`${elsewhere}/tickets/left`).catch((error) => error.name);
        const none = await fetch(`${elsewhere}/tickets/left`, { mode: "no-cors" }).then((r) => r.type);
        const wrong = await fetch("http://[").catch((error) => error.name);
        const stop = new AbortController();
        stop.abort();
        const stopped = await fetch("/", { signal: stop.signal }).catch((error) => error.name);
        const request = await fetch(new Request("/app.js", { method: "HEAD" })).then((r) => r.status);
        return {
          failed,
          none,
          wrong,
          stopped,
          request,
          name: fetch.name,
          isNative: /native code/.test(String(fetch)),
        };
      }, other.origin);
      assert.deepEqual(answers, {
        failed: "TypeError",
        none: "opaque",
        wrong: "TypeError",
        stopped: "AbortError",
        request: 200,
        name: "fetch",
        isNative: true,
      });
      assert.equal(await page.getByRole("dialog").count(), 0);
      assert.ok(page.url().startsWith(front.origin));
    } finally {
      await other.close();
    }
  });

  atSite(
    "an API at another host admits a visitor who returned through it",
    "script-api",
    async ({ visitor, page, room, front: api, stage }) => {
      const site = await Front.open(room, { options: `data-hosts="${new URL(api.origin).host}"` }); // of another origin
      stage.origins.push(site.origin);
      try {
        await room.amend({ targets: [`${api.origin}/.proofline/enter`] });
        const here = `${site.origin}/?ask=${encodeURIComponent(`${api.origin}/tickets/left`)}`;
        await page.goto(`${here}#cart`);
        await button(page).click();
        await page.waitForURL(`${room.url}?to=*`);
        assert.equal(
          new URL(page.url()).searchParams.get("to"),
          `${api.origin}/.proofline/enter?to=${encodeURIComponent(here)}`,
        );
        await through(visitor);
        await page.waitForURL(`${here}#cart`);
        await button(page).click();
        await said(page, "200 3 left");
      } finally {
        await site.close();
      }
    },
    { config: { signed_return: true }, hosts: ["localhost"] },
  );

  atSite("many refusals at once lead once", "script-once", async ({ page, room, front }) => {
    let led = 0;
    page.on("request", (r) => (led += r.isNavigationRequest() && r.url().startsWith(room.url) ? 1 : 0));
    await page.goto(`${front.origin}/`);
    await page.evaluate(() => [...Array(20)].forEach(() => void ask()));
    await page.waitForURL(`${room.url}?to=*`);
    await page.waitForLoadState();
    assert.equal(led, 1);
    assert.ok(
      front.asked.every((path) => path !== "/tickets/left"),
      "nothing came through",
    );
  });
});
