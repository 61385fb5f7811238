// An organizer's way from the link of the first start to the auditor's report, with a sale of two
// thousand visitors in between.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import { accessible } from "../stage/axe.mjs";
import { Crowd } from "../stage/crowd.mjs";
import { Organizer } from "../stage/organizer.mjs";
import { program } from "../stage/places.mjs";
import { Room, until } from "../stage/room.mjs";
import { scene } from "../stage/scene.mjs";
import { Server } from "../stage/server.mjs";

const run = promisify(execFile);

const zone = "Europe/Vienna"; // from all browsers

/** A time as people type it into a field. */
const typed = (time) => {
  const form = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "medium" });
  return form.format(time).replace(" ", "T").replace(/:00$/, ""); // as browsers write whole minutes
};

const clock = (time) =>
  new Intl.DateTimeFormat("sv-SE", { timeZone: zone, timeStyle: "medium" }).format(time).replace(/:00$/, "");

/** A time a number of seconds from now, at a whole second. */
const inSeconds = (seconds) => Math.ceil(Date.now() / 1000 + seconds) * 1000;

/** The first run: an owner with a second factor, who signs out and in again. */
async function firstRun(owner) {
  await owner.setUp("Concert hall", "Box office");
  const codes = await owner.enrol();
  assert.equal(codes.length, 10);
  assert.equal(new Set(codes).size, 10);
  await owner.page.getByRole("link", { name: "I have saved them" }).click();
  await owner.signOut();
  await owner.signIn();
  await owner.signOut();
  await owner.signIn(() => codes[0]);
}

/** An operator and a viewer join with their links. */
async function colleagues(stage, owner) {
  const [operator, viewer] = await Promise.all(
    ["operator", "viewer"].map((role) =>
      Organizer.at(stage, owner.server, `${role}@example.com`, { size: role === "viewer" ? "phone" : "desktop" }),
    ),
  );
  const links = [await owner.invite(operator.email, "operator"), await owner.invite(viewer.email, "viewer")];
  await Promise.all([operator.join(links[0], "Doors"), viewer.join(links[1], "Press office")]);
  await owner.go("/organization");
  await owner.lists(["operator@example.com", "viewer@example.com"], "members");
  return [operator, viewer];
}

/** A room from a preset: typed, dragged, corrected, saved, and published. */
async function publish(owner) {
  const { page } = owner;
  await owner.go("/rooms");
  await page.getByRole("link", { name: "Create your first room" }).click();
  await owner.view("presets");
  await page.getByRole("link", { name: /^Start with this ?: Draw until the start, then by the minute$/ }).click();
  await owner.fill({ Title: "Evening concert" });
  assert.equal(await page.getByLabel("Address, last part", { exact: true }).inputValue(), "evening-concert");
  await timeline(owner);
  await startFollowed(owner);
  await owner.fill({ "People per minute": "many", "Time to go in": "45 s", "Time in the shop": "2 min" });
  await owner.press("Save draft");
  await page.locator('[id="e-outflow.per_minute"]').waitFor();
  assert.equal(await page.getByLabel("People per minute").getAttribute("aria-invalid"), "true");
  await accessible(page, "the editor with an error");
  await owner.fill({ "People per minute": "600" });
  await owner.press("Save draft");
  await owner.told("The draft is saved.");
  const [opens, starts] = [inSeconds(36), inSeconds(96)];
  await schedule(owner, opens, starts);
  await owner.decide("Publish");
  await owner.told("The room is published");
  return starts;
}

/** The timeline by mouse and by keyboard; what it means changes with it. */
async function timeline(owner) {
  const { page } = owner;
  const meaning = page.locator("[data-outline]");
  const handle = page.getByRole("slider", { name: "Opens" });
  const opens = page.getByLabel("Opens", { exact: true }).and(page.locator("input"));
  const first = await opens.inputValue();
  await handle.evaluate((one) => one.scrollIntoView({ block: "center" }));
  const box = await handle.boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + 80, y, { steps: 4 });
  await page.mouse.up();
  const dragged = await opens.inputValue();
  assert.ok(dragged > first, `dragged from ${first} to ${dragged}`);
  await handle.focus();
  await page.keyboard.press("ArrowUp"); // a minute
  await page.keyboard.press("ArrowRight"); // a second
  const moved = await opens.inputValue();
  const span = Date.parse(`${moved}Z`) - Date.parse(`${dragged}Z`);
  assert.equal(span, 61_000, `moved from ${dragged} to ${moved}`);
  await until("the sentences follow", async () =>
    (await meaning.innerText()).includes(`Visitors can join from ${moved.slice(11).replace(/^(..:..):00$/, "$1")} on.`),
  );
}

