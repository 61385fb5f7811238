import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { countdown, moment, number, plural, timeLocale } from "../../src/page/words.ts";
import { minute, noon } from "./rooms.ts";

const messages = (lang: string) =>
  JSON.parse(readFileSync(`../page/messages/${lang}.json`, "utf8")) as Record<string, Record<string, string>>;

test("sentences with numbers are those of the server", () => {
  // The server's test has the same cases.
  for (const [lang, key, n, want] of [
    ["en", "drawn.ahead", 0, "You are next."],
    ["en", "drawn.ahead", 1, "1 person is ahead of you."],
    ["en", "drawn.ahead", 3210, "3,210 people are ahead of you."],
    ["de", "waiting.ahead", 1234567, "1.234.567 Personen sind in früheren Gruppen."],
    ["fr", "drawn.ahead", 1, "1 personne est devant vous."],
    ["ja", "drawn.ahead", 1, "あなたの前に1人います。"],
    ["ar", "drawn.ahead", 1, "أمامك شخص واحد."],
    ["ar", "drawn.ahead", 2, "أمامك شخصان."],
    ["ar", "drawn.ahead", 5, "أمامك 5 أشخاص."],
    ["ar", "drawn.ahead", 11, "أمامك 11 شخصًا."],
    ["ar", "drawn.ahead", 1000100, "أمامك 1,000,100 شخص."],
  ] as const) {
    assert.equal(plural(messages(lang)[key]!, n, `${lang}-u-nu-latn`), want);
  }
});

test("four digits are grouped in every language, as by the server", () => {
  assert.equal(number(3210, "es-u-nu-latn"), "3.210");
  assert.equal(number(3210, "it-u-nu-latn"), "3.210");
  assert.equal(number(3210, "ar-u-nu-latn"), "3,210");
});

test("moments are in the visitor's zone, with seconds and date where they matter", () => {
  const at = (offset: number, locale: string, zone: string) =>
    moment(noon + offset, noon, locale, zone).replace(/[\u202f\u00a0]/g, " ");
  assert.equal(at(0, "de", "Europe/Berlin"), "14:00");
  assert.equal(at(6000, "de", "Europe/Berlin"), "14:00:06");
  assert.equal(at(0, "en-US", "America/New_York"), "8:00 AM");
  assert.match(at(11 * 60 * minute, "de", "Europe/Berlin"), /2\. Mai.*01:00|2\. Mai.*1:00/); // tomorrow there, still today in UTC
  assert.doesNotMatch(at(11 * 60 * minute, "de", "UTC"), /Mai/);
});

test("times of day follow the visitor's kind of the page's language", () => {
  assert.equal(timeLocale("en-u-nu-latn", ["de-DE", "en-GB", "en-US"]), "en-GB-u-nu-latn");
  assert.equal(timeLocale("ja-u-nu-latn", ["en-GB"]), "ja-u-nu-latn");
  assert.equal(timeLocale("ar-u-nu-latn", ["ar-EG-u-nu-arab"]), "ar-EG-u-nu-latn");
});

test("countdowns", () => {
  for (const [ms, want] of [
    [0, "0:00"],
    [-5000, "0:00"],
    [1, "0:01"],
    [59_000, "0:59"],
    [59_001, "1:00"],
    [272_000, "4:32"],
    [3_600_000, "1:00:00"],
    [3_872_000, "1:04:32"],
    [86_399_000, "23:59:59"],
    [86_400_000, "1 day 0:00:00"],
    [2 * 86_400_000 + 61_000, "2 days 0:01:01"],
  ] as const) {
    assert.equal(countdown(ms, "en"), want);
  }
});
