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
import { MailServer } from "../stage/mail.mjs";
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
      answer.writeHead(200, headers).end(site.page(new URL(request.url, site.origin).searchParams));
    });
    await new Promise((done) => site.server.listen(0, "127.0.0.1", done));
    site.origin = `http://127.0.0.1:${site.server.address().port}`;
    return site;
  }

  page(query) {
    return `<!doctype html><html lang="en"><title>Room</title><link rel="icon" href="data:,"><h1>Room</h1>
      <form method="post" action="${this.issuer}/${query.get("offer") ?? "derby"}"><input type="hidden" name="ticket" value="${ticket}">
      <input type="hidden" name="lane" value="general"><input type="hidden" name="response" value="${query.get("response") ?? ""}">
      <button>Confirm with the club</button></form>`;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

/** Stands in for the siteverify of Cloudflare Turnstile. The stand-in of the widget makes responses "solved-NUMBER". */
class Siteverify {
  used = new Set();
  down = false;

  static async open() {
    const service = new Siteverify();
    service.server = createServer(async (request, answer) => {
      let body = "";
      for await (const part of request) body += part;
      const [secret, response] = ["secret", "response"].map((name) => new URLSearchParams(body).get(name));
      const good = secret === "the-secret" && response.startsWith("solved-") && !service.used.has(response);
      service.used.add(response);
      answer.writeHead(service.down ? 502 : 200, { "Content-Type": "application/json" });
      answer.end(
        JSON.stringify(
          good
            ? { success: true, hostname: "localhost", action: "human" }
            : { success: false, "error-codes": ["timeout-or-duplicate"] },
        ),
      );
    });
    await new Promise((done) => service.server.listen(0, "127.0.0.1", done));
    service.address = `http://127.0.0.1:${service.server.address().port}/siteverify`;
    return service;
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

let browser, room, foreign, siteverify, mail, child, dir, issuer, codes;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), "proofline-issuer-"));
  [room, foreign] = [await Site.open(), await Site.open()];
  [siteverify, mail] = [await Siteverify.open(), await MailServer.open()];
  const addr = `127.0.0.1:${await freePort()}`;
  issuer = room.issuer = foreign.issuer = `http://localhost:${addr.split(":")[1]}`; // passkeys need a name
  const config = join(dir, "issuer.yaml");
  await writeFile(
    config,
    `url: ${issuer}
name: Example Club
captcha:
  service: turnstile
  site_key: site-key
  secret: ${join(dir, "captcha-secret")}
  verify: ${siteverify.address}
offers:
- name: derby
  method: club
  kind: signed
  room: ${room.origin}/r/derby
  entry: ${"3f".repeat(32)}
  proof: list
  list: early
- name: human
  method: club
  kind: signed
  room: ${room.origin}/r/derby
  entry: ${"3f".repeat(32)}
  proof: captcha
- name: fans
  method: club
  kind: signed
  room: ${room.origin}/r/derby
  entry: ${"3f".repeat(32)}
  proof: mail
  passkeys: true
`,
  );
  await writeFile(join(dir, "captcha-secret"), "the-secret", { mode: 0o600 });
  const data = ["--data", join(dir, "data")];
  const out = join(dir, "codes.csv");
  await run(program("proofline"), ["issuer", "codes", "--list", "early", "--count", "4", "--out", out, ...data]);
  codes = (await readFile(out, "utf8")).trim().split("\n").slice(1);
  child = spawn(program("proofline"), ["issuer", "serve", "--config", config, "--addr", addr, ...data], {
    env: { ...process.env, PROOFLINE_SMTP: mail.address },
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
  siteverify.server.close();
  mail.close();
  await rm(dir, { recursive: true, force: true });
});

