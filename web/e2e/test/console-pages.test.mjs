// Every page of the console, empty and full, on a phone and on a desktop, in light and dark:
// accessible, within the screen's width, reachable by keyboard. Full pages have texts that would be
// scripts if a page treated them as markup.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, describe } from "node:test";

import { accessible } from "../stage/axe.mjs";
import { reachable } from "../stage/keyboard.mjs";
import { Organizer } from "../stage/organizer.mjs";
import { inSeconds, Room, until } from "../stage/room.mjs";
import { scene } from "../stage/scene.mjs";
import { Server } from "../stage/server.mjs";

const { pages } = JSON.parse(await readFile(new URL("../stage/console-pages.json", import.meta.url), "utf8"));
const pathsOf = (...kinds) =>
  Object.entries(pages)
    .filter(([, kind]) => kinds.includes(kind))
    .map(([path]) => path.replace("/console", ""));

/** A text that must stay a text: it looks like markup and like a formula, and has no space at which to break. */
const hostile = (n) => `=1+${n}"><img/src=x/onerror=alert(${n})><script>alert(${n})</script>`;

const texts = {
  organization: hostile(1),
  person: hostile(2),
  title: hostile(3),
  message: hostile(4),
  headline: hostile(5),
  intro: hostile(6),
  help: hostile(7),
  footer: hostile(8),
  token: hostile(9),
  webhook: hostile(10),
  draft: hostile(11),
  rule: hostile(12),
  header: hostile(13),
};

let server;
let kept; // the cookies of the owner, who is signed in

before(async () => (server = await Server.start()));
after(() => server?.stop());

/** A browser that is signed in as the owner. */
async function owner(stage, options) {
  stage.origins = [server.url];
  const organizer = await Organizer.at(stage, server, "owner@example.com", { ...options, storageState: kept });
  organizer.page.on("dialog", (dialog) => {
    if (dialog.type() !== "beforeunload") organizer.watch.problems.push(`dialog: ${dialog.message()}`);
    dialog.accept();
  });
  organizer.watch.allow(/^console: Blocked script execution in/); // the watch itself, in the preview's frame
  return organizer;
}

/** Checks a page, on all kinds of screens. */
async function look(organizer, path, what) {
  await organizer.go(path);
  await organizer.page.locator("main").waitFor();
  await organizer.inspect(`console-${what}`);
  assert.equal(await organizer.page.locator("img[src=x]").count(), 0, `${path}: a text became an image`);
  if (organizer.name === "desktop") await reachable(organizer.page, path);
}

/** Checks pages on a phone and on a desktop; reports the problems of each. */
async function everywhere(stage, list, kind, fill = (path) => path) {
  const wrong = [];
  const walk = async (size) => {
    const organizer = await owner(stage, { size });
    for (const path of list) {
      const what = `${kind}${path.replaceAll(/[/:]+/g, "-")}`;
      await look(organizer, fill(path), what).catch((failure) => wrong.push(`${size}, ${path}: ${failure.message}`));
    }
  };
  await Promise.all([walk("phone"), walk("desktop")]);
  assert.deepEqual(wrong, []);
}