/** A room that opens when it is published: its windows change at the typed start. */
async function startFollowed({ page }) {
  const field = (label) => page.getByLabel(label, { exact: true }).and(page.locator("input"));
  await field("Opens").fill("");
  const moved = typed(Date.parse(`${await field("Starts").inputValue()}Z`) + 3_600_000);
  await field("Starts").fill(moved);
  assert.equal(Date.parse(await field("From").inputValue()), Date.parse(moved));
}

/** Types the times of the sale. */
async function schedule(owner, opens, starts) {
  const { page } = owner;
  const field = (label) => page.getByLabel(label, { exact: true }).and(page.locator("input"));
  for (const label of ["Opens", "Notice of changed windows", "From"]) await owner.unfold(field(label));
  await field("Opens").fill(typed(opens));
  await field("Starts").fill(typed(starts));
  await field("Notice of changed windows").fill("10 s");
  await field("From").fill(typed(starts));
  await field("Length of each window").last().fill("10 s");
  await field("Length of each window").first().fill("1 min");
  const sentences = page.locator("[data-outline]");
  await until("what the windows mean", async () =>
    (await sentences.innerText()).includes(`Visitors are called from ${clock(starts)} on.`),
  );
  const said = await sentences.innerText();
  assert.ok(said.includes(`Visitors can join from ${clock(opens)} on.`), said);
  assert.ok(said.includes("the same chance"), said);
  await page.locator("#windows").evaluate((one) => one.scrollIntoView());
  await owner.view("windows");
}

/** The organizer's own colours and texts, in two languages. */
async function brand(stage, owner, room) {
  const { page } = owner;
  owner.watch.allow(/^console: Blocked script execution in/); // the watch itself, in the preview's frame
  await owner.go(`/rooms/${room.slug}/brand`);
  await page.locator("#f-color").fill("#7a1fa2");
  await page.locator('[id="f-text.en.headline"]').fill("Doors open at seven");
  await page
    .locator("details.texts", { has: page.locator('[id="f-text.de.headline"]') })
    .locator("summary")
    .click();
  await page.locator('[id="f-text.de.headline"]').fill("Einlass ab sieben");
  await page.frameLocator(".device iframe:not(.coming)").getByText("Doors open at seven").waitFor();
  await page.locator("#f-color").evaluate((one) => one.scrollIntoView({ block: "center" }));
  await owner.view("brand");
  await owner.press("Save");
  await owner.told("The brand is saved.");
  for (const [locale, headline] of [
    ["en-GB", "Doors open at seven"],
    ["de-AT", "Einlass ab sieben"],
  ]) {
    const visitor = await stage.visitor({ locale, size: "phone" });
    await visitor.visit(room);
    await visitor.page.getByText(headline).waitFor();
    const color = await visitor.page.evaluate(() =>
      getComputedStyle(document.documentElement).getPropertyValue("--brand"),
    );
    if (color) assert.equal(color.trim(), "#7a1fa2");
  }
}

/** A rehearsal with synthetic visitors, which is stopped once it has begun. */
async function rehearse(operator, room) {
  const { page } = operator;
  await operator.go(`/rooms/${room.slug}/rehearsal`);
  await operator.fill({
    "Synthetic visitors": "300",
    "Seconds before the start, at most": "5",
    "Seconds of a window, at most": "2",
  });
  await operator.press("Start the rehearsal");
  await operator.told("The rehearsal begins in a few seconds.");
  const joined = page.locator("[data-figures] div", { hasText: "Joined" }).locator("dd");
  await until("some have joined", async () => Number((await joined.innerText()).replaceAll(/\D/g, "")) > 20);
  await operator.view("rehearsal");
  await operator.press("Stop it");
  await operator.told("The rehearsal is stopped.");
  await page.getByText("over", { exact: true }).waitFor();
}

/**
 * Before the start: two thousand visitors join, one of them is revoked, a message is shown, and windows become
 * longer.
 */
async function gather(stage, operator, room, crowd) {
  const watching = await operator.another();
  await watching.go(`/rooms/${room.slug}`);
  const fan = await stage.visitor({ size: "phone" });
  const bot = await stage.visitor();
  await until("it is open", async () => (await room.state()).phase !== "upcoming");
  await Promise.all([crowd.join(1500), fan.join(room), bot.join(room)]);
  await until("the dashboard counts", async () => (await watching.figures()).arrivals === 1502);
  await operator.go(`/rooms/${room.slug}`);
  await operator.page.locator('[id="f-message[0].text"]').fill("Doors open at seven.\nBring your ID.");
  await operator.decide("Show the message");
  await operator.told("The message is on its way");
  await fan.page.locator(".message", { hasText: "Bring your ID." }).waitFor();
  await operator.go(`/rooms/${room.slug}/ticket`);
  await operator.fill({ Ticket: await bot.ticket() });
  await operator.press("Look it up");
  await operator.page.getByRole("link", { name: "Revoke the place" }).click();
  await operator.page.getByLabel("Reason (public)").selectOption({ label: "a bot" });
  await operator.decide("Revoke the place");
  await operator.told("The place is revoked.");
  await bot.page.reload();
  await bot.is("revoked");
  await until("windows to come are longer", () => lengthen(operator, room));
  return [watching, fan];
}