/** Opens a site's page in a new browser, and fails the test for what the browser complains about. */
async function visit(site, response, options = {}, offer = "derby") {
  const context = await browser.newContext({ viewport: { width: 320, height: 640 }, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => {
    if (message.type() === "error" && !/the server responded with a status of (40|503)/.test(message.text())) {
      complaints.push(message.text());
    }
  });
  await page.goto(`${site.origin}/r/derby?response=${response}&offer=${offer}`);
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
  await page.getByRole("heading", { name: "One tap left: join the line" }).waitFor();
  await page.getByRole("button", { name: "Join the line" }).click();
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

/**
 * What stands in for the widget of a CAPTCHA service: it is solved with a tap. Then it tries what a script of another
 * company should not do, and tells what came of it in the title.
 */
const widget = `
  const element = document.querySelector(".cf-turnstile");
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "I am a person";
  button.onclick = async () => {
    const input = document.createElement("input");
    Object.assign(input, { type: "hidden", name: "cf-turnstile-response", value: "solved-" + Math.random() });
    element.replaceChildren(input, "Solved");
    const tried = [];
    await fetch("/issued").catch(() => tried.push("fetch"));
    await new Promise((done) => {
      const script = document.createElement("script");
      script.onerror = () => done(tried.push("script"));
      script.onload = done;
      script.src = "https://elsewhere.example/script.js";
      document.head.append(script);
    });
    document.title = tried.join(" ");
  };
  element.append(button);`;

/** Opens the offer with a CAPTCHA, and returns the addresses of other hosts that the browser turns to from then on. */
async function visitCaptcha(options) {
  const opened = await visit(room, "fragment", options, "human");
  const others = [];
  await opened.context.route(/^https:/, (route) => {
    const url = route.request().url();
    others.push(url);
    if (url === "https://challenges.cloudflare.com/turnstile/v0/api.js") {
      return route.fulfill({ contentType: "text/javascript", body: widget });
    }
    return route.abort();
  });
  await confirm(opened.page);
  return { ...opened, others };
}

const load = (page) => page.getByRole("button", { name: "Load the check" }).click();

test("a CAPTCHA loads when the visitor has read who gets what, and reaches nothing else", async () => {
  const { page, context, others } = await visitCaptcha();
  await page.getByText("The check comes from challenges.cloudflare.com").waitFor();
  await accessible(page, "the issuer's page before a CAPTCHA");
  assert.deepEqual(others, []);
  await load(page);
  const solve = page.getByRole("button", { name: "I am a person" });
  await solve.waitFor();
  await accessible(page, "the issuer's page with a CAPTCHA");
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 320, `${width} pixels wide`);
  await page.getByRole("button", { name: "Continue" }).click(); // too early
  await page.getByRole("alert").filter({ hasText: "The check was not solved" }).waitFor();
  await solve.click();
  await page.waitForFunction(() => document.title.endsWith("script"));
  assert.equal(await page.title(), "fetch script");
  siteverify.down = true;
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("alert").filter({ hasText: "does not answer" }).waitFor();
  siteverify.down = false;
  await solve.click();
  await page.waitForFunction(() => document.title.endsWith("script"));
  await page.getByRole("button", { name: "Continue" }).click();
  await page.waitForURL(`${room.origin}/r/derby#*`);
  const values = new URLSearchParams(new URL(page.url()).hash.slice(1));
  assert.match(values.get("credential"), /^club [0-9a-f]{64} [0-9a-f]{128}$/);
  assert.deepEqual([...new Set(others)], ["https://challenges.cloudflare.com/turnstile/v0/api.js"]);
  await context.close();
});

test("beside a CAPTCHA, no form goes to another page of the server", async () => {
  const { page, context } = await visitCaptcha();
  await load(page);
  await page.getByRole("button", { name: "I am a person" }).waitFor();
  const blocked = await page.evaluate(() => {
    const form = document.createElement("form");
    Object.assign(form, { method: "post", action: "/derby" });
    document.body.append(form);
    return new Promise((done) => {
      document.addEventListener("securitypolicyviolation", (violation) => done(violation.effectiveDirective));
      form.submit();
    });
  });
  assert.equal(blocked, "form-action");
  await context.close();
});

test("a CAPTCHA says what it needs without scripts, and when its service is away", async () => {
  const { page, context } = await visitCaptcha({ javaScriptEnabled: false });
  await load(page);
  await page.getByRole("alert").filter({ hasText: "needs JavaScript" }).waitFor();
  await context.close();
  const away = await visit(room, "fragment", {}, "human");
  await away.context.route(/^https:/, (route) => route.abort());
  await confirm(away.page);
  await load(away.page);
  await away.page.getByText("your browser could not load it from challenges.cloudflare.com").waitFor();
  await away.context.close();
});

/** Takes the page of the offer with passkeys, and returns the nullifier with which the browser is back in the room. */
async function nullifier(page) {
  await page.waitForURL(`${room.origin}/r/derby*#*`);
  return new URLSearchParams(new URL(page.url()).hash.slice(1)).get("credential").split(" ")[1];
}

test("a passkey is a way back to an account that was proven by mail", async () => {
  const { page, context, complaints } = await visit(room, "fragment", {}, "fans");
  const device = await context.newCDPSession(page);
  await device.send("WebAuthn.enable");
  const { authenticatorId } = await device.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  await confirm(page);
  await page.getByText("Did you save a passkey here?").waitFor();
  await accessible(page, "the issuer's form with passkeys");
  await page.getByLabel("Your email address").fill("anna@example.org");
  await page.getByRole("button", { name: "Send me a code" }).click();
  await page.getByLabel("The code from the mail").fill(await mail.code());
  await page.getByRole("button", { name: "Confirm" }).click();
  await page.getByText("It gives you no second place").waitFor();
  await accessible(page, "the issuer's offer to save a passkey");
  await page.getByRole("button", { name: "Save a passkey" }).click();
  const proven = await nullifier(page);
  const { credentials } = await device.send("WebAuthn.getCredentials", { authenticatorId });
  assert.equal(credentials.length, 1);
  assert.equal(credentials[0].rpId, "localhost");

  const back = async () => {
    await page.goto(`${room.origin}/r/derby?response=fragment&offer=fans&again=${Math.random()}`);
    await confirm(page);
    await page.getByRole("button", { name: "Use a passkey" }).click();
    await page.getByRole("button", { name: "Continue with the passkey" }).click();
  };
  await back();
  assert.equal(await nullifier(page), proven);
  await device.send("WebAuthn.clearCredentials", { authenticatorId });
  await back();
  await page.getByRole("alert").filter({ hasText: "did not work on this device" }).waitFor();
  await accessible(page, "the issuer's page of a passkey that does not work");
  assert.deepEqual(complaints, []);
  await context.close();
});

test("without scripts the page of passkeys says that they need some", async () => {
  const { page, context } = await visit(room, "fragment", { javaScriptEnabled: false }, "fans");
  await confirm(page);
  await page.getByRole("button", { name: "Use a passkey" }).click();
  await page.getByRole("alert").filter({ hasText: "Passkeys need JavaScript" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Continue with the passkey" }).isVisible(), false);
  await context.close();
});
