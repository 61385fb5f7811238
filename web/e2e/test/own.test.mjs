// Accounts for the server's own issuer: an address that gets a code by mail, and a sign-in at an OpenID Connect
// provider. From the room's page and back with the same ticket; one place for each account.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";

import { MailServer } from "../stage/mail.mjs";
import { Provider } from "../stage/provider.mjs";
import { scene, scenes } from "../stage/scene.mjs";
import { Server } from "../stage/server.mjs";

let server, mail, provider, dir;

before(async () => {
  [mail, provider] = [await MailServer.open(), await Provider.open()];
  dir = await mkdtemp(join(tmpdir(), "proofline-own-"));
  const secret = join(dir, "secret");
  await writeFile(secret, provider.secret, { mode: 0o600 });
  const flags = [...provider.flags, "--issuer-oidc-secret", secret];
  server = await Server.start({ flags, env: { PROOFLINE_SMTP: mail.address } });
});

after(async () => {
  await server?.stop();
  mail?.close();
  provider?.close();
  await rm(dir, { recursive: true, force: true });
});

const room = (stage, slug, key) => {
  stage.origins = [server.url, provider.url];
  const config = {
    slug,
    windows: [{ length: "24h" }],
    methods: [{ name: "account", kind: "signed", key }],
    lanes: [{ name: "fans", weight: 1, needs: ["account"] }],
  };
  return stage.room(config, server);
};

/** Goes from the room's page to the issuer's, and returns the ticket that the room's page sends there. */
async function toIssuer(visitor, room, needed) {
  const { page } = visitor;
  await visitor.visit(room);
  await page.getByRole("heading", { name: needed }).waitFor();
  await page.getByRole("button", { name: /^Confirm with / }).click();
  const go = page.getByRole("button", { name: /^Continue to / });
  await go.waitFor();
  const ticket = await page.locator('form input[name="ticket"]').inputValue();
  await go.click();
  await page.getByRole("heading", { name: /^Confirm with / }).waitFor();
  return ticket;
}

/** Takes the last tap, and checks that the place is of the ticket. */
async function joins(visitor, ticket, { inspected = true } = {}) {
  const { page } = visitor;
  await page.getByRole("heading", { name: "One tap left: join the line" }).waitFor();
  if (inspected) await visitor.inspect("own-issued");
  await page.getByRole("button", { name: "Join the line" }).click();
  await visitor.is("waiting");
  const shown = await visitor.data();
  assert.equal(shown.ticket, ticket);
  assert.equal(shown.lane, "fans");
}

const arrivals = async (room) => (await room.transcript()).filter(({ kind }) => kind === "arrive");

async function confirmAddress({ page }, address) {
  await page.getByLabel("Your email address").fill(address);
  await page.getByRole("button", { name: "Send me a code" }).click();
  await page.getByLabel("The code from the mail").fill(await mail.code());
  await page.getByRole("button", { name: "Confirm" }).click();
}

async function signIn({ page }, name) {
  await page.getByRole("link", { name: /^Sign in at / }).click();
  await page.getByLabel("Your name").fill(name);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** Confirms again with an account that has a place: the room says so, and another account still gets one. */
async function isUsed(stage, room, needed, confirm, account) {
  const second = await stage.visitor();
  second.watch.expect(/the server responded with a status of 409/);
  await toIssuer(second, room, needed);
  await confirm(second, account);
  await second.page.getByRole("button", { name: "Join the line" }).click();
  await second.page.getByText("was used").first().waitFor();
}

scenes("own issuer", () => {
  for (const [name, key, needed, confirm] of [
    ["mail", "own-mail", "a confirmation by mail", confirmAddress],
    ["sign-in", "own-oidc", "your account at 127.0.0.1", signIn],
  ]) {
    scene(`${name}, on a phone and on a desktop`, async (stage) => {
      const here = await room(stage, name, key);
      for (const size of ["phone", "desktop"]) {
        const visitor = await stage.visitor({ size });
        const ticket = await toIssuer(visitor, here, needed);
        await visitor.inspect(`own-${name}`);
        await confirm(visitor, `${size}@example.org`);
        await joins(visitor, ticket);
      }
      await isUsed(stage, here, needed, confirm, "phone@example.org");
      const plain = await stage.visitor({ javaScriptEnabled: false });
      const ticket = await toIssuer(plain, here, needed);
      await confirm(plain, "plain@example.org");
      await joins(plain, ticket, { inspected: false }); // axe needs scripts
      assert.equal((await arrivals(here)).length, 3);
    });
  }
});
