// Small puzzles of the server's own issuer: each kind solved by keyboard alone, with what a visitor without sight or
// without sound gets of it, with and without scripts.
import assert from "node:assert/strict";

import { reachable } from "../stage/keyboard.mjs";
import { byReading, keyOf, press, spoken, tabTo, tick } from "../stage/puzzle.mjs";
import { scene, scenes } from "../stage/scene.mjs";

/** A room with a lane for visitors who solve a puzzle. */
const puzzled = (slug) => ({
  slug,
  windows: [{ length: "24h" }],
  methods: [{ name: "human", kind: "signed", key: "own-puzzle" }],
  lanes: [
    { name: "general", weight: 1 },
    { name: "people", weight: 3, needs: ["human"] },
  ],
});

/** Goes from the room's page to the puzzle. */
async function toPuzzle({ page }, begin = /^Confirm with /, go = /^Continue to /) {
  await page.getByRole("button", { name: begin }).click();
  await page.getByRole("button", { name: go }).click();
  await page.locator("fieldset legend").waitFor();
}

/** Solves pictures by their outlines: how often a line comes near the middle tells what it shows. */
async function byLooking(page) {
  const { question, options } = await spoken(page);
  const lines = await page.locator(".options path").evaluateAll((list) => list.map((one) => one.getAttribute("d")));
  return options.filter((_, i) => shapeOf(lines[i]) === keyOf(question));
}

function shapeOf(path) {
  const numbers = path.match(/\d+/g).map(Number);
  const line = numbers.flatMap((x, i) => (i % 2 === 0 ? [{ x, y: numbers[i + 1] }] : []));
  const mean = (list) => list.reduce((sum, value) => sum + value, 0) / list.length;
  const [middleX, middleY] = [mean(line.map(({ x }) => x)), mean(line.map(({ y }) => y))];
  const distance = new Array(360).fill(0);
  line.forEach((from, i) => {
    const to = line[(i + 1) % line.length];
    for (let part = 0; part < 1; part += 0.025) {
      const [x, y] = [from.x + part * (to.x - from.x) - middleX, from.y + part * (to.y - from.y) - middleY];
      distance[Math.floor((Math.atan2(y, x) / (2 * Math.PI) + 1) * 360) % 360] = Math.hypot(x, y);
    }
  });
  const wave = (n) => {
    const along = (of) => distance.reduce((sum, value, i) => sum + value * of((2 * Math.PI * i * n) / 360), 0);
    return Math.hypot(along(Math.cos), along(Math.sin));
  };
  const [three, four, five] = [3, 4, 5].map((n) => wave(n) / wave(0));
  if (Math.max(three, four, five) < 0.02) return "puzzle.circles";
  if (three > Math.max(four, five)) return "puzzle.triangles";
  if (five > four) return "puzzle.stars";
  return four > 0.09 ? "puzzle.crosses" : "puzzle.squares";
}

/** Solves tones by listening to the file that the page plays. */
async function byListening(page) {
  const { question, options } = await spoken(page);
  const source = await page.locator("audio").getAttribute("src");
  const samples = Buffer.from(source.slice("data:audio/wav;base64,".length), "base64").subarray(44);
  const tones = [];
  let [began, heard] = [-1, -1];
  samples.forEach((sample, i) => {
    if (Math.abs(sample - 128) > 20) [began, heard] = [began < 0 ? i : began, i];
    if (began >= 0 && i - heard > 800) {
      tones.push(heard - began);
      began = -1;
    }
  });
  assert.equal(tones.length, options.length);
  return options.filter((_, i) => tones[i] > 3000 === (keyOf(question) === "puzzle.long"));
}

async function joins(visitor) {
  const { page } = visitor;
  await page.getByRole("heading", { name: "One tap left: join the line" }).waitFor();
  await press(page, "Join the line");
  await visitor.is("waiting");
  assert.equal((await visitor.data()).lane, "people");
}

const wrong = /the server responded with a status of 4(03|10)/;

