// Small puzzles of the server's own issuer, by keyboard alone.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { top } from "./places.mjs";

const words = JSON.parse(await readFile(join(top, "web/issuer/messages/en.json"), "utf8"));
/** The key of a text of the puzzle. */
export const keyOf = (text) => Object.keys(words).find((key) => key.startsWith("puzzle.") && words[key] === text);

/** What the focused element is called. */
const focused = (page) =>
  page.locator(":focus").evaluate((element) => (element.labels?.[0] ?? element).textContent.trim());

/** Presses Tab until the focus is on what is called so. */
export async function tabTo(page, name) {
  for (let pressed = 0; pressed < 40; pressed++) {
    await page.keyboard.press("Tab");
    if ((await page.locator(":focus").count()) > 0 && (await focused(page)) === name) return;
  }
  assert.fail(`Tab does not lead to ${name}`);
}

/** Ticks options and confirms, by keyboard alone. */
export async function tick(page, labels) {
  for (const label of labels) {
    await tabTo(page, label);
    await page.keyboard.press("Space");
  }
  await tabTo(page, "Confirm");
  await page.keyboard.press("Enter");
}

/** Presses a button by keyboard. */
export async function press(page, name) {
  await tabTo(page, name);
  await page.keyboard.press("Enter");
}

/** What a screen reader says of the puzzle: the question, and the names of the options. */
export async function spoken(page) {
  const text = await page.locator("main").ariaSnapshot();
  const [, question] = /group "([^"]+)"/.exec(text);
  return { text, question, options: [...text.matchAll(/checkbox "([^"]+)"/g)].map(([, name]) => name) };
}

/** Solves words by reading. */
export async function byReading(page) {
  const { question, options } = await spoken(page);
  const known = words[`${keyOf(question)}_words`].split(", ");
  return options.filter((word) => known.includes(word));
}
