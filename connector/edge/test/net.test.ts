// Rooms in mode safety-net, in workerd: unqueued sessions, and reports.
import assert from "node:assert/strict";
import test from "node:test";
import { Connector } from "../src/connector.ts";
import { Gate } from "../src/gate.ts";
import { NetworkStarts, networkLimit } from "../src/limit.ts";
import { cookieOf, eventually, type Queue, type Report, type Shop, withShop } from "./kit.ts";

const token = "connect-token";
const bindings = (queue: Queue) => ({ PROOFLINE_TOKEN: token, PROOFLINE_SERVER: queue.home });
const open = { gate: "open", share: 5, per_minute: 60, max_active: 0, nodes: 1, session_ms: 600_000 };
const withNet = (name: string, run: (s: Shop) => Promise<void>, more = "") =>
  withShop(name, run, `,"mode":"safety-net"${more}`, bindings);

/** roomOf merges the room's data of all reports so far, because a late report may repeat some. */
function roomOf(reports: Report[]) {
  const rooms = reports.flatMap((report) => report.rooms);
  const all = (of: (room: Report["rooms"][0]) => string[] | undefined) => rooms.flatMap((room) => of(room) ?? []);
  return {
    started: [...new Set(all((r) => r.started))],
    active: all((r) => r.active),
    ended: [...new Set(all((r) => r.ended))],
    turned: rooms.reduce((n, r) => n + (r.turned ?? 0), 0),
  };
}

/** tells waits until reports, which requests cause, satisfy a condition. */
async function tells(
  s: Shop,
  what: string,
  ok: (said: ReturnType<typeof roomOf>) => boolean,
): Promise<ReturnType<typeof roomOf>> {
  await eventually(what, async () => {
    s.later(1001);
    await s.get("/about");
    return ok(roomOf(s.queue.reports));
  });
  s.got = [];
  return roomOf(s.queue.reports);
}

/** idIn returns the id of the unqueued session in a cookie. */
function idIn(cookie: string): string {
  const bytes = Buffer.from(cookie.split("=")[1] ?? "", "base64url");
  assert.deepEqual([...bytes.subarray(9, 25)], new Array(16).fill(0), "it has a ticket");
  assert.equal(bytes.length, 97 + 32, "it has a pass");
  return bytes.subarray(25, 41).toString("base64url");
}

withNet("visitors get in while the gate is open, and stay", async (s) => {
  s.queue.gate = open;
  const first = await s.get("/tickets", { "X-Proofline-Ticket": "forged" });
  const seen = s.isThrough(first);
  assert.deepEqual([seen.headers["x-proofline-ticket"], seen.headers["x-proofline-room"]], [undefined, "sale"]);
  const session = { Cookie: cookieOf(first) };
  await eventually(
    "the server gets a report without another visitor",
    () => roomOf(s.queue.reports).started.length === 1,
  );
  const again = await s.get("/tickets/7", session);
  assert.equal(s.isThrough(again).headers["x-proofline-room"], "sale");
  assert.equal(again.headers["set-cookie"], undefined);
  const script = await s.send("POST", "/tickets", { "Sec-Fetch-Mode": "cors" });
  s.isThrough(script);
  assert.notEqual(cookieOf(script), session.Cookie);
  const { started: told } = await tells(s, "both", ({ started }) => started.length === 2);
  assert.deepEqual(told, [session.Cookie, cookieOf(script)].map(idIn));
  const [report] = s.queue.reports;
  assert.match(report?.node ?? "", /^[A-Za-z0-9_-]{22}$/);
  assert.deepEqual(
    [report?.site, report?.rules_version, report?.kind, report?.rooms[0]?.room, report?.rooms[0]?.mode],
    ["", 0, "edge", s.queue.url, "safety-net"],
  );
  assert.equal(new Set(s.queue.reports.map(({ node }) => node)).size, 1);
  assert.deepEqual(new Set(s.queue.tokens), new Set([`Bearer ${token}`]));
  const { started, rooms } = await s.counts();
  assert.deepEqual([started, rooms.sale?.gate, rooms.sale?.free], [2, "open", 2]);
});

