// An issuer's pages in a browser: from a room's page to the issuer and back, with and without scripts.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

import { accessible } from "../stage/axe.mjs";
import { launch } from "../stage/launch.mjs";
import { program } from "../stage/places.mjs";

const run = promisify(execFile);
const ticket = "cda3f665-387e-8031-a3d9-8534adbd7fa3";

/** A site with a form to the issuer, as a room's page has it. It keeps what is sent to it. */
class Site {
  received = [];

  static async open() {
    const site = new Site();
    site.server = createServer(async (request, answer) => {
      let body = "";
      for await (const part of request) body += part;
      if (request.method === "POST") {
        const { origin, cookie } = request.headers;
        site.received.push({ path: request.url, origin, cookie, form: new URLSearchParams(body) });
      }
      const headers = { "Content-Type": "text/html", "Referrer-Policy": "strict-origin" };
      answer.writeHead(200, headers).end(site.page(new URL(request.url, site.origin).searchParams.get("response")));
    });
    await new Promise((done) => site.server.listen(0, "127.0.0.1", done));
    site.origin = `http://127.0.0.1:${site.server.address().port}`;
    return site;
  }

  page(response) {
    return `<!doctype html><html lang="en"><title>Room</title><link rel="icon" href="data:,"><h1>Room</h1>
      <form method="post" action="${this.issuer}/derby"><input type="hidden" name="ticket" value="${ticket}">
      <input type="hidden" name="lane" value="general"><input type="hidden" name="response" value="${response ?? ""}">
      <button>Confirm with the club</button></form>`;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

/** A port that nothing listens on. */
async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

let browser, room, foreign, child, dir, issuer, codes;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), "proofline-issuer-"));
  [room, foreign] = [await Site.open(), await Site.open()];
  const addr = `127.0.0.1:${await freePort()}`;
  issuer = room.issuer = foreign.issuer = `http://${addr}`;
  const config = join(dir, "issuer.yaml");
  await writeFile(
    config,
    `url: ${issuer}
name: Example Club
offers:
- name: derby
  method: club
  kind: signed
  room: ${room.origin}/r/derby
  entry: ${"3f".repeat(32)}
  proof: list
  list: early
`,
  );
  const data = ["--data", join(dir, "data")];
  const out = join(dir, "codes.csv");
  await run(program("proofline"), ["issuer", "codes", "--list", "early", "--count", "4", "--out", out, ...data]);
  codes = (await readFile(out, "utf8")).trim().split("\n").slice(1);
  child = spawn(program("proofline"), ["issuer", "serve", "--config", config, "--addr", addr, ...data], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  await new Promise((done, fail) => {
    child.once("exit", (code) => fail(new Error(`proofline issuer exits with ${code}`)));
    createInterface({ input: child.stdout }).on("line", (line) => line.startsWith("listening on ") && done());
  });
  browser = await chromium.launch(launch);
});

after(async () => {
  await browser?.close();
  child?.kill("SIGTERM");
  room.close();
  foreign.close();
  await rm(dir, { recursive: true, force: true });
});

/** Opens a site's page in a new browser, and fails the test for what the browser complains about. */
async function visit(site, response, options = {}) {
  const context = await browser.newContext({ viewport: { width: 320, height: 640 }, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().includes("the server responded with a status of 40")) {
      complaints.push(message.text());
    }
  });
  await page.goto(`${site.origin}/r/derby?response=${response}`);
  return { page, context, complaints };
}

const confirm = (page) => page.getByRole("button", { name: "Confirm with the club" }).click();
const answer = async (page, code) => {
  await page.getByLabel("Your code", { exact: true }).fill(code);
  await page.getByRole("button", { name: "Confirm" }).click();
};

test("without scripts, back by a form", async () => {
  const { page, context, complaints } = await visit(room, "form", { javaScriptEnabled: false });
  await confirm(page);
  await page.getByRole("heading", { name: "Confirm with Example Club" }).waitFor();
  await answer(page, "0000");
  await page.getByRole("alert").filter({ hasText: "not on the list" }).waitFor();
  await answer(page, codes[0].toLowerCase());
  await page.getByRole("heading", { name: "You are confirmed" }).waitFor();
  await page.getByRole("button", { name: "Return to the room" }).click();
  await page.waitForURL(`${room.origin}/r/derby/credential`);
  const [{ path, origin, form }] = room.received;
  assert.equal(path, "/r/derby/credential");
  assert.equal(origin, issuer);
  assert.equal(form.get("ticket"), ticket);
  assert.match(
    `${form.get("method")} ${form.get("nullifier")} ${form.get("evidence")}`,
    /^club [0-9a-f]{64} [0-9a-f]{128}$/,
  );
  assert.deepEqual(complaints, []);
  await context.close();
});

test("with scripts, back in the fragment, which no server sees", async () => {
  const { page, context, complaints } = await visit(room, "fragment");
  await confirm(page);
  await accessible(page, "the issuer's form");
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 320, `${width} pixels wide`);
  await answer(page, codes[1]);
  await page.waitForURL(`${room.origin}/r/derby#*`);
  const values = new URLSearchParams(new URL(page.url()).hash.slice(1));
  assert.match(values.get("credential"), /^club [0-9a-f]{64} [0-9a-f]{128}$/);
  assert.equal(values.get("ticket"), ticket);
  assert.deepEqual(complaints, []);
  await context.close();
});

test("another site cannot send visitors in", async () => {
  const { page, context } = await visit(foreign, "form");
  await confirm(page);
  await page.getByRole("alert").filter({ hasText: "opened from a site that it does not belong to" }).waitFor();
  await accessible(page, "the issuer's error");
  await context.close();
});

test("a page of an issuer cannot be framed", async () => {
  const { page, context } = await visit(room, "form");
  await page.evaluate((address) => {
    const frame = document.createElement("iframe");
    frame.src = address;
    frame.title = "issuer";
    document.body.append(frame);
    return new Promise((done) => {
      frame.onload = done;
    });
  }, `${issuer}/derby`);
  const inside = page.frames().find((frame) => frame !== page.mainFrame());
  assert.ok(!inside.url().startsWith(issuer), `the frame shows ${inside.url()}`);
  await context.close();
});
