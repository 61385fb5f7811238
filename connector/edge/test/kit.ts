// A room that signs passes, a site, and a connector in workerd between them.
import assert from "node:assert/strict";
import { createHash, createHmac, generateKeyPairSync, type KeyObject, randomUUID, sign } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server, request as send } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { Miniflare } from "miniflare";
import type { Stats } from "../src/connector.ts";

/** serve listens on this machine and returns the address. */
export async function serve(listener: RequestListener): Promise<{ server: Server; url: string }> {
  const server = createServer(listener);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** Answer is a client's response. */
export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Report is a connector's report. */
export interface Report {
  node: string;
  site: string;
  rules_version: number;
  kind: string;
  version: string;
  counts: Record<string, number>;
  rooms: {
    room: string;
    mode: string;
    started?: string[];
    active?: string[];
    ended?: string[];
    turned?: number;
    fail_open?: { id: string; from: number; until: number; requests: number }[];
  }[];
}

/** textOf returns a request's body. */
async function textOf(r: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of r) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

const encode = (v: unknown): string => Buffer.from(JSON.stringify(v)).toString("base64url");

/** Claims are the claims of a pass. */
export type Claims = Record<string, unknown>;

/** Queue is a room's server, whose responses a test sets. */
export class Queue {
  url = "";
  ahead = 0; // lead of its clock, in milliseconds
  isDown = false; // responds with 503
  status = 0; // of responses to POST; 0: the normal one
  life = 900_000; // length of sessions, in milliseconds
  kid = "k1";
  keys = generateKeyPairSync("ed25519");
  received: string[] = []; // POST requests: paths, and touch or release for each session
  clients: (string | undefined)[] = []; // pseudonyms of redeeming clients
  said = "ok"; // word for sessions in batches
  reports: Report[] = [];
  gate: Record<string, unknown> | undefined; // in replies to reports; undefined: the room is unknown
  signed = ""; // text at /v1/sites/shop/rules
  tokens: (string | undefined)[] = []; // received
  asked = 0; // requests for keys
  isLost = false; // responses to redemptions get lost
  readonly used = new Map<string, string>(); // redeeming client by pass
  server: Server | undefined;

  async start(): Promise<this> {
    const { server, url } = await serve((r, w) => {
      const path = (r.url ?? "").replace("/r/sale", "");
      const answer = (status: number, body: unknown = {}): void => {
        w.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
      };
      if (this.isDown) return answer(503);
      if (path === "/.well-known/openid-configuration")
        return answer(200, { issuer: this.url, jwks_uri: `${this.url}/jwks.json` });
      if (path === "/jwks.json") {
        this.asked++;
        return answer(200, {
          keys: [{ ...this.keys.publicKey.export({ format: "jwk" }), alg: "EdDSA", use: "sig", kid: this.kid }],
        });
      }
      if (path === "/v1/sites/shop/rules") {
        this.tokens.push(r.headers.authorization);
        w.writeHead(200, { "Content-Type": "text/plain; charset=utf-8" }).end(this.signed);
        return;
      }
      if (!path.endsWith("/redeem")) return void textOf(r).then((body) => this.#post(path, r.headers, body, answer));
      this.received.push(path);
      this.clients.push(r.headers["proofline-client"] as string | undefined);
      if (this.status) return answer(this.status);
      const id = path.split("/")[2] ?? "";
      const client = this.used.get(id);
      if (client !== undefined && (client === "" || client !== r.headers["proofline-client"])) return answer(409);
      this.used.set(id, String(r.headers["proofline-client"] ?? ""));
      if (this.isLost) return void r.socket.destroy();
      const now = Date.now() + this.ahead;
      return answer(200, {
        pass_id: id,
        ends: new Date(now + this.life).toISOString(),
        ends_at_most: new Date(now + 4 * this.life).toISOString(),
      });
    });
    [this.server, this.url] = [server, `${url}/r/sale`];
    return this;
  }

  /** post answers batches and reports, which must be declared as JSON. */
  #post(
    path: string,
    headers: IncomingHttpHeaders,
    body: string,
    answer: (status: number, body?: unknown) => void,
  ): void {
    if (headers["content-type"] !== "application/json") return answer(415);
    if (path === "/v1/connectors/report") {
      this.tokens.push(headers.authorization);
      const report = JSON.parse(body) as Report;
      this.reports.push(report);
      if (this.status) return answer(this.status);
      const recorded = (room: Report["rooms"][0]) => ({ recorded: (room.fail_open ?? []).map(({ id }) => id) });
      return answer(200, {
        rooms: report.rooms.map((room) => ({
          room: room.room,
          ...(this.gate ? { ...this.gate, ...recorded(room) } : { error: "unknown" }),
        })),
      });
    }
    if (path !== "/sessions/batch") return answer(404);
    const { touch, release } = JSON.parse(body) as { touch: string[]; release: string[] };
    this.received.push(...touch.map(() => "touch"), ...release.map(() => "release"));
    answer(this.status || 200, { touch: touch.map(() => this.said), release: release.map(() => this.said) });
  }

  /** home is the URL for reports. */
  get home(): string {
    return this.url.slice(0, -"/r/sale".length);
  }

  /** claims returns the claims of a new pass. */
  claims(): Claims {
    const now = Math.floor((Date.now() + this.ahead) / 1000);
    return {
      iss: this.url,
      aud: [this.url.slice(7)],
      sub: randomUUID(),
      jti: randomUUID(),
      iat: now,
      nbf: now,
      exp: now + 900,
      position: 1,
      lane: "general",
    };
  }

  /** pass returns a pass, with new claims by default. */
  pass(claims: Claims = this.claims(), header: Claims = {}, key: KeyObject = this.keys.privateKey): string {
    const text = `${encode({ alg: "EdDSA", typ: "JWT", kid: this.kid, ...header })}.${encode(claims)}`;
    return `${text}.${sign(null, Buffer.from(text), key).toString("base64url")}`;
  }

  /** symmetric returns a pass signed with the public key as an HMAC secret. */
  symmetric(): string {
    const text = `${encode({ alg: "HS256", kid: this.kid })}.${encode(this.claims())}`;
    const { x = "" } = this.keys.publicKey.export({ format: "jwk" });
    return `${text}.${createHmac("sha256", Buffer.from(x, "base64url")).update(text).digest("base64url")}`;
  }
}

/** Bindings are a test's bindings, which may depend on the room. */
export type Bindings = Record<string, string> | ((queue: Queue) => Record<string, string>);

/** Shop is a site behind a connector. */
export class Shop {
  readonly queue = new Queue();
  got: { url: string; headers: IncomingHttpHeaders; body: string }[] = []; // requests that reached the site
  answer: Record<string, string> = {}; // headers of the site's responses
  ahead = 0; // lead of the connector's clock
  address = new URL("http://127.0.0.1");
  #worker: Miniflare | undefined;
  #site: Server | undefined;

  /** open protects /tickets, with further members of the room, bindings and rules. */
  static async open(members = "", bindings: Bindings = {}, more = ""): Promise<Shop> {
    const shop = new Shop();
    await shop.queue.start();
    const { server, url } = await serve((r, w) => {
      let body = "";
      r.on("data", (chunk: Buffer) => (body += chunk.toString()));
      r.on("end", () => {
        shop.got.push({ url: r.url ?? "", headers: r.headers, body });
        w.writeHead(200, shop.answer).end("tickets");
      });
    });
    server.on("upgrade", (r, socket) => {
      shop.got.push({ url: r.url ?? "", headers: r.headers, body: "" });
      const accept = createHash("sha1")
        .update(`${r.headers["sec-websocket-key"] ?? ""}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
        .digest("base64");
      socket.end(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n\x81\x02hi`,
      );
    });
    shop.#site = server;
    const all = {
      PROOFLINE_KEY: "0123456789abcdef0123456789abcdef",
      PROOFLINE_RULES: shop.rules(members, more),
      PROOFLINE_ORIGIN: url,
      ...(typeof bindings === "function" ? bindings(shop.queue) : bindings),
    };
    shop.#worker = new Miniflare({
      modules: true,
      scriptPath: "node_modules/.cache/worker/worker.js",
      compatibilityDate: "2026-03-01",
      bindings: all,
      host: "127.0.0.1",
      port: 0,
    });
    shop.address = await shop.#worker.ready;
    return shop;
  }

  rules(members = "", more = ""): string {
    return `{"version":1,"rooms":{"sale":{"url":"${this.queue.url}"${members}}},"rules":[${more}{"name":"tickets","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"},{"name":"secret","when":{"path":{"prefix":"/secret"}},"action":"block"}]}`;
  }

  async close(): Promise<void> {
    await this.#worker?.dispose();
    this.#site?.close();
    this.queue.server?.close();
  }

  /** later advances the clocks. */
  later(ms: number): void {
    this.ahead += ms;
    this.queue.ahead += ms;
  }

  /** send sends a request unchanged. */
  send(method: string, path: string, headers: Record<string, string> = {}, body = ""): Promise<Answer> {
    const all = {
      Host: "shop.example.com",
      "CF-Connecting-IP": "198.51.100.7",
      "X-Test-Ahead": String(this.ahead),
      ...headers,
    };
    return new Promise((done, fail) => {
      const r = send(
        { host: this.address.hostname, port: this.address.port, method, path, headers: all, agent: false },
        (w) => {
          let text = "";
          w.on("data", (chunk: Buffer) => (text += chunk.toString()));
          w.on("end", () => done({ status: w.statusCode ?? 0, headers: w.headers, body: text }));
        },
      );
      r.on("upgrade", (w, socket, head) => {
        socket.on("data", (chunk: Buffer) => (head = Buffer.concat([head, chunk])));
        socket.on("close", () =>
          done({ status: w.statusCode ?? 0, headers: w.headers, body: head.toString("latin1") }),
        );
      });
      r.on("error", fail);
      r.end(body);
    });
  }

  /** get loads a page. */
  get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.send("GET", path, { Accept: "text/html", ...headers });
  }

  /** enter enters with a pass and returns the headers of the session. */
  async enter(pass = this.queue.pass()): Promise<Record<string, string>> {
    const answer = await this.get(`/tickets?proofline_pass=${pass}`);
    assert.equal(answer.status, 303, answer.body);
    return { Cookie: cookieOf(answer) };
  }

  async counts(): Promise<Stats> {
    return JSON.parse((await this.send("GET", "/counts")).body) as never;
  }

  /** isQueued fails unless a response sends the visitor to the room, and the site got nothing. */
  isQueued(answer: Answer, what = ""): void {
    const to = answer.status === 403 ? answer.headers["proofline-queue"] : answer.headers.location;
    assert.equal(String(to).split("?")[0], this.queue.url, `${what}: status ${answer.status} ${answer.body}`);
    assert.equal(this.got.length, 0, what);
  }

  /** isThrough fails unless the site responded, and returns the request it got. */
  isThrough(answer: Answer, what = ""): { url: string; headers: IncomingHttpHeaders; body: string } {
    const got = this.got.splice(0);
    assert.equal(got.length, 1, `${what}: status ${answer.status} ${answer.body}`);
    return got[0] as never;
  }
}

/** cookieOf returns the only cookie that a response sets, as NAME=VALUE. */
export function cookieOf(answer: Answer): string {
  const cookies = answer.headers["set-cookie"] ?? [];
  assert.equal(cookies.length, 1, `status ${answer.status}`);
  assert.match(cookies[0] ?? "", /^__Host-proofline-pass\.sale=[\w-]+; Path=\/; HttpOnly; Secure; SameSite=Lax$/);
  return cookies[0]?.split(";")[0] ?? "";
}

/** withShop runs a test with a new shop. */
export function withShop(
  name: string,
  run: (shop: Shop) => Promise<void>,
  members = "",
  bindings: Bindings = {},
  more = "",
): void {
  test(name, async () => {
    const shop = await Shop.open(members, bindings, more);
    try {
      await run(shop);
    } finally {
      await shop.close();
    }
  });
}

/** eventually waits until a condition holds. */
export async function eventually(what: string, ok: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 2000; i++) {
    if (await ok()) return;
    await new Promise((done) => setTimeout(done, 10));
  }
  assert.fail(`not within 20 s: ${what}`);
}