withNet("no more than the share get in", async (s) => {
  s.queue.gate = { ...open, share: 2 };
  for (let i = 0; i < 2; i++) cookieOf(await s.get("/tickets"));
  s.got = [];
  for (let i = 0; i < 3; i++) s.isQueued(await s.get("/tickets"));
  s.queue.gate = { ...open, share: 1 };
  await tells(s, "three were turned away", ({ turned }) => turned >= 3);
  await eventually("one more gets in", async () => (await s.get("/tickets")).status === 200);
  s.got = [];
  s.isQueued(await s.get("/tickets"), "the share is used up again");
  assert.ok((await s.counts()).turned >= 4);
});

withNet("a gate that is shut", async (s) => {
  s.queue.gate = open;
  const session = { Cookie: cookieOf(await s.get("/tickets")) };
  s.queue.gate = { ...open, gate: "shut", share: 0 };
  s.later(1001);
  await s.get("/about");
  await eventually("it is shut", async () => (await s.get("/tickets")).status === 302);
  s.got = [];
  const script = await s.send("GET", "/tickets", { "Sec-Fetch-Mode": "cors" });
  assert.equal(script.status, 403);
  s.isQueued(script);
  s.isThrough(await s.get("/tickets", session), "an active session continues");
  s.isThrough(await s.get("/tickets", await s.enter()), "a pass is good as ever");
  const [name = "", value = ""] = session.Cookie.split("=");
  for (const [what, cookie] of [
    ["changed", `${name}=${value.slice(0, -1)}${value.endsWith("A") ? "B" : "A"}`],
    ["of another room", `__Host-proofline-pass.other=${value}`],
  ] as const) {
    s.isQueued(await s.get("/tickets", { Cookie: cookie }), what);
  }
  assert.equal(roomOf(s.queue.reports).turned, 0);
  assert.equal((await s.counts()).rooms.sale?.gate, "shut");
});

withNet("passes while the gate is open", async (s) => {
  s.queue.gate = open;
  const session = await s.enter();
  const seen = s.isThrough(await s.get("/tickets", session));
  assert.match(String(seen.headers["x-proofline-ticket"]), /^[0-9a-f-]{36}$/);
  s.later(61_000);
  cookieOf(await s.get("/tickets", session));
  await eventually("the room gets a touch, and the server does not", () => s.queue.received.includes("touch"));
  assert.deepEqual(roomOf(s.queue.reports).active, []);
});

withNet("a pass replaces an unqueued session, and is redeemed", async (s) => {
  s.queue.gate = open;
  const free = { Cookie: cookieOf(await s.get("/tickets")) };
  s.got = [];
  const pass = s.queue.pass();
  const arrived = await s.get(`/tickets?proofline_pass=${pass}`, free);
  assert.equal(arrived.status, 303, arrived.body);
  assert.match(
    String(s.isThrough(await s.get("/tickets", { Cookie: cookieOf(arrived) })).headers["x-proofline-ticket"]),
    /^[0-9a-f-]{36}$/,
  );
  assert.deepEqual((await tells(s, "the end", ({ ended }) => ended.length === 1)).ended, [idIn(free.Cookie)]);
  assert.equal(s.queue.received.filter((path) => path.endsWith("/redeem")).length, 1);
  s.queue.gate = { ...open, gate: "shut", share: 0 };
  s.later(1001);
  await s.get("/about");
  await eventually("it is shut", async () => (await s.get("/tickets")).status === 302);
  s.got = [];
  s.isQueued(await s.get("/tickets", free), "with the unqueued session");
});

test("concurrent visitors get no more than the share", async () => {
  const url = "https://queue.example.com/r/sale";
  const reply = JSON.stringify({ rooms: [{ room: url, ...open, share: 3 }] });
  const connector = new Connector({
    key: new Uint8Array(32).fill(7),
    rules: `{"version":1,"rooms":{"sale":{"url":"${url}","mode":"safety-net","bind":"network"}},"rules":[{"name":"all","action":"queue sale"}]}`,
    token,
    server: "https://queue.example.com",
    ask: async (request) => new Response(request.method === "POST" ? reply : "{}"),
    site: async () => new Response("tickets"),
    log: () => {},
  });
  const visit = async () =>
    (await connector.fetch(new Request("https://shop.example.com/tickets"), { client: "198.51.100.7" })).status;
  const all = await Promise.all(Array.from({ length: 60 }, visit));
  assert.equal(all.filter((status) => status === 200).length, 3);
});

