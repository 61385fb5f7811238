import assert from "node:assert/strict";
import axe from "axe-core";

const options = {
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
  rules: { "target-size": { enabled: true } },
  resultTypes: ["violations"],
};

/** Returns axe's findings on a page. */
export async function violations(page) {
  await page.evaluate(axe.source);
  const found = await page.evaluate((given) => window.axe.run(document, given), options);
  return found.violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join("; ")}`,
  );
}

/** Fails if axe finds anything on a page. */
export async function accessible(page, what) {
  assert.deepEqual(await violations(page), [], `axe: ${what}`);
}
