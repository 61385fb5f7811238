// Sites in the console: rules by the form and as JSON, tried before they are saved, with connectors
// that report, changed by two people at once, and without scripts.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, get } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe } from "node:test";

import { Organizer } from "../stage/organizer.mjs";
import { program } from "../stage/places.mjs";
import { inSeconds, Room, until } from "../stage/room.mjs";
import { scene } from "../stage/scene.mjs";
import { Server } from "../stage/server.mjs";

let server;
let room;
let kept; // the cookies of the owner, who is signed in
let token; // of connectors

before(async () => (server = await Server.start()));
after(() => server?.stop());

async function owner(stage, options) {
  stage.origins = [server.url];
  const organizer = await Organizer.at(stage, server, "owner@example.com", { ...options, storageState: kept });
  organizer.watch.allow(/^console: Failed to load resource: the server responded with a status of (400|409) /); // the input was wrong, or late
  return organizer;
}

/** A connector that reports. */
async function report(version, counts) {
  const body = {
    node: "AAAAAAAAAAAAAAAAAAAAAA",
    site: "shop",
    rules_version: version,
    kind: "proxy",
    version: "1.0",
    counts,
    rooms: [],
  };
  const answer = await fetch(`${server.url}/v1/connectors/report`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  assert.equal(answer.status, 200, await answer.text());
}

/** Starts a server that responds to everything; returns its port. */
async function listen(answer) {
  const made = createServer(answer);
  await new Promise((done) => made.listen(0, "127.0.0.1", done));
  return { port: made.address().port, close: () => new Promise((done) => made.close(done)) };
}

/** Returns the status and the redirect of a path of the site behind the proxy. */
const ask = (port, path) =>
  new Promise((done, fail) => {
    const headers = {
      Host: "shop.example.com",
      Accept: "text/html",
      "Sec-Fetch-Mode": "navigate",
      "Sec-Fetch-Dest": "document",
    };
    get({ host: "127.0.0.1", port, path, headers }, (answer) => {
      answer.resume();
      done([answer.statusCode, answer.headers.location ?? ""]);
    }).on("error", fail);
  });

describe("sites", { concurrency: 1 }, () => {
  scene("the first account, and a room", async (stage) => {
    stage.origins = [server.url];
    const first = await Organizer.at(stage, server, "owner@example.com");
    await first.setUp("Club Nord", "Owner");
    kept = await first.context.storageState();
    room = await Room.create(
      { slug: "sale", title: "Evening concert", opens: inSeconds(1), targets: ["https://shop.example.com/"] },
      server,
    );
  });

  scene("a site by the form, tried, and put right", async (stage) => {
    const first = await owner(stage);
    const { page } = first;
    await first.go("/sites");
    await first.inspect("sites-empty");
    await first.go("/rooms/sale");
    await page.getByRole("link", { name: "Put it in front of your site" }).click();
    await first.heading("New site");
    assert.equal(await page.getByLabel("Hosts, one per line").inputValue(), "shop.example.com");
    await page.getByLabel("Paths that never wait, one per line").fill("/tickets/paid");
    await page
      .getByLabel("Addresses of your site to try, one per line")
      .fill("shop.example.com/tickets/1\nhttps://shop.example.com/about");
    await first.press("Show what it does");
    await page.locator("#preview-found [data-broken]").waitFor();
    assert.equal(await page.locator("#e-paths").innerText(), "must name what waits, such as /tickets");
    assert.equal(await page.getByLabel("Paths, one per line").getAttribute("aria-invalid"), "true");
    await page.getByLabel("Paths, one per line").fill("/tickets");
    await first.press("Show what it does");
    await page.locator(".finding", { hasText: "shop.example.com/tickets/1" }).first().waitFor();
    assert.equal(await page.locator("#e-paths").count(), 0);
    assert.match(await page.locator(".finding").first().innerText(), /^waits for sale/);
    assert.match(await page.locator(".finding").last().innerText(), /no rule matches it/);
    assert.equal(await page.getByLabel("Paths, one per line").inputValue(), "/tickets");
    await page.locator("#preview").evaluate((one) => one.scrollIntoView());
    await first.view("site-tried");
    await page.locator(".finding summary").first().click();
    await first.inspect("sites-form-tried");
    assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "shop");
    await first.press("Add the site");
    await first.told("The site is created.");
    for (const name of ["Reverse proxy", "nginx", "Go", "Edge"]) {
      await page.getByRole("link", { name, exact: true }).click();
      await page.locator(`nav#kinds a[aria-current=page]`, { hasText: name }).waitFor();
      await first.inspect(`sites-install-${name.toLowerCase().replace(" ", "-")}`);
    }
    await first.go("/sites/shop");
    await first.lists(
      ["Paths below /tickets/paid: pass", "Paths below /tickets: wait in line for sale", "No connector has reported"],
      "the site",
    );
  });

  scene("a connector that reports, with a token of the page's link", async (stage) => {
    const first = await owner(stage);
    const { page } = first;
    await first.go("/sites/shop/install");
    await page.getByRole("link", { name: "Create a token" }).click();
    await page.getByRole("heading", { level: 1, name: "Tokens" }).waitFor();
    await first.confirm();
    assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "connector of shop");
    await first.press("Create the token");
    token = (await page.locator("#token").textContent()).trim();
    kept = await first.context.storageState(); // confirming the identity changes the session
    const signed = await fetch(`${server.url}/v1/sites/shop/rules`, { headers: { Authorization: `Bearer ${token}` } });
    assert.match(await signed.text(), /^proofline-rules\/v1\nshop\n1\n/);
    await report(1, { passed: 1234, queued: 56, bypassed: 7 });
    await first.go("/sites/shop");
    await first.lists(["connected", "version 1, current", "1,234 passed with a session"], "the connectors");
    await first.view("site");
    await page.locator(".counts summary").click();
    await first.inspect("sites-overview");
    const phone = await owner(stage, { size: "phone" });
    for (const path of [
      "/sites",
      "/sites/shop",
      "/sites/shop/rules",
      "/sites/shop/install",
      "/sites/shop/history",
      "/new-site",
    ]) {
      await phone.go(path);
      await phone.inspect(`sites${path.replaceAll("/", "-")}`);
    }
  });

  scene("the command of the page starts a connector, which is seen", async (stage) => {
    const first = await owner(stage);
    await first.go("/sites/shop/install?with=proxy");
    const shown = await first.page.locator("#run").textContent();
    const site = await listen((_, answer) => answer.end("the site"));
    const free = await listen(() => {});
    await free.close();
    const data = await mkdtemp(join(tmpdir(), "proofline-e2e-"));
    await writeFile(join(data, "connector-token"), `${token}\n`, { mode: 0o600 });
    const command = shown
      .replace("127.0.0.1:3000", `127.0.0.1:${site.port}`)
      .replace(":8081", `127.0.0.1:${free.port}`);
    const env = { ...process.env, PATH: `${dirname(program("proofline"))}:${process.env.PATH}` };
    const child = spawn("sh", ["-c", `exec ${command}`], { cwd: data, env, stdio: ["ignore", "ignore", "inherit"] });
    try {
      const there = () => ask(free.port, "/about").catch(() => undefined);
      assert.deepEqual(await until("the proxy answers", there), [200, ""]);
      const [status, to] = await ask(free.port, "/tickets/1");
      assert.ok(status >= 300 && status < 400 && to.startsWith(`${room.url}?to=`), `${status} ${to}`);
      await until("the connector is seen", async () => {
        await first.go("/sites/shop");
        return (await first.page.locator("#connectors ~ table tbody tr").count()) === 2;
      });
      await first.lists(["version 1, current"], "the connectors");
    } finally {
      const gone = new Promise((done) => child.once("exit", done));
      child.kill("SIGTERM");
      await gone;
      await site.close();
      await rm(data, { recursive: true, force: true });
    }
  });

  scene("JSON, its lines, and two people at once", async (stage) => {
    const first = await owner(stage);
    const { page } = first;
    await first.go("/sites/shop/rules");
    await page.getByRole("radio", { name: /^Safety net/ }).check();
    await first.press("Continue in JSON");
    const editor = page.getByLabel("The document");
    const good = await editor.inputValue();
    assert.match(good, /"mode": "safety-net"/);
    await editor.fill(good.replace('"queue sale"', '"queue fair"'));
    await first.press("Save the rules");
    await page.locator("[data-misplaced]").waitFor();
    await first.inspect("sites-json-wrong");
    await page.getByRole("link", { name: "Line 9" }).click();
    assert.match(
      await editor.evaluate((one) => one.value.slice(one.selectionStart, one.selectionEnd)),
      /^ {4}\{.*queue fair.*\}$/,
    );
    await editor.fill(good);

    const second = await first.another();
    await second.go("/sites/shop/rules");
    await second.page.getByLabel("Paths, one per line").fill("/tickets\n/members");
    await second.press("Save the rules");
    await second.told("The rules are saved.");
    await first.press("Save the rules");
    await first.heading("These rules were changed in the meantime");
    await first.inspect("sites-conflict");
    assert.match(await page.locator(".diff del").first().innerText(), /fail-open-after|\/members|url/);
    await first.press("Overwrite with mine");
    await first.told("The rules are saved.");
    await first.lists(
      ["wait in line for sale while its gate is shut", "safety net", "no connector has reported", "Gate and figures"],
      "the site",
    );
    await until("the connector is behind", async () => {
      await first.go("/sites/shop");
      return (await page.locator("main").innerText()).includes("behind");
    });
  });

  scene("history, put back, delete", async (stage) => {
    const first = await owner(stage);
    const { page } = first;
    await first.go("/sites/shop/history");
    await page.getByRole("link", { name: "Version 1" }).click();
    await first.inspect("sites-version");
    await first.decide("Restore these rules");
    await first.told("The rules are restored");
    await first.lists(["Rules, version 4", "wait in line for sale"], "the site");
    await page.getByLabel("Addresses of your site, one per line").fill("https://shop.example.com/tickets");
    await first.press("What happens there?");
    await page.locator(".finding", { hasText: "waits for sale" }).waitFor();
    assert.equal(new URL(page.url()).search, "?done=site-restored");
    await first.decide("Delete the site");
    await first.told("The site is deleted.");
  });

  scene("without JavaScript", async (stage) => {
    const plain = await owner(stage, { javaScriptEnabled: false });
    const { page } = plain;
    await plain.go("/new-site");
    await page.getByLabel("Name", { exact: true }).fill("plain");
    await page.getByLabel("Hosts, one per line").fill("shop.example.com");
    await page.getByLabel("They wait in").selectOption(room.url);
    await page.getByRole("radio", { name: /^Visitors of the whole site/ }).check();
    await page.getByLabel("Addresses of your site to try, one per line").fill("https://shop.example.com/x");
    await plain.press("Show what it does");
    await page.locator(".finding", { hasText: "waits for sale" }).waitFor();
    assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "plain");
    await plain.press("Add the site");
    await plain.told("The site is created.");
    await plain.go("/sites/plain/rules?as=json");
    await page.getByLabel("The document").fill("{");
    await plain.press("Save the rules");
    await page.locator("[data-misplaced]", { hasText: "Line 1" }).waitFor();
    await plain.go("/sites/plain");
    await page.getByLabel("Addresses of your site, one per line").fill("https://shop.example.com/y");
    await plain.press("What happens there?");
    await page.locator(".finding", { hasText: "waits for sale" }).waitFor();
    await plain.press("Delete the site");
    await plain.heading("Delete the site plain?");
    await plain.press("Delete the site");
    await plain.told("The site is deleted.");
  });
});