withNet("one network cannot use up the share, or shut the gate", async (s) => {
  s.queue.gate = { ...open, share: 1000, per_minute: 80 };
  const from = async (client: string) => (await s.get("/tickets", { "CF-Connecting-IP": client })).status;
  for (let i = 0; i < 16; i++) assert.equal(await from(`198.51.100.${i}`), 200);
  assert.deepEqual(
    [await from("198.51.100.99"), await from("198.51.101.1"), await from("2001:db8:1::1")],
    [302, 200, 200],
  );
  s.got = [];
  s.isQueued(await s.send("GET", "/tickets", { "Sec-Fetch-Mode": "cors" }), "a script");
  const said = await tells(s, "all sessions that began", ({ started }) => started.length === 18);
  assert.equal(said.turned, 0);
  assert.deepEqual([(await s.counts()).crowded, (await s.counts()).turned], [2, 0]);
  s.later(60_000);
  assert.equal(await from("198.51.100.99"), 200);
});

test("the limit of a network", () => {
  for (const [perMinute, nodes, want] of [
    [0, 1, 10],
    [50, 1, 10],
    [59, 1, 11],
    [600, 2, 60],
    [599, 3, 39],
    [12, 1, 10],
    [600, 1000, 10],
    [600, 0, 120],
  ] as const) {
    assert.equal(networkLimit({ perMinute, nodes }), want, `${perMinute} at ${nodes}`);
  }
  const crowd = new NetworkStarts();
  for (let i = 0; i < 3; i++) crowd.add("a", i * 1000);
  crowd.add("b", 2000);
  crowd.add("", 2000);
  assert.deepEqual(
    [59_999, 60_000, 61_999, 62_000].map((now) => crowd.count("a", now)),
    [3, 2, 1, 0],
  );
  assert.deepEqual([crowd.count("", 2000), crowd.size], [0, 0]);
  for (let i = 0; i < 60_005; i++) crowd.add(`network ${i}`, 70_000);
  assert.deepEqual(
    [4, 5, 60_004].map((i) => crowd.count(`network ${i}`, 70_000)),
    [0, 1, 1],
  );
  assert.equal(crowd.size, 60_000);
  assert.deepEqual([crowd.count("network 9", 130_000), crowd.size], [0, 0]);
  crowd.add("a", 200_000);
  assert.deepEqual(
    [199_999, 140_001, 140_000].map((now) => crowd.count("a", now)),
    [1, 1, 0],
    "a clock that was set back",
  );
});

test("an unknown room is logged once", async () => {
  const room = "https://queue.example.com/r/sale";
  const known = { room, gate: "shut", share: 0, per_minute: 60, max_active: 0, nodes: 1, session_ms: 600_000 };
  let [now, said]: [number, object] = [Date.UTC(2027, 0, 1), {}];
  const logged: unknown[] = [];
  const connector = new Connector({
    key: new Uint8Array(32),
    rules: `{"version":1,"rooms":{"sale":{"url":"${room}"}}}`,
    token: "secret",
    server: "https://queue.example.com",
    now: () => now,
    ask: async () => Response.json({ rooms: [said] }),
    site: async () => new Response("site"),
    log: (_, text, detail) => text.startsWith("the server's reply") && logged.push(detail.error),
  });
  for (const [answer, want] of [
    [{ room, error: "unknown" }, ["unknown"]],
    [{ room, error: "unknown" }, []],
    [{ room }, ["no gate"]],
    [{ room }, []],
    [known, []],
    [{ room, error: "unknown" }, ["unknown"]],
  ] as const) {
    [now, said] = [now + 20_000, answer];
    const under: Promise<unknown>[] = [];
    await connector.fetch(new Request("https://shop.example.com/"), {
      client: "192.0.2.1",
      waitUntil: (work) => under.push(work),
    });
    await Promise.all(under);
    assert.deepEqual(logged.splice(0), want, JSON.stringify(answer));
  }
});

