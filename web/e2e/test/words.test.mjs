// Languages, and the settings of visitors' devices.
import assert from "node:assert/strict";

import { accessible } from "../stage/axe.mjs";
import { scene, scenes } from "../stage/scene.mjs";

scenes("words and looks", () => {
  scene("the browser's language, and a switch that stays", async (stage) => {
    const room = await stage.room({ slug: "languages", windows: [{ length: "30h" }] }); // times with dates
    const visitor = await stage.visitor({ size: "phone", locale: "ja-JP" });
    const language = () => visitor.page.evaluate(() => [document.documentElement.lang, document.documentElement.dir]);
    await visitor.visit(room);
    assert.deepEqual(await language(), ["ja", "ltr"]);
    await visitor.inspect("joinable");
    await visitor.main();
    await visitor.is("waiting");
    await visitor.inspect("waiting");
    for (const link of await visitor.page.locator(".languages a").all()) {
      const [text, tag] = [await link.textContent(), await link.getAttribute("hreflang")];
      await visitor.page.getByRole("link", { name: text, exact: true }).click();
      await visitor.page.locator(`html[lang="${tag}"]`).waitFor();
      await visitor.is("waiting");
      await accessible(visitor.page, tag);
      await visitor.fits(tag);
    }
    assert.deepEqual(await language(), ["ar", "rtl"]);
    await visitor.page.goto(room.url);
    assert.deepEqual(await language(), ["ar", "rtl"], "the choice stays");
  });

  scene("a change of state keeps the language", async (stage) => {
    const room = await stage.room({ slug: "stays", windows: [{ length: "2s" }], outflow: { per_minute: 60_000 } });
    const visitor = await stage.visitor({ locale: "de-AT" });
    await visitor.join(room);
    await visitor.is("called");
    await visitor.page.getByRole("heading", { level: 1, name: "Sie sind an der Reihe" }).waitFor();
  });

  scene("reduced motion, high contrast, print", async (stage) => {
    const room = await stage.room({ slug: "motion", windows: [{ length: "1h" }] });
    const visitor = await stage.visitor({ size: "phone" });
    const { page } = visitor;
    await visitor.join(room);
    /** The moving elements, including their pseudo-elements. */
    const moving = () =>
      page.evaluate(() => {
        const moves = (element, part) => {
          const { transitionDuration, animationName } = getComputedStyle(element, part);
          return animationName !== "none" || transitionDuration.split(", ").some((time) => parseFloat(time) > 0);
        };
        const parts = [null, "::before", "::after", "::-webkit-progress-value"];
        return [...document.querySelectorAll("*")]
          .filter((element) => parts.some((part) => moves(element, part)))
          .map((element) => element.tagName);
      });
    await page.emulateMedia({ reducedMotion: "no-preference" });
    const usual = await moving();
    await page.emulateMedia({ reducedMotion: "reduce" });
    assert.deepEqual(await moving(), [], `of ${usual.length} things that move`);
    await page.emulateMedia({ forcedColors: "active" });
    await accessible(page, "forced colours");
    await visitor.picture("waiting-phone-contrast");
    await page.emulateMedia({ media: "print", forcedColors: "none" });
    await page.locator(".languages").waitFor({ state: "hidden" });
  });
});
