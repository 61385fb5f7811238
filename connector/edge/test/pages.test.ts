// The connector's own pages.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import shared from "../../pages.json";
import { refuse, retryLater } from "../src/pages.ts";

const ask = (accept: string) =>
  retryLater(
    new Request("https://shop.example.com/tickets", { headers: { Accept: "text/html", "Accept-Language": accept } }),
  );

test("the page is in the visitor's language", async () => {
  const wanted: Record<string, string> = {
    "": "en",
    "*": "en",
    xx: "en",
    en: "en",
    "de-AT,de;q=0.9,en;q=0.8": "de",
    es: "es",
    "FR-ca": "fr",
    "it;q=0.5": "it",
    "pt-BR": "pt",
    ja: "ja",
    "ar-EG": "ar",
    "xx,ja;q=0.2,de;q=0.3": "de",
    "de;q=0": "en",
    "de;q=2,fr;q=0.1": "fr",
    "de;q=x": "de",
    "de , fr": "de",
    ";;,;q=1,-": "en",
    german: "en",
  };
  const pages = new Set<string>();
  for (const [accept, lang] of Object.entries(wanted)) {
    const answer = await ask(accept);
    const page = await answer.text();
    assert.deepEqual([answer.status, answer.headers.get("Content-Language")], [503, lang], accept);
    assert.ok(page.includes(`<html lang="${lang}" dir="${lang === "ar" ? "rtl" : "ltr"}">`), page);
    assert.ok(
      page.includes(`content="${answer.headers.get("Retry-After") ?? ""}"`) &&
        !page.includes("undefined") &&
        !/\{\w+\}/.test(page),
      page,
    );
    const [, style = ""] = /<style>(.*)<\/style>/.exec(page) ?? [];
    assert.ok(
      answer.headers
        .get("Content-Security-Policy")
        ?.includes(`'sha256-${createHash("sha256").update(style).digest("base64")}'`),
    );
    pages.add(page.replace(/content="\d+"/, ""));
  }
  assert.equal(pages.size, 8);
});

test("refusal pages in all languages", async () => {
  const titles = new Set<string>();
  for (const error of ["closed", "blocked", "malformed", "host"] as const) {
    for (const { lang, dir, title } of shared.texts[error]) {
      const request = (method: string) =>
        new Request("https://shop.example.com/evil?x=evil", {
          method,
          headers: { "Sec-Fetch-Mode": "navigate", "Accept-Language": lang },
        });
      const answer = await refuse(request("GET"), 403, { error, room: "evil" });
      const page = await answer.text();
      assert.deepEqual(
        [answer.status, answer.headers.get("Content-Language"), answer.headers.get("Retry-After")],
        [403, lang, null],
      );
      assert.ok(page.includes(`<html lang="${lang}" dir="${dir}">`) && page.includes(`<h1>${title}</h1>`), page);
      assert.ok(
        !/refresh|evil|undefined|\{\w+\}|<p><\/p>/.test(page) && page.includes("<p>") === (error === "closed"),
        page,
      );
      assert.match(answer.headers.get("Content-Security-Policy") ?? "", /^default-src 'none'; .*style-src 'sha256-/);
      assert.equal(await (await refuse(request("HEAD"), 403, { error })).text(), "");
      titles.add(title);
    }
    const script = await refuse(new Request("https://shop.example.com/"), 403, { error, room: "there" });
    assert.equal(await script.text(), `{"error":"${error}","room":"there"}\n`);
  }
  assert.equal(titles.size, 32);
});