test("a gate and network limits", () => {
  const gate = new Gate();
  const update = (share: number) =>
    gate.update({ isOpen: true, perMinute: 1, maxActive: 0, nodes: 1, length: 1000 }, share, gate.take(0), 0);
  update(11);
  for (let i = 0; i < 10; i++) gate.begin(`${i}`, 1000, 0, "a");
  assert.equal(gate.passes(0, "a"), "crowded");
  for (let i = 0; i < 20; i++) assert.equal(gate.passes(0, ""), "begins", "clients without an address have no network");
  gate.begin("b", 1000, 0, "b");
  assert.deepEqual([gate.passes(0, "a"), gate.passes(0, "b")], ["crowded", "turned"], "no share is left");
  assert.deepEqual([gate.passes(6000, "a"), gate.passes(6000, "b")], ["crowded", "waits"], "no reply");
});

withNet("a session that ended at another node is refused", async (s) => {
  s.queue.gate = open;
  const free = { Cookie: cookieOf(await s.get("/tickets")) };
  const stays = { Cookie: cookieOf(await s.get("/tickets")) };
  const session = await s.enter();
  const pass = Buffer.from(String(session.Cookie?.split("=")[1]), "base64url")
    .subarray(25, 41)
    .toString("base64url");
  s.queue.gate = {
    ...open,
    gate: "shut",
    share: 0,
    over: [1, "", "x", `${pass}=`, `${pass.slice(0, -1)}_`, idIn(free.Cookie), pass],
  };
  s.later(1001);
  await s.get("/about");
  await eventually(
    "both are over",
    async () => (await s.get("/tickets", free)).status === 302 && (await s.get("/tickets", session)).status === 302,
  );
  s.got = [];
  s.isThrough(await s.get("/tickets", stays));
  assert.equal((await s.counts()).rooms.sale?.free, 1);
  assert.deepEqual(roomOf(s.queue.reports).ended, [], "the server reported them");
});

withNet("unqueued sessions slide, and end", async (s) => {
  s.queue.gate = open;
  let session = { Cookie: cookieOf(await s.get("/tickets")) };
  const id = idIn(session.Cookie);
  for (let i = 0; i < 6; i++) {
    s.later(390_000);
    session = { Cookie: cookieOf(await s.get("/tickets", session)) };
    assert.equal(idIn(session.Cookie), id);
  }
  await tells(s, "each time", ({ active }) => active.length >= 6);
  s.answer = { "Proofline-Command": "release" };
  assert.match((await s.get("/tickets", session)).headers["set-cookie"]?.[0] ?? "", /Max-Age=0/);
  s.answer = {};
  s.queue.gate = { ...open, gate: "shut" };
  assert.deepEqual((await tells(s, "the end", ({ ended }) => ended.length === 1)).ended, [id]);
  assert.deepEqual(s.queue.received, [], "the room has nothing to do with it");
  s.later(1001);
  await s.get("/about");
  await eventually("it is shut", async () => (await s.get("/tickets")).status === 302);
  s.got = [];
  s.isQueued(await s.get("/tickets", session));
});

withNet("unqueued sessions end at four times their length", async (s) => {
  s.queue.gate = open;
  let cookie = cookieOf(await s.get("/tickets"));
  s.queue.gate = { ...open, gate: "shut" };
  for (let i = 0; i < 6; i++) {
    s.later(395_000);
    const answer = await s.get("/tickets", { Cookie: cookie });
    cookie = cookieOf(answer);
  }
  s.later(31_000);
  s.got = [];
  s.isQueued(await s.get("/tickets", { Cookie: cookie }));
});

withNet("cacheable responses get no cookie", async (s) => {
  s.queue.gate = open;
  s.answer = { "Cache-Control": "public, max-age=60" };
  const answer = await s.get("/tickets");
  s.isThrough(answer);
  assert.equal(answer.headers["set-cookie"], undefined);
  const { started, ended } = await tells(s, "the end", ({ ended }) => ended.length === 1);
  assert.deepEqual(ended, started);
});

