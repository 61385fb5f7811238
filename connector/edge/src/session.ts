// A visitor's time on the site, in a cookie that all connectors of a site with
// one key read: see session.go of package connector. Members of fixed length
// are texts of bytes (bytes.ts), times milliseconds since 1970.
import { masked, parseAddress } from "./address.ts";
import { base64url, fromBase64url, fromBytes, toBytes, utf8 } from "./bytes.ts";

export const cookiePrefix = "__Host-proofline-pass.";
const maxCookie = 4000; // characters of a value, which browsers keep
const fixedSize = 1 + 8 + 16 + 16 + 4 * 8 + 8;
const version = "\x01";

export const noBind = "\0".repeat(8);

export interface Session {
  room: string; // which room: see tagOf
  ticket: string; // whose
  pass: string; // of which pass
  issued: number; // when this cookie was made
  ends: number; // unless the visitor is active
  most: number; // beyond which nothing helps
  length: number; // how long it lasts from each touch on
  bind: string; // the network it is tied to, zeros for none
  token: string; // the pass, which touches and releases show
}

async function digest(text: string): Promise<string> {
  return fromBytes(new Uint8Array(await crypto.subtle.digest("SHA-256", toBytes(text))));
}

/** tagOf tells rooms apart in cookies. */
export async function tagOf(url: string, origin: string): Promise<string> {
  return (await digest(utf8(`proofline room\n${url}\n${origin}`))).slice(0, 8);
}

/** networkOf names a visitor's network, which is never zero. */
export async function networkOf(client: string): Promise<string> {
  const address = parseAddress(client);
  const network = address ? masked(address, address.length === 4 ? 24 : 48) : [];
  const name = (await digest("proofline network\n" + fromBytes(Uint8Array.from(network)))).slice(0, 8);
  return String.fromCharCode(name.charCodeAt(0) | 1) + name.slice(1);
}

/** Signer signs cookies and checks them. */
export class Signer {
  readonly #secret: Uint8Array<ArrayBuffer>;
  #key: CryptoKey | undefined;

  constructor(secret: Uint8Array<ArrayBuffer>) {
    this.#secret = secret;
  }

  /** key is derived, so that the same secret may serve something else. */
  async key(): Promise<CryptoKey> {
    if (this.#key) return this.#key;
    const from = await hmacKey(this.#secret);
    const own = await crypto.subtle.sign("HMAC", from, toBytes("proofline connector session 1"));
    this.#key = await hmacKey(new Uint8Array(own));
    return this.#key;
  }

  /** format returns a cookie's value. */
  async format(s: Session): Promise<string> {
    const times = [s.issued, s.ends, s.most, s.length].map(int64).join("");
    const body = version + s.room + s.ticket + s.pass + times + s.bind + s.token;
    const sum = await crypto.subtle.sign("HMAC", await this.key(), toBytes(body));
    return base64url(toBytes(body + fromBytes(new Uint8Array(sum))));
  }

  /** parse reads a cookie's value; undefined: it is not ours, or was changed. */
  async parse(text: string): Promise<Session | undefined> {
    if (text.length > maxCookie) return undefined;
    const bytes = fromBase64url(text);
    if (!bytes || bytes.length < fixedSize + 32) return undefined;
    const body = bytes.slice(0, -32);
    if (!(await crypto.subtle.verify("HMAC", await this.key(), bytes.slice(-32), body)) || body[0] !== 1) return undefined;
    const all = fromBytes(body);
    const view = new DataView(body.buffer);
    const [issued = 0, ends = 0, most = 0, length = 0] = [41, 49, 57, 65].map((at) => Number(view.getBigInt64(at)));
    return { room: all.slice(1, 9), ticket: all.slice(9, 25), pass: all.slice(25, 41), issued, ends, most, length, bind: all.slice(73, 81), token: all.slice(81) };
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

/** parseUUID reads the canonical text, and no other. */
export function parseUUID(text: string): string | undefined {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)) return undefined;
  return text.replaceAll("-", "").replace(/../g, (hex) => String.fromCharCode(parseInt(hex, 16)));
}
