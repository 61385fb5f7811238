// The demo's shop behind the real proxy: to the line, and back with a pass.
import assert from "node:assert/strict";
import { after, before } from "node:test";

import { Demo } from "../stage/demo.mjs";
import { scene, scenes } from "../stage/scene.mjs";

let demo;
before(async () => (demo = await Demo.open()));
after(async () => {
  await demo?.close();
  assert.equal(demo?.surprise, undefined);
});

scenes("the shop", () => {
  for (const size of ["phone", "desktop"]) {
    scene(`shop, line, shop: ${size}`, async (stage) => {
      stage.origins.push(demo.origin, new URL(demo.room).origin);
      const visitor = await stage.visitor({ size });
      const { page, context, watch } = visitor;
      watch.allow(/status of 403/);
      const home = `${demo.origin}/`;
      await page.goto(home);
      await visitor.inspect("shop-home");

      // The script asks before it leaves the page.
      await page.getByRole("button", { name: "How many are left?" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.waitFor();
      await visitor.inspect("shop-dialog");
      await dialog.getByRole("button", { name: "Not now" }).click();
      await dialog.waitFor({ state: "detached" });

      await page.getByRole("link", { name: "Choose a seat" }).click();
      const way = `${demo.room}?to=${encodeURIComponent(`${demo.origin}/tickets`)}&to_sig=`; // which the proxy has signed
      await page.waitForURL(({ href }) => href.startsWith(way));
      await visitor.is("joinable");
      await visitor.main();
      await visitor.is("called");
      const ticket = await visitor.ticket();
      await visitor.main();
      await page.waitForURL(`${demo.origin}/tickets`); // without the pass
      await page.getByText(ticket).waitFor();
      await visitor.inspect("shop-seats");
      const [cookie, ...others] = (await context.cookies()).filter(({ name }) => name === "__Host-proofline-pass.sale");
      assert.deepEqual([cookie.httpOnly, cookie.secure, cookie.sameSite, others], [true, true, "Lax", []]);
      await isBound(stage, context, cookie, ticket);
      await page.goto(home);
      await page.getByRole("button", { name: "How many are left?" }).click();
      await page.getByText(/^\d+ seats are left\.$/).waitFor();
      await page.goto(`${demo.origin}/tickets`);

      const free = page.getByRole("radio", { disabled: false }).last();
      const seat = await free.getAttribute("value");
      await free.check();
      await page.getByRole("button", { name: "Buy" }).click();
      await page.getByRole("heading", { name: "Thank you" }).waitFor();
      await page.getByText(seat, { exact: true }).waitFor();
      await visitor.inspect("shop-order");
      assert.deepEqual(
        (await context.cookies()).filter(({ name }) => name === cookie.name),
        [],
        "the visit is over",
      );
      await context.addCookies([cookie]);
      await page.goto(`${demo.origin}/tickets`);
      assert.ok(page.url().startsWith(`${demo.room}?to=`), `the visitor with the cookie is at ${page.url()}`);
      await visitor.is("over"); // and may take a new place
    });
  }
});

/**
 * The session is tied to the browser: a copy of the cookie is sent to the line, with a copied proof it works for a
 * while, and the browser itself creates new proofs.
 */
async function isBound(stage, context, cookie, ticket) {
  const proof = (await context.cookies()).find(({ name }) => name === "__Host-proofline-proof.sale");
  assert.ok(proof, "the browser has proven its key");
  const thief = await stage.visitor();
  thief.watch.allow(/status of 403/);
  await thief.context.addCookies([cookie]);
  await thief.page.goto(`${demo.origin}/tickets`);
  await thief.page.getByText("Your visit continues in the browser where it began.").waitFor();
  await thief.inspect("shop-elsewhere");
  assert.equal(await thief.page.getByRole("link", { name: "Join the line" }).getAttribute("href"), demo.room);
  assert.equal(
    (await thief.context.request.get(`${demo.origin}/tickets`, { headers: { "Sec-Fetch-Mode": "cors" } })).status(),
    403,
  );
  await context.clearCookies({ name: proof.name });
  const again = await context.newPage();
  await again.goto(`${demo.origin}/tickets`);
  await again.getByText(ticket).waitFor();
  assert.equal(again.url(), `${demo.origin}/tickets`, "by way of the connector's page");
  await again.close();
}
