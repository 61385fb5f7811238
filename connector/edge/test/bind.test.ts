// Sessions that are tied to a key in the browser.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { base64url, fromBase64url, fromBytes, toBytes, utf8 } from "../src/bytes.ts";
import { Connector } from "../src/main.ts";
import { familyOf, Proofs, subjectOf } from "../src/proof.ts";
import { Signer, tagOf } from "../src/session.ts";
import { Queue } from "./kit.ts";

interface Vectors {
  key: string;
  room: string;
  origin: string;
  subject: string;
  at: number;
  proof: string;
  thumbprint: string;
  cookie: string;
  families: Record<string, string>;
}

const vectors = JSON.parse(readFileSync("../testdata/bind-vectors.json", "utf8")) as Vectors;

test("the vectors of cookies, proofs and families", async () => {
  const signer = new Signer(toBytes(vectors.key));
  const session = await signer.parse(vectors.cookie);
  assert.ok(session);
  assert.equal(await signer.format(session), vectors.cookie);
  assert.equal(session.room, await tagOf(vectors.room, vectors.origin));
  assert.equal(await subjectOf(vectors.room, session), vectors.subject);
  const key = await new Proofs().keyOf(
    new Request("https://shop.example.com/"),
    ["", "x", vectors.proof],
    vectors.room,
    session,
    1000,
    vectors.at + 999,
  );
  assert.equal(key && base64url(toBytes(key)), vectors.thumbprint);
  assert.equal(session.key, key);
  for (const [age, now] of [
    [1000, vectors.at + 1000],
    [1000, vectors.at - 60_001],
  ] as const)
    assert.equal(
      await new Proofs().keyOf(
        new Request("https://shop.example.com/"),
        [vectors.proof],
        vectors.room,
        session,
        age,
        now,
      ),
      undefined,
    );
  const bytes = fromBase64url(vectors.proof) ?? new Uint8Array();
  for (let i = 0; i < bytes.length; i++) {
    const changed = bytes.slice();
    changed[i] = (changed[i] ?? 0) ^ 1;
    assert.equal(
      await new Proofs().keyOf(
        new Request("https://shop.example.com/"),
        [base64url(changed)],
        vectors.room,
        session,
        1000,
        vectors.at,
      ),
      undefined,
      `byte ${i}`,
    );
  }
  for (const [agent, family] of Object.entries(vectors.families))
    assert.equal(base64url(toBytes(await familyOf(utf8(agent)))), family, agent);
});

const phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) Safari/604.1";
const opens = { "User-Agent": phone, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document" };
const fetches = { "User-Agent": phone, "Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin" };

/** Shop is a connector between a room and a site. */
async function shop(): Promise<{
  send: (path: string, headers: Record<string, string>, client?: string, method?: string) => Promise<Response>;
  queue: Queue;
  later: (ms: number) => void;
  now: () => number;
  connector: Connector;
}> {
  const queue = await new Queue().start();
  let ahead = 0;
  const now = () => Date.now() + ahead;
  const connector = new Connector({
    key: new Uint8Array(32).fill(7),
    rules: `{"version":1,"rooms":{"sale":{"url":"${queue.url}"}},"rules":[{"name":"sale","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"}]}`,
    site: async () => new Response("tickets"),
    now,
    log: () => {},
  });
  const send = (path: string, headers: Record<string, string>, client = "198.51.100.7", method = "GET") =>
    connector.fetch(new Request(`https://shop.example.com${path}`, { method, headers, redirect: "manual" }), {
      client,
    });
  return { send, queue, later: (ms) => (ahead += ms), now, connector };
}

const cookieOf = (answer: Response): string => answer.headers.get("Set-Cookie")?.split(";")[0] ?? "";

test("a copied cookie is worthless without the key", async () => {
  const { send, queue, later, now, connector } = await shop();
  try {
    const back = await send(`/tickets?proofline_pass=${queue.pass()}`, opens);
    assert.equal(back.headers.get("Location"), "/.proofline/bind?to=%2Ftickets");
    const free = cookieOf(back);
    const page = await send("/.proofline/bind?to=%2Ftickets", { ...opens, Cookie: free });
    const text = await page.text();
    const { visits } = JSON.parse(
      (/data-visit="([^"]*)"/.exec(text)?.[1] ?? "").replace(/&#(\d+);/g, (_, code: string) =>
        String.fromCharCode(Number(code)),
      ),
    ) as { visits: { subject: string; bound: boolean }[] };
    assert.ok(
      visits[0] &&
        !visits[0].bound &&
        text.includes(`<noscript><meta http-equiv="refresh" content="0;url=/tickets"></noscript>`),
    );
    const keys = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign"]);
    const subject = visits[0].subject;
    const prove = async (at: number): Promise<string> => {
      const time = new DataView(new ArrayBuffer(8));
      time.setBigUint64(0, BigInt(at));
      const sum = await crypto.subtle.sign(
        { name: "ECDSA", hash: "SHA-256" },
        keys.privateKey,
        toBytes(`proofline proof 1\n${subject}\n${at}`),
      );
      const parts = [time.buffer, await crypto.subtle.exportKey("raw", keys.publicKey), sum]
        .map((part) => fromBytes(new Uint8Array(part)))
        .join("");
      return `__Host-proofline-proof.sale=${base64url(toBytes(parts))}`;
    };
    const proof = await prove(now());
    assert.equal(
      (
        await send(
          "/.proofline/bind",
          { ...fetches, "Sec-Fetch-Site": "cross-site", Cookie: `${free}; ${proof}` },
          undefined,
          "POST",
        )
      ).status,
      403,
    );
    const tied = await send("/.proofline/bind", { ...fetches, Cookie: `${free}; ${proof}` }, undefined, "POST");
    assert.equal(tied.status, 204);
    const cookie = cookieOf(tied);
    assert.ok(cookie.startsWith("__Host-proofline-pass.sale=") && cookie !== free);
    assert.equal((await send("/tickets", { ...opens, Cookie: `${cookie}; ${proof}` }, "203.0.113.9")).status, 200);
    for (let i = 0; i < 100; i++) {
      assert.equal(
        (await send("/tickets", { ...opens, Cookie: cookie }, `10.0.${i}.1`)).headers.get("Location"),
        "/.proofline/bind?to=%2Ftickets",
      );
      assert.equal((await send("/tickets", { ...fetches, Cookie: cookie }, `10.0.${i}.1`)).status, 403);
    }
    assert.ok(
      !(await (await send("/.proofline/bind?to=%2Ftickets", { ...opens, Cookie: cookie })).text()).includes("refresh"),
      "no loop",
    );
    const wrong = proof.slice(0, -4) + (proof.endsWith("AAAA") ? "BBBB" : "AAAA");
    assert.equal(
      (await send("/tickets", { ...opens, Cookie: `${cookie}; ${proof}; ${`${wrong}; `.repeat(16)}` })).status,
      200,
    );
    assert.equal(
      (await send("/tickets", { ...opens, Cookie: `${cookie}; ${`${wrong}; `.repeat(16)}${proof}` })).status,
      303,
      "too many proofs",
    );
    for (let i = 0; i < 20; i++) await send("/tickets", { ...opens, Cookie: `${cookie}; ${proof}` }, `10.1.${i}.1`);
    assert.equal(
      (await send("/tickets", { ...opens, Cookie: `${cookie}; ${proof}` }, "10.1.99.1")).status,
      303,
      "a program that hands out its proofs",
    );
    assert.ok(connector.stats().copied > 10);
    later(120_000);
    assert.equal(
      (await send("/tickets", { ...opens, Cookie: `${cookie}; ${proof}` })).status,
      303,
      "an old proof opens no page",
    );
    assert.equal((await send("/tickets", { ...fetches, Cookie: `${cookie}; ${proof}` })).status, 200);
    assert.equal((await send("/tickets", { ...opens, Cookie: `${cookie}; ${await prove(now())}` })).status, 200);
    for (const to of ["", "//evil.example.net", "/\\evil.example.net", "https://evil.example.net"])
      assert.equal((await send(`/.proofline/bind?to=${encodeURIComponent(to)}`, opens)).status, 404, to);
  } finally {
    queue.server?.close();
  }
});

test("without scripts a session is limited to a browser family and a few clients", async () => {
  const { send, queue, connector } = await shop();
  try {
    const back = await send(`/tickets?proofline_pass=${queue.pass()}`, { "User-Agent": phone, Accept: "text/html" });
    assert.equal(back.headers.get("Location"), "/tickets");
    const headers = { "User-Agent": phone, Accept: "text/html", Cookie: cookieOf(back) };
    assert.equal((await send("/tickets", { ...headers, "User-Agent": phone.replace("18_1", "18_2_1") })).status, 200);
    assert.equal((await send("/tickets", { ...headers, "User-Agent": "Firefox/140.0" })).status, 302);
    for (let i = 0; i < 7; i++)
      assert.equal((await send("/tickets", headers, `10.0.${i}.1`)).status, 200, "on the way");
    for (let i = 100; i < 120; i++)
      assert.equal((await send("/tickets", headers, `10.0.${i}.1`)).status, 302, "a copy");
    assert.equal((await send("/tickets", headers)).status, 200);
    assert.equal(connector.stats().copied, 20);
  } finally {
    queue.server?.close();
  }
});
