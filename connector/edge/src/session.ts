// Session cookies, which all connectors of a site with the same key can read: see
// session.go of package connector. Members of fixed length are strings of bytes
// (bytes.ts), times are milliseconds since 1970.
import { masked, parseAddress } from "./address.ts";
import { base64url, fromBase64url, fromBytes, toBytes, utf8 } from "./bytes.ts";

export const cookiePrefix = "__Host-proofline-pass.";
const maxCookie = 4000; // characters of a value, as browsers limit it
const fixedSize = 1 + 8 + 16 + 16 + 4 * 8 + 8 + 16;
const version = "\x01";

export const noBind = "\0".repeat(8);
export const noKey = "\0".repeat(16);
export const noTicket = "\0".repeat(16);

export interface Session {
  room: string; // see tagOf
  ticket: string; // zeros: unqueued session
  pass: string; // id of the pass; of an unqueued session, its own id
  issued: number; // when this cookie was made
  ends: number; // unless extended
  most: number; // latest end, however active the visitor is
  length: number; // duration after each touch
  bind: string; // network or browser family; zeros: not bound to one
  key: string; // thumbprint of the browser's key; zeros: none
  token: string; // the pass, sent with touches and releases; empty: unqueued session
}

/** isUnqueued reports whether the session began without a pass, at an open gate. */
export function isUnqueued(s: Session): boolean {
  return s.ticket === noTicket;
}

async function digest(text: string): Promise<string> {
  return fromBytes(new Uint8Array(await crypto.subtle.digest("SHA-256", toBytes(text))));
}

/** tagOf returns a room's identifier in cookies. */
export async function tagOf(url: string, origin: string): Promise<string> {
  return (await digest(utf8(`proofline room\n${url}\n${origin}`))).slice(0, 8);
}

/** prefixOf returns a client's network: 4 or 16 bytes; empty: unknown address. */
export function prefixOf(client: string): string {
  const address = parseAddress(client);
  return fromBytes(Uint8Array.from(address ? masked(address, address.length === 4 ? 24 : 48) : []));
}

/** networkOf returns an identifier of a client's network; never zero. */
export async function networkOf(client: string): Promise<string> {
  const name = (await digest("proofline network\n" + prefixOf(client))).slice(0, 8);
  return String.fromCharCode(name.charCodeAt(0) | 1) + name.slice(1);
}

/** Signer signs cookies and checks them. */
export class Signer {
  readonly #secret: Uint8Array<ArrayBuffer>;
  #cookies: CryptoKey | undefined;
  #clients: CryptoKey | undefined;

  constructor(secret: Uint8Array<ArrayBuffer>) {
    this.#secret = secret;
  }

  /** key is derived, because the same secret may serve other purposes. */
  async #key(): Promise<CryptoKey> {
    this.#cookies ??= await this.#derived("proofline connector session 1");
    return this.#cookies;
  }

  async #derived(label: string): Promise<CryptoKey> {
    const own = await crypto.subtle.sign("HMAC", await hmacKey(this.#secret), toBytes(label));
    return hmacKey(new Uint8Array(own));
  }

  /**
   * clientOf returns the client's pseudonym for a room, so that a lost response can be repeated. The user agent's
   * characters are bytes.
   */
  async clientOf(url: string, client: string, agent: string): Promise<string> {
    this.#clients ??= await this.#derived("proofline connector client 1");
    const network = Array.from(await networkOf(client), (c) => c.charCodeAt(0).toString(16).padStart(2, "0")).join("");
    const sum = await crypto.subtle.sign("HMAC", this.#clients, toBytes(`${utf8(url)}\n${network}\n${agent}`));
    return base64url(new Uint8Array(sum).slice(0, 16));
  }

  /** format returns the cookie's value. */
  async format(s: Session): Promise<string> {
    const times = [s.issued, s.ends, s.most, s.length].map(int64).join("");
    const body = version + s.room + s.ticket + s.pass + times + s.bind + s.key + s.token;
    const sum = await crypto.subtle.sign("HMAC", await this.#key(), toBytes(body));
    return base64url(toBytes(body + fromBytes(new Uint8Array(sum))));
  }

  /** parse parses a cookie's value; undefined: it was not signed by us. */
  async parse(text: string): Promise<Session | undefined> {
    if (text.length > maxCookie) return undefined;
    const bytes = fromBase64url(text);
    if (!bytes || bytes.length < fixedSize + 32) return undefined;
    const body = bytes.slice(0, -32);
    if (!(await crypto.subtle.verify("HMAC", await this.#key(), bytes.slice(-32), body)) || body[0] !== 1)
      return undefined;
    const all = fromBytes(body);
    const view = new DataView(body.buffer);
    const [issued = 0, ends = 0, most = 0, length = 0] = [41, 49, 57, 65].map((at) => Number(view.getBigInt64(at)));
    return {
      room: all.slice(1, 9),
      ticket: all.slice(9, 25),
      pass: all.slice(25, 41),
      issued,
      ends,
      most,
      length,
      bind: all.slice(73, 81),
      key: all.slice(81, 97),
      token: all.slice(97),
    };
  }
}

function hmacKey(secret: Uint8Array<ArrayBuffer>): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
}

function int64(n: number): string {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigInt64(0, BigInt(n));
  return fromBytes(bytes);
}

/** uuidText returns the canonical text of 16 bytes. */
export function uuidText(id: string): string {
  const hex = Array.from(id, (c) => c.charCodeAt(0).toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** parseUUID parses the canonical text form, and no other. */
export function parseUUID(text: string): string | undefined {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)) return undefined;
  return text.replaceAll("-", "").replace(/../g, (hex) => String.fromCharCode(parseInt(hex, 16)));
}