withNet("no reply to any report", async (s) => {
  s.isQueued(await s.get("/tickets"), "the room is unknown to the server");
  s.queue.status = 401;
  s.later(6000);
  s.isQueued(await s.get("/tickets"), "the token is no good");
  s.queue.isDown = true;
  s.later(6000);
  await eventually("held", async () => (await s.get(`/tickets?proofline_pass=${s.queue.pass()}`)).status === 503);
  assert.equal((await s.get("/tickets")).status, 503);
  s.queue.isDown = false;
  [s.queue.status, s.queue.gate] = [0, open];
  s.later(6000);
  s.isThrough(await s.get("/tickets"), "now one is");
});

withNet("without replies, reports are repeated, and the node decides alone", async (s) => {
  s.queue.gate = { ...open, share: 100, per_minute: 10, max_active: 7, nodes: 2 };
  const cookies = [cookieOf(await s.get("/tickets"))];
  s.queue.status = 500;
  s.later(6000);
  for (let i = 0; i < 3; i++) {
    cookies.push(cookieOf(await s.get("/tickets")));
    s.later(2000);
  }
  s.got = [];
  s.isQueued(await s.get("/tickets"), "four unqueued sessions are half of seven, rounded up");
  s.queue.gate = { ...s.queue.gate, max_active: 0 };
  s.queue.status = 0;
  const before = s.queue.reports.length;
  s.later(6000);
  s.isThrough(await s.get("/tickets"), "answered again");
  const [again] = s.queue.reports.slice(before);
  assert.deepEqual(again?.rooms[0]?.started, cookies.map(idIn));
  s.queue.status = 500;
  s.later(6000);
  let begun = 0;
  while ((await s.get("/tickets")).status === 200) begun++;
  assert.equal(begun, 0, "five of ten in a minute are this node's");
  s.got = [];
  s.later(61_000);
  while ((await s.get("/tickets")).status === 200) begun++;
  assert.equal(begun, 5, "five of ten in a minute are this node's");
  s.queue.status = 0;
  s.queue.gate = { ...open, gate: "shut", share: 0 };
  s.later(6000);
  await s.get("/tickets");
  s.queue.status = 500;
  s.later(61_000);
  s.got = [];
  s.isQueued(await s.get("/tickets"), "it was shut when the last reply");
});

withShop(
  "fail-open intervals are reported",
  async (s) => {
    s.queue.gate = open;
    s.isQueued(await s.get("/tickets"));
    s.queue.isDown = true;
    await eventually(
      "it is found down",
      async () => (await s.get(`/tickets?proofline_pass=${s.queue.pass()}`)).status === 503,
    );
    s.later(31_000);
    await eventually("open", async () => (await s.get(`/tickets?proofline_pass=${s.queue.pass()}`)).status === 200);
    s.later(5000);
    assert.equal((await s.get("/tickets")).status, 200);
    s.got = [];
    s.queue.isDown = false;
    s.later(10_001);
    await eventually("closed again", async () => (await s.get("/tickets")).status === 302);
    s.later(10_001);
    await s.get("/about");
    const failOpen = () => s.queue.reports.flatMap((report) => report.rooms[0]?.fail_open ?? []);
    await eventually("it is reported", () => failOpen().length > 0);
    await eventually("the answer is read, and later reports have none", async () => {
      const before = s.queue.reports.length;
      s.later(10_001);
      await s.get("/about");
      await eventually("another report", () => s.queue.reports.length > before);
      return s.queue.reports.at(-1)?.rooms[0]?.fail_open === undefined;
    });
    const [one, ...others] = failOpen();
    assert.ok(
      others.every(({ id }) => id === one?.id),
      "one interval, by its id",
    );
    assert.match(one?.id ?? "", /^[A-Za-z0-9_-]{22}$/);
    assert.ok((one?.from ?? 0) < (one?.until ?? 0) && (one?.requests ?? 0) >= 2, JSON.stringify(one));
    assert.equal(s.queue.reports[0]?.rooms[0]?.mode, "always");
  },
  ',"failure":"fail-open-after 30s"',
  bindings,
);