/** Makes windows that have not opened longer; returns false if one of them has opened meanwhile. */
async function lengthen(operator, room) {
  const { page } = operator;
  operator.watch.allow(/status of 400/);
  await operator.go(`/rooms/${room.slug}/settings`);
  await page.getByLabel("Length of each window", { exact: true }).last().fill("15 s");
  await operator.press("Save changes");
  await page.locator("dialog[open], .wrong").first().waitFor();
  if (!(await page.getByRole("dialog").isVisible())) return false;
  await operator.press("Save changes", page.getByRole("dialog"));
  await page.locator(".notice[role=status], .wrong").first().waitFor();
  return page.getByText("The changes are saved.").isVisible();
}

/**
 * The sale: made faster, frozen while a visitor is called, resumed, paused while more visitors join, resumed, and
 * ended.
 */
async function steer(operator, viewer, room, crowd, [watching, fan]) {
  const { page } = operator;
  const called = async () => (await room.state()).lanes.general.called;
  await operator.go(`/rooms/${room.slug}`);
  await until("people are called", async () => (await called()) > 0);
  await operator.fill({ "People per minute": "3000" });
  await operator.decide("Change the outflow");
  await operator.told("The outflow is changed.");
  await watching.view("dashboard");
  await fan.is("called");
  await operator.decide("Freeze claims");
  await operator.told("Claims are frozen.");
  await fan.page.locator('main[data-claims-frozen] [data-show="claims-frozen"]').waitFor();
  await operator.decide("Resume");
  await operator.told("The line continues.");
  await fan.page.locator("main#line:not([data-claims-frozen])").waitFor();
  await fan.main();
  await fan.is("admitted");
  await operator.decide("Pause");
  await operator.told("Calls are paused.");
  await until("the room's state says so", async () => (await room.state()).paused);
  const paused = await called();
  await crowd.join(500);
  await until("the dashboard says so", async () => (await watching.figures()).phase === "paused");
  await page.getByRole("heading", { name: "More controls" }).evaluate((one) => one.scrollIntoView());
  await operator.view("controls");
  await viewing(viewer, room);
  assert.equal(await called(), paused, "no visitor is called while the room is paused");
  await operator.decide("Resume");
  await operator.told("The line continues.");
  await until("all were called", async () => (await called()) >= 2000);
  await until("a no-show has lost the place", async () => (await room.state()).lanes.general.waiting === 0, 90_000);
  await page.getByText("Live, updated every second.").waitFor();
  await crowd.stop();
  await operator.fill({ [`Enter ${room.slug} to end the room permanently`]: room.slug });
  await operator.decide("End the room");
  await operator.told("The room has ended.");
  return until("the dashboard says so", async () => {
    const figures = await watching.figures();
    return figures.phase === "ended" && figures;
  });
}

/** A viewer sees everything, and has no buttons. */
async function viewing(viewer, room) {
  await viewer.go(`/rooms/${room.slug}`);
  await viewer.page.getByText("Live, updated every second.").waitFor();
  assert.ok((await viewer.figures()).arrivals >= 1502);
  assert.equal(await viewer.page.locator("main form[method=post]").count(), 0, "a viewer has no controls");
  await viewer.fits("the dashboard of a viewer");
}

/** Counts what happened to the visitors in a transcript. */
async function counted(room) {
  const entries = await room.transcript();
  const reasons = {};
  const kinds = {};
  for (const { kind, fields } of entries) {
    kinds[kind] = (kinds[kind] ?? 0) + 1;
    if (kind === "skip") reasons[fields[2]] = (reasons[fields[2]] ?? 0) + 1;
  }
  return {
    entries: entries.length,
    arrivals: kinds.arrive,
    admitted: kinds.admit,
    no_shows: reasons["no-show"],
    left: reasons.left,
    revoked: reasons["revoked-bot"],
    changes: kinds.amend,
  };
}