scenes("puzzles", () => {
  for (const size of ["phone", "desktop"]) {
    scene(`each kind by keyboard, ${size}`, async (stage) => {
      const room = await stage.room(puzzled(`puzzles-${size}`));
      for (const [kind, button, solve] of [
        ["words", null, byReading],
        ["pictures", "With pictures", byLooking],
        ["tones", "With sound", byListening],
      ]) {
        const visitor = await stage.visitor({ size });
        const { page } = visitor;
        await visitor.visit(room);
        await toPuzzle(visitor);
        if (button) await press(page, button);
        await page.locator(`.options.${kind}`).waitFor();
        assert.equal(await page.getByText("Less than a minute").isVisible(), false);
        await visitor.inspect(`puzzle-${kind}`);
        await reachable(page, kind);
        await page.evaluate(() => document.activeElement.blur());
        if (kind === "tones") {
          await page.locator("audio").focus();
          await page.keyboard.press("Space");
          await page.waitForFunction(() => document.querySelector("audio").currentTime > 0.2);
          assert.ok((await page.locator("audio").evaluate(({ duration }) => duration)) > 7);
        }
        await tick(page, await solve(page));
        await joins(visitor);
      }
      assert.equal((await room.transcript()).filter(({ kind }) => kind === "arrive").length, 3);
    });
  }

  scene("without sight: all that is needed is said, and tones follow words", async (stage) => {
    const room = await stage.room(puzzled("unseen"));
    const visitor = await stage.visitor();
    const { page } = visitor;
    await visitor.visit(room);
    await toPuzzle(visitor);
    const { text, question, options } = await spoken(page);
    assert.ok(keyOf(question));
    assert.equal(options.length, 10);
    for (const said of ["You have 5 minutes", 'button "More time"', 'button "With pictures"', 'button "With sound"']) {
      assert.ok(text.includes(said), `${said} is missing in ${text}`);
    }
    await press(page, "With sound");
    await page.locator("audio").waitFor();
    const tones = await spoken(page);
    assert.deepEqual(
      tones.options,
      [1, 2, 3, 4, 5, 6, 7, 8].map((number) => `Tone ${number}`),
    );
    await press(page, "With words");
    await tick(page, await byReading(page));
    await joins(visitor);
  });

  scene("without sound and without scripts: a wrong answer, more time, a form sent twice", async (stage) => {
    const room = await stage.room(puzzled("plain-puzzle"));
    const visitor = await stage.visitor({ size: "phone", javaScriptEnabled: false });
    const { page } = visitor;
    visitor.watch.expect(wrong);
    await visitor.visit(room);
    await toPuzzle(visitor);
    await press(page, "With pictures");
    await page.locator(".options.pictures").waitFor();
    await tick(page, ["Field 1"]);
    await page.getByRole("alert").filter({ hasText: "That was not quite right" }).waitFor();
    await visitor.picture("puzzle-wrong-plain");
    await tabTo(page, "Field 2");
    await page.keyboard.press("Space");
    const lines = () => page.locator(".options path").evaluateAll((list) => list.map((one) => one.getAttribute("d")));
    const before = await lines();
    const form = page.locator('input[name="flow"]');
    const earlier = await form.getAttribute("value");
    await press(page, "More time");
    await page.getByRole("status").filter({ hasText: "You have more time now" }).waitFor();
    assert.deepEqual(await lines(), before);
    assert.ok(await page.getByLabel("Field 2", { exact: true }).isChecked());
    await visitor.picture("puzzle-extended-plain");
    await form.evaluate((field, value) => field.setAttribute("value", value), earlier);
    await press(page, "Confirm");
    await page
      .getByRole("alert")
      .filter({ hasText: "The time for this puzzle was up, or it was sent before" })
      .waitFor();
    await tick(page, await byLooking(page));
    await joins(visitor);
  });

  scene("the page warns a minute before the time is up", async (stage) => {
    const room = await stage.room(puzzled("warned"));
    const visitor = await stage.visitor();
    await visitor.visit(room);
    await toPuzzle(visitor);
    const warning = visitor.page.locator(".soon");
    const at = (seconds) =>
      warning.evaluate((element, time) => {
        element.getAnimations()[0].currentTime = time;
      }, seconds * 1000);
    await at(239);
    assert.equal(await warning.isVisible(), false);
    await at(241);
    assert.equal(await warning.isVisible(), true);
    assert.match(await visitor.page.locator("main").ariaSnapshot(), /status.*\n?.*Less than a minute is left/);
  });

  scene("in German and Arabic", async (stage) => {
    const room = await stage.room(puzzled("raetsel"));
    for (const [locale, begin, go, more] of [
      ["de-DE", /bestätigen$/, /^Weiter zu /, "Mehr Zeit"],
      ["ar-EG", /^التأكيد عبر/, /^المتابعة إلى/, "مزيد من الوقت"],
    ]) {
      const visitor = await stage.visitor({ size: "phone", locale });
      await visitor.visit(room);
      await toPuzzle(visitor, begin, go);
      await visitor.page.getByRole("button", { name: more }).waitFor();
      await visitor.inspect("puzzle-language");
    }
  });
});