describe("pages of the console", { concurrency: 1 }, () => {
  scene("before signing in", async (stage) => {
    stage.origins = [server.url];
    for (const size of ["phone", "desktop"]) {
      const stranger = await Organizer.at(stage, server, "owner@example.com", { size });
      for (const path of ["/sign-in", "/setup", "/invitation"])
        await look(stranger, path, `public${path.replaceAll("/", "-")}`);
      await stranger.page.goto(server.setup);
      await stranger.page.getByLabel("Name of your organization").waitFor();
      await look(stranger, "/invitation/accept", "public-accept");
    }
  });

  scene("the first account, with a second factor", async (stage) => {
    stage.origins = [server.url];
    const first = await Organizer.at(stage, server, "owner@example.com");
    await first.setUp(texts.organization, texts.person);
    await look(first, "/account/second-factor", "factor-off");
    await first.enrol(() => first.inspect("console-factor-pending"));
    await first.inspect("console-recovery-codes");
    await first.signOut();
    await first.go("/sign-in");
    await first.fill({ "E-mail address": first.email, Password: first.password });
    await first.press("Sign in");
    await first.heading("Second factor");
    await look(first, "/sign-in/code", "public-code");
    await first.signIn();
    kept = await first.context.storageState();
  });

  scene("empty", (stage) => everywhere(stage, pathsOf("plain", "empty"), "empty"));

  scene("full of texts that would like to be scripts", async (stage) => {
    const filler = await owner(stage);
    const ids = await fill(filler);
    const named = (path) =>
      path
        .replace(":slug", "hostile")
        .replace("drafts/:id", `drafts/${ids.draft}`)
        .replace("webhooks/:id", `webhooks/${ids.webhook}`)
        .replace(":delivery", ids.delivery)
        .replace(":site", "hostile")
        .replace(":version", "1");
    await everywhere(stage, pathsOf("plain", "empty", "draft", "webhook", "delivery", "site", "room"), "full", named);
    await literal(filler, named);
  });

  scene("a card says what trying its room out says, on a phone", async (stage) => {
    const organizer = await owner(stage, { size: "phone" });
    const { page } = organizer;
    await organizer.go("/rooms/new");
    const card = page.locator(".preset", { hasText: "Windows of a minute" });
    const promised = (await card.locator("p", { hasText: "Bots:" }).innerText()).replace(/^Bots:\s*/, "");
    await card.getByRole("link").click();
    await page.locator("#trial > summary").click();
    await organizer.press("Try it out");
    const verdict = page.locator("[data-trial] .verdict");
    await verdict.waitFor();
    assert.equal(await verdict.innerText(), promised);
    await organizer.inspect("console-trial");
  });

  scene("visitors see texts as they are", async (stage) => {
    stage.origins = [server.url];
    const room = await Room.at(server, "hostile");
    for (const path of ["", "/check"]) {
      const visitor = await stage.visitor({ size: "phone" });
      visitor.page.on("dialog", (dialog) => visitor.watch.problems.push(`dialog: ${dialog.message()}`));
      await visitor.join(room);
      await visitor.page.goto(room.url + path);
      const said = await visitor.page.locator("body").innerText();
      for (const name of path ? ["title"] : ["title", "message", "headline", "help", "footer"])
        assert.ok(said.includes(texts[name]), `${path}: ${name}`);
      assert.equal(await visitor.page.locator("img[src=x]").count(), 0);
      await accessible(visitor.page, `hostile texts at ${path}`);
      await visitor.fits(`hostile texts at ${path}`);
    }
  });

  scene("figures to take home say texts as they are", exported);

  scene("without JavaScript: sign in, publish, pause", async (stage) => {
    stage.origins = [server.url];
    const plain = await owner(stage, { javaScriptEnabled: false });
    const { page } = plain;
    await plain.go("/rooms/new?preset=minutes");
    await plain.fill({ Title: "Plain", "Address, last part": "plain" });
    await plain.press("Save draft");
    await plain.told("The draft is saved.");
    await plain.press("Publish");
    await plain.heading("Publish this room?");
    await plain.press("Publish");
    await plain.told("The room is published");
    await plain.press("Pause");
    await plain.heading("Pause calls?");
    await plain.press("Pause");
    await plain.told("Calls are paused.");
    await page.locator(".who summary").click();
    await plain.press("Sign out");
    await plain.told("You are signed out.");
  });
});

