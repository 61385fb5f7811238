// What strangers may try: wrong, foreign, expired and replayed secrets and passes, and requests
// from other sites. Each gets its status, and the transcript does not grow.
import assert from "node:assert/strict";

import { newVisitor } from "../stage/room.mjs";
import { scene, scenes } from "../stage/scene.mjs";
import { Shop } from "../stage/shop.mjs";

const form = {
  "Content-Type": "application/x-www-form-urlencoded",
  Accept: "text/html",
  "Sec-Fetch-Site": "same-origin",
};
const json = { "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin" };

const cookie = (room, secret) => ({ Cookie: `__Host-proofline-${room.slug}=${secret}` });

async function post(url, headers, body) {
  const answer = await fetch(url, { method: "POST", headers, body, redirect: "manual" });
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

/** Tries each request; it must have its status, and leave no trace. */
async function refused(room, attempts) {
  const before = await room.transcript();
  for (const [what, status, path, headers, body] of attempts) {
    const answer = await post(room.url + path, headers, body);
    assert.equal(answer.status, status, `${what}: ${answer.text}`);
    if (status >= 400) assert.equal(answer.headers.get("Set-Cookie"), null, what);
  }
  const texts = (entries) => entries.map(({ text }) => text);
  assert.deepEqual(texts(await room.transcript()), texts(before), "the transcript has not grown");
}

scenes("strangers", () => {
  scene("secrets in forms and in JSON", async (stage) => {
    const room = await stage.room({ slug: "secrets", windows: [{ length: "1h" }] });
    const other = await stage.room({ slug: "secrets-other", windows: [{ length: "1h" }] });
    const visitor = await stage.visitor();
    await visitor.join(room);
    const [foreign] = await other.crowd(1);
    const [waiting] = await room.crowd(1);
    const nobody = newVisitor(room.origin);
    await refused(room, [
      ["claim without a cookie", 403, "/claim", form],
      ["claim with a cookie that is no secret", 403, "/claim", { ...form, ...cookie(room, "x".repeat(43) + "!") }],
      ["claim with an empty cookie", 403, "/claim", { ...form, ...cookie(room, "") }],
      ["claim with a secret that never joined", 404, "/claim", { ...form, ...cookie(room, nobody.secret) }],
      ["claim with the secret of another room", 404, "/claim", { ...form, ...cookie(room, foreign.secret) }],
      ["claim with the cookie of another room", 403, "/claim", { ...form, ...cookie(other, foreign.secret) }],
      ["claim before being called", 409, "/claim", { ...form, ...cookie(room, waiting.secret) }],
      ["leave without a cookie", 403, "/leave", form],
      ["leave with a secret that never joined", 404, "/leave", { ...form, ...cookie(room, nobody.secret) }],
      ["leave with a secret as JSON that is too short", 400, "/leave", json, '{"secret":"AAAA"}'],
      ["leave with a secret of another room as JSON", 404, "/leave", json, JSON.stringify({ secret: foreign.secret })],
      ["join with a malformed secret", 400, "/line", json, '{"secret":"' + "A".repeat(44) + '"}'],
      ["join with malformed JSON", 400, "/line", json, "{"],
      ["join with more than is asked", 400, "/line", json, '{"position":1}'],
      ["join again", 303, "/line", { ...form, ...cookie(room, waiting.secret) }],
      [
        "join from another site",
        403,
        "/line",
        { ...form, "Sec-Fetch-Site": "cross-site", Origin: "https://evil.example.com" },
      ],
      [
        "leave from another site",
        403,
        "/leave",
        { ...form, ...cookie(room, waiting.secret), "Sec-Fetch-Site": "cross-site" },
      ],
      [
        "leave from a sibling domain",
        403,
        "/leave",
        { ...form, ...cookie(room, waiting.secret), "Sec-Fetch-Site": "same-site" },
      ],
      [
        "a claim of the API with another's secret",
        403,
        `/tickets/${waiting.ticket}/claim`,
        json,
        JSON.stringify({ secret: nobody.secret }),
      ],
      ["the link without a place", 403, "/link", json, "{}"],
      ["the link of a secret that never joined", 404, "/link", { ...json, ...cookie(room, nobody.secret) }, "{}"],
      ["a body that is too large", 413, "/line", json, JSON.stringify({ secret: "A".repeat(100_000) })],
    ]);
  });

  scene("places that are over, passes used again", async (stage) => {
    const shop = await Shop.open();
    stage.origins.push(shop.origin);
    try {
      const config = { windows: [{ length: "1s" }], outflow: { per_minute: 60_000 } };
      const room = await stage.room({ slug: "over", ...config, targets: [shop.target] });
      const missed = await stage.room({ slug: "over-missed", ...config, claim: "1s" });
      const visitor = await stage.visitor();
      await visitor.join(room);
      await visitor.is("called");
      const [{ value: secret }] = (await visitor.context.cookies()).filter(
        ({ name }) => name === `__Host-proofline-${room.slug}`,
      );
      const own = { ...form, ...cookie(room, secret) };
      await refused(room, [["a target that is not the room's", 400, "/claim", own, "to=https://evil.example.com/"]]);
      await visitor.main();
      await visitor.page.waitForURL(`${shop.target}?proofline_pass=*`);
      const token = new URL(visitor.page.url()).searchParams.get("proofline_pass");
      const { jti } = JSON.parse(Buffer.from(token.split(".")[1], "base64url"));
      const bearer = (pass) => ({ Authorization: `Bearer ${pass}` });
      const forged = token.replace(/\.[^.]*$/, `.${"A".repeat(86)}`);
      await refused(room, [
        ["claim again: the same pass", 303, "/claim", own],
        ["leave after going in", 410, "/leave", own],
        ["join after going in: the same place", 303, "/line", own],
        ["redeem", 200, `/passes/${jti}/redeem`, bearer(token)],
        ["redeem again", 409, `/passes/${jti}/redeem`, bearer(token)],
        [
          "redeem another pass",
          404,
          `/passes/${jti.replace(/^./, (c) => (c === "0" ? "1" : "0"))}/redeem`,
          bearer(token),
        ],
        ["redeem a forged pass", 401, `/passes/${jti}/redeem`, bearer(forged)],
        ["redeem without a pass", 401, `/passes/${jti}/redeem`, {}],
        ["touch with a forged pass", 401, "/sessions/touch", bearer(forged)],
        ["release", 200, "/sessions/release", bearer(token)],
        ["touch after the release", 410, "/sessions/touch", bearer(token)],
      ]);
      const late = await stage.visitor();
      await late.join(missed);
      await late.is("missed");
      const [kept] = (await late.context.cookies()).filter(({ name }) => name === `__Host-proofline-${missed.slug}`);
      await refused(missed, [
        ["claim too late", 410, "/claim", { ...form, ...cookie(missed, kept.value) }],
        ["leave too late", 410, "/leave", { ...form, ...cookie(missed, kept.value) }],
      ]);
    } finally {
      shop.close();
    }
  });

  scene("a page of another site can neither join for a visitor nor frame the room", async (stage) => {
    const shop = await Shop.open();
    stage.origins.push(shop.origin);
    try {
      const room = await stage.room({ slug: "frame", windows: [{ length: "1h" }] });
      const visitor = await stage.visitor();
      visitor.watch.expect(/frame-ancestors/);
      visitor.watch.expect(/status of 403/);
      const size = (await room.transcript()).length;
      await visitor.page.goto(shop.origin);
      const framed = await visitor.page.evaluate(async (url) => {
        const frame = Object.assign(document.createElement("iframe"), { src: url });
        const loaded = new Promise((done) => (frame.onload = done));
        document.body.append(frame);
        await loaded;
        return frame.contentDocument !== null;
      }, room.url);
      assert.equal(framed, false, "the frame shows the browser's own error page");
      const [answer] = await Promise.all([
        visitor.page.waitForResponse(`${room.url}/line`),
        visitor.page.evaluate((action) => {
          const form = Object.assign(document.createElement("form"), { method: "post", action });
          document.body.append(form);
          form.submit();
        }, `${room.url}/line`),
      ]);
      assert.equal(answer.status(), 403);
      await visitor.page.locator('main#error[data-kind="refused"]').waitFor();
      assert.equal((await room.transcript()).length, size);
    } finally {
      shop.close();
    }
  });

  scene("the watch notices what pages must not do", async (stage) => {
    const room = await stage.room({ slug: "watch", windows: [{ length: "1h" }] });
    const visitor = await stage.visitor();
    const { page, watch } = visitor;
    await page.route(room.url, async (route) => {
      const answer = await route.fetch();
      const inserted = `<img src="https://third.example.com/x.png" alt=""><script>alert(1)</script><button></button></body>`;
      await route.fulfill({ response: answer, body: (await answer.text()).replace("</body>", inserted) });
    });
    await visitor.visit(room);
    await page.evaluate(() =>
      setTimeout(() => {
        throw new Error("thrown on purpose");
      }),
    );
    await page.waitForEvent("pageerror").catch(() => {});
    const { violations } = await import("../stage/axe.mjs");
    assert.match((await violations(page)).join(), /button-name/);
    const ticket = "00000000-0000-8000-8000-000000000000";
    for (const position of [5, 7]) {
      await page.evaluate(
        ([ticket, position]) => {
          const main = document.querySelector("main");
          main.dataset.state = "drawn";
          main.dataset.ticket = ticket;
          main.querySelector("h1").innerHTML = `<b>${position}</b>`;
        },
        [ticket, position],
      );
    }
    const expected = [
      /third party: https:\/\/third/,
      /uncaught: .*on purpose/,
      /script.*(Content Security Policy|violates)/is,
      /img-src|image/i,
    ];
    for (const pattern of expected)
      assert.ok(
        watch.problems.some((problem) => pattern.test(problem)),
        `${pattern} in ${watch.problems}`,
      );
    watch.problems.length = 0;
    assert.throws(() => watch.check(), /rises from 5 to 7/);
    watch.seen.pop();
    await assert.rejects(watch.checkTranscript(room), /without an entry/);
    watch.seen.length = 0;
  });
});
