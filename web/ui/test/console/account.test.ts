import assert from "node:assert/strict";
import { test } from "node:test";

import { textOf, tokenOf } from "../../src/console/account.ts";

const token = "A".repeat(20) + "_-" + "z".repeat(21);

test("a link has its token in the fragment", () => {
  assert.equal(tokenOf(`#t=${token}`), token);
  assert.equal(tokenOf(`t=${token}&x=1`), token);
  for (const hash of ["", "#", "#t=", `#t=${token}A`, `#t=${token.slice(1)}`, `#x=${token}`, `#t=${token.slice(1)}!`]) {
    assert.equal(tokenOf(hash), null, hash);
  }
});

test("a list is copied line by line", () => {
  const element = (text: string, items: string[]): Element =>
    ({ textContent: text, querySelectorAll: () => items.map((item) => ({ textContent: item })) }) as unknown as Element;
  assert.equal(textOf(element("onetwo", ["one", "two"])), "one\ntwo");
  assert.equal(textOf(element(" secret\n", [])), "secret");
});