/** Creates objects of every kind with such texts; returns their names. */
async function fill(filler) {
  const { page } = filler;
  const made = {};
  const room = await Room.create(
    { slug: "hostile", title: texts.title, opens: inSeconds(1), windows: [{ length: "1h" }] },
    server,
  );
  await room.open();
  await room.say(texts.message);
  const rules = [
    { name: texts.rule, when: { header: { x: { equals: texts.header } } }, action: "bypass" },
    { name: "rest", action: "queue hostile" },
  ];
  await server.ask("POST", "/v1/sites", {
    name: "hostile",
    rules: { version: 1, hosts: ["shop.example.com"], rooms: { hostile: { url: room.url } }, rules },
  });
  await filler.go("/rooms/hostile/brand");
  for (const name of ["headline", "intro", "help", "footer"])
    await page.locator(`[id="f-text.en.${name}"]`).fill(texts[name]);
  await filler.press("Save");
  await filler.told("The brand is saved.");
  await filler.go("/rooms/new?preset=minutes");
  await filler.fill({ Title: texts.draft, "Address, last part": "later" });
  await filler.press("Save draft");
  await filler.told("The draft is saved.");
  made.draft = idOf(page);
  await filler.go("/tokens");
  await filler.confirm();
  await filler.fill({ Name: texts.token });
  await page.getByRole("checkbox", { name: /^read/ }).check();
  await filler.press("Create the token");
  await filler.heading(`Token ${texts.token}`);
  await filler.inspect("console-token-made");
  await filler.invite("somebody@example.com", "viewer");
  await filler.inspect("console-invited");
  await filler.go("/webhooks/new");
  await page.getByLabel("URL", { exact: true }).fill("https://hooks.example.com/proofline");
  await page.getByLabel(/^Description/).fill(texts.webhook);
  await filler.press("Add the webhook");
  await filler.heading("Webhook added");
  await filler.inspect("console-webhook-added");
  await page.getByRole("link", { name: "Done" }).click();
  made.webhook = idOf(page);
  await filler.press("Send a test");
  await filler.told("A test is on its way.");
  await filler.go("/webhooks/deliveries");
  await page.locator('tbody a[href*="/deliveries/"]').first().click();
  made.delivery = idOf(page);
  kept = await filler.context.storageState(); // confirming the identity changes the session
  return made;
}

const idOf = (page) => new URL(page.url()).pathname.split("/").at(-1);

/** Checks that pages show texts as they were typed. */
async function literal(filler, named) {
  const shown = {
    "/rooms": ["title", "draft", "organization", "person"],
    "/drafts/:id": ["draft"],
    "/tokens": ["token", "person"],
    "/organization": ["organization", "person"],
    "/sites/:site": ["rule", "header"],
    "/webhooks": ["webhook"],
    "/webhooks/:id": ["webhook"],
    "/activity": ["title"],
  };
  for (const [path, names] of Object.entries(shown)) {
    await filler.go(named(path));
    const said = await filler.page.locator("body").innerText();
    for (const name of names) assert.ok(said.includes(texts[name]), `${path} does not say ${name}`);
  }
  await filler.go("/account");
  assert.equal(await filler.page.getByLabel("Your name").inputValue(), texts.person);
  for (const tab of ["", "/settings", "/brand", "/preview", "/rehearsal", "/history"]) {
    await filler.go(`/rooms/hostile${tab}`);
    assert.ok((await filler.page.locator("h1").innerText()).includes(texts.title), tab);
  }
}

/** Checks that downloads have texts as texts: no markup, and nothing that a spreadsheet treats as a formula. */
async function exported(stage) {
  const { request } = (await owner(stage)).context;
  const get = async (path) => {
    const answer = await request.get(`${server.url}/console/rooms/hostile/${path}`);
    assert.equal(answer.headers()["x-content-type-options"], "nosniff");
    return { type: answer.headers()["content-type"], text: await answer.text() };
  };
  const json = await get("history.json");
  assert.match(json.type, /^application\/json/);
  assert.equal(JSON.parse(json.text).title, texts.title);
  await server.ask("POST", "/v1/rooms/hostile/end");
  const csv = await until("the summary is made", async () => {
    const table = await get("history.csv?table=summary");
    return table.text.startsWith("figure,value") && table;
  });
  assert.match(csv.type, /^text\/csv/);
  const cell = `"'${texts.title.replaceAll('"', '""')}"`;
  assert.ok(csv.text.includes(`\r\ntitle,${cell}\r\n`), csv.text);
}