/** The downloaded figures are those of the transcript and of the dashboard. */
async function takeHome(operator, room, last) {
  const truth = await counted(room);
  const { page } = operator;
  const get = (name) =>
    page.evaluate(async (name) => (await fetch(name)).text(), `/console/rooms/${room.slug}/${name}`);
  await operator.go(`/rooms/${room.slug}/history`);
  const { summary } = JSON.parse(await get("history.json"));
  const table = Object.fromEntries((await get("history.csv?table=summary")).split("\r\n").map((row) => row.split(",")));
  const windows = (await get("history.csv?table=windows"))
    .trim()
    .split("\r\n")
    .slice(1)
    .map((row) => row.split(","));
  for (const [name, n] of Object.entries(truth)) {
    assert.equal(summary[name], n, `JSON: ${name}`);
    assert.equal(Number(table[name]), n, `CSV: ${name}`);
  }
  for (const name of ["arrivals", "admitted", "no_shows", "left", "revoked"])
    assert.equal(last[name], truth[name], `dashboard: ${name}`);
  assert.equal(
    windows.reduce((sum, row) => sum + Number(row[3]), 0),
    truth.arrivals,
    "arrivals of all windows",
  );
  assert.equal(
    windows.reduce((sum, row) => sum + Number(row[4]), 0),
    truth.admitted,
    "admissions of all windows",
  );
  await page.reload();
  await page.getByRole("heading", { name: "Summary" }).waitFor();
  await operator.view("history");
  return truth;
}

/** The activity log names who did what. */
async function log(owner, room) {
  await owner.go(`/activity?object=${room.slug}`);
  const rows = await owner.page
    .locator("tbody tr")
    .evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.innerText)));
  const deeds = rows.map(([, who, what, details]) => `${who} | ${what} | ${details}`.replaceAll("\n", " "));
  const done = (who, what) =>
    assert.ok(
      deeds.some((deed) => deed.includes(who) && what.test(deed)),
      `no ${what} by ${who} in\n${deeds.join("\n")}`,
    );
  await owner.view("log");
  done("owner@example.com", /published the room/);
  for (const what of [
    /paused calls/,
    /froze claims/,
    /resumed/,
    /ended the room/,
    /revoked a place.*revoked-bot/,
    /per minute: 600 to 3000/,
    /message/,
    /windows/,
  ])
    done("operator@example.com", what);
}

/** An independent audit confirms every action, and the same counts. */
async function audited(stage, room, truth) {
  const folder = await mkdtemp(join(tmpdir(), "proofline-audit-"));
  try {
    const file = join(folder, "report.html");
    const { stdout } = await run(program("proofline-verify"), [
      "audit",
      room.url,
      "--no-keep",
      "--json",
      "--html",
      file,
    ]);
    const report = JSON.parse(stdout);
    assert.ok(report.ok);
    assert.deepEqual(
      [report.entries, report.arrivals, report.admissions],
      [truth.entries, truth.arrivals, truth.admitted],
    );
    const check = (id) => report.checks.find((one) => one.id === id);
    assert.match(check("amend").detail, new RegExp(`^${truth.changes} entries`));
    assert.match(check("end").detail, /^1 entr/);
    const context = await stage.browser.newContext();
    const page = await context.newPage();
    await page.setContent(await readFile(file, "utf8"));
    const text = await page.locator("body").innerText();
    await context.close();
    for (const act of [
      /called faster: 3,000 a minute instead of 600/,
      /1 pause, 1 freeze of claims, 2 resumptions/,
      /called visitors could not go in/,
      /Calls continued/,
      /The message to visitors changed/,
      /arrivals of each 15 s were drawn together/,
      /revoked-bot: [^\n]*\s1\b/,
      /ended/i,
    ])
      assert.match(text, act);
    for (const [what, n] of [
      ["no-show", truth.no_shows],
      ["left", truth.left],
    ])
      assert.match(text, new RegExp(`${what}: [^\\n]*\\s${n}\\b`));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

scene("a sale, from the first start to the auditor's report", async (stage, t) => {
  const server = await Server.start();
  t.after(() => server.stop());
  stage.origins = [server.url];
  const began = Date.now();
  const step = async (name, act) => {
    const result = await act();
    t.diagnostic(`${Math.round((Date.now() - began) / 1000)} s: ${name}`);
    return result;
  };
  const owner = await Organizer.at(stage, server, "owner@example.com");
  await step("first run", () => firstRun(owner));
  const [operator, viewer] = await step("colleagues", () => colleagues(stage, owner));
  await step("a room", () => publish(owner));
  const room = await Room.at(server, "evening-concert");
  stage.rooms.push(room);
  await step("brand", () => brand(stage, owner, room));
  await step("rehearsal", () => rehearse(operator, room));
  const crowd = new Crowd(room);
  crowd.play();
  const watchers = await step("before the start", () => gather(stage, operator, room, crowd));
  const last = await step("the sale", () => steer(operator, viewer, room, crowd, watchers));
  const truth = await step("the figures to take home", () => takeHome(operator, room, last));
  await step("the log", () => log(owner, room));
  await step("the audit", () => audited(stage, room, truth));
});
