// A room whose first window has slots: what the page says of them before and after joining, in two languages, on a phone.
import assert from "node:assert/strict";

import { scene } from "../stage/scene.mjs";

scene("slots, before joining and after", async (stage) => {
  const room = await stage.room({ slug: "slots", windows: [{ length: "20s" }], slots: "10s" });
  await room.callByHand();
  for (const [locale, how, own] of [
    ["en-GB", /is cut into 2 slots/, /You came in slot \d of 2/],
    ["ar-EG", /عددها 2/, /الفترة \d من 2/],
  ]) {
    const visitor = await stage.visitor({ size: "phone", locale });
    await (await visitor.visit(room)).is("joinable");
    assert.match(await visitor.page.locator("main").innerText(), how);
    assert.equal(await visitor.page.locator("svg[data-slots] rect").count(), 2);
    await visitor.inspect("slots-joinable");
    await visitor.main();
    await visitor.is("waiting");
    assert.match(await visitor.page.locator("main").innerText(), own);
    await visitor.inspect("slots-waiting");
  }
});
