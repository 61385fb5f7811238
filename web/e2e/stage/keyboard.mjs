import assert from "node:assert/strict";

/** Marks all elements that a keyboard should reach, and returns their number. */
function mark() {
  const wanted = "a[href], button, input, select, textarea, summary, iframe, [tabindex]";
  const seen = new Set(); // groups of radio buttons, one of which can be reached
  let n = 0;
  for (const element of document.querySelectorAll(wanted)) {
    const group = element.type === "radio" ? `${element.form?.action} ${element.name}` : "";
    const hidden = !element.checkVisibility({ visibilityProperty: true }) || element.disabled || element.tabIndex < 0;
    if (hidden || (group && seen.has(group)) || (group && !element.checked)) continue;
    if (group) seen.add(group);
    element.dataset.stop = String(n++);
  }
  return n;
}

/** The focused element: its mark, whether the focus is visible, and whether the whole element is covered. */
async function focused() {
  await new Promise((done) => requestAnimationFrame(done)); // it scrolls into view
  const element = document.activeElement;
  if (!element || element === document.body) return undefined;
  if (element.tagName === "IFRAME") return { stop: element.dataset.stop, outlined: true }; // its content cannot be inspected from here
  const isOwn = element.matches(":focus"); // or a part of it that the browser has created
  const { outlineStyle, outlineWidth } = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  const x = Math.max(box.left + Math.min(box.width / 2, 20), 1);
  const shows = (y) => {
    const over = document.elementFromPoint(x, y);
    return over && (element.contains(over) || over.contains(element) || over.closest("label")?.control === element);
  };
  return {
    stop: element.dataset.stop,
    what: element.outerHTML.slice(0, 120),
    outlined: !isOwn || (outlineStyle !== "none" && parseFloat(outlineWidth) > 0),
    covered: ![box.top + 4, (Math.max(box.top, 0) + Math.min(box.bottom, innerHeight)) / 2, box.bottom - 4].some(shows),
  };
}

/** Fails unless the tab key reaches everything on a page, with the focus always visible. */
export async function reachable(page, what) {
  await page.evaluate(() => window.scrollTo(0, 0));
  const stops = await page.evaluate(mark);
  const reached = new Set();
  await page.evaluate(() => document.activeElement?.blur());
  for (let pressed = 0; pressed < 8 * stops + 8 && reached.size < stops; pressed++) {
    await page.keyboard.press("Tab"); // several times in a date field
    const at = await page.evaluate(focused);
    if (at === undefined) continue;
    if (at.stop !== undefined) reached.add(at.stop);
    assert.ok(at.outlined, `${what}: no outline around ${at.what}`);
    assert.ok(!at.covered, `${what}: something covers ${at.what}`);
  }
  const missed = await page.evaluate(
    (reached) =>
      [...document.querySelectorAll("[data-stop]")]
        .filter(({ dataset }) => !reached.includes(dataset.stop))
        .map(({ outerHTML }) => outerHTML.slice(0, 120)),
    [...reached],
  );
  assert.deepEqual(missed, [], `${what}: the tabulator does not lead there`);
}
