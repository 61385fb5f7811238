// Passes: JSON Web Tokens of a room, signed with EdDSA (RFC 8037).
import { fromBase64url, toBytes } from "./bytes.ts";
import { isObject, type Json } from "./match.ts";
import { parseUUID } from "./session.ts";

export const maxToken = 2048; // characters
const leeway = 5; // seconds, for clock skew

/** Ed25519 verifies a signature: key of 32 bytes, signature of 64. */
export type Ed25519 = (
  key: Uint8Array<ArrayBuffer>,
  signature: Uint8Array<ArrayBuffer>,
  text: Uint8Array<ArrayBuffer>,
) => Promise<boolean>;

/** webEd25519 is the platform's own Ed25519. */
export const webEd25519: Ed25519 = async (key, signature, text) =>
  crypto.subtle.verify(
    "Ed25519",
    await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]),
    signature,
    text,
  );

/** Keys are a room's public keys by id. */
export type Keys = Map<string, Uint8Array<ArrayBuffer>>;

/** Pass is a verified pass. */
export interface Pass {
  token: string;
  ticket: string; // 16 bytes
  pass: string; // 16 bytes
  id: string; // as text
}

function readPart(part: string): Json | undefined {
  try {
    const bytes = fromBase64url(part);
    const value: unknown = bytes && JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** issuerOf returns the issuer in a token without verifying it. */
export function issuerOf(token: string): string {
  const parts = token.split(".");
  const issuer = parts.length === 3 && token.length <= maxToken ? readPart(parts[1] ?? "")?.iss : undefined;
  return typeof issuer === "string" ? issuer : "";
}

/**
 * verify verifies a pass of the room; undefined: invalid or expired. Exceptions of
 * key are passed on.
 */
export async function verify(
  token: string,
  room: { url: string; origin: string },
  now: number,
  key: (id: string) => Promise<Uint8Array<ArrayBuffer> | undefined>,
  ed25519: Ed25519,
): Promise<Pass | undefined> {
  const parts = token.split(".");
  const [head = "", body = "", mark = ""] = parts;
  if (parts.length !== 3 || token.length > maxToken) return undefined;
  const [header, claims, signature] = [readPart(head), readPart(body), fromBase64url(mark)];
  if (!header || !claims || signature?.length !== 64) return undefined;
  const id = header.kid;
  // A token must not name its own key.
  if (
    header.alg !== "EdDSA" ||
    typeof id !== "string" ||
    !Object.keys(header).every((name) => ["alg", "kid", "typ"].includes(name))
  )
    return undefined;
  const found = await key(id);
  if (!found || !(await ed25519(found, signature, toBytes(`${head}.${body}`)))) return undefined;
  if (!isCurrent(claims, now / 1000) || claims.iss !== room.url || !isFor(claims.aud, room.origin)) return undefined;
  const [ticket, pass] = [uuid(claims.sub), uuid(claims.jti)];
  return ticket && pass ? { token, ticket, pass, id: String(claims.jti) } : undefined;
}

function uuid(v: unknown): string | undefined {
  return typeof v === "string" ? parseUUID(v) : undefined;
}

function isFor(audience: unknown, origin: string): boolean {
  return audience === origin || (Array.isArray(audience) && audience.length === 1 && audience[0] === origin);
}

/** isCurrent checks the times, in whole seconds. */
function isCurrent(claims: Json, now: number): boolean {
  const { exp, nbf, iat } = claims;
  if (typeof exp !== "number" || typeof nbf !== "number" || (iat !== undefined && typeof iat !== "number"))
    return false;
  return now < Math.trunc(exp) + leeway && now >= Math.trunc(nbf) - leeway && now >= Math.trunc(iat ?? 0) - leeway;
}

/** usableKeys returns the keys of a JSON Web Key Set that can sign passes. */
export function usableKeys(set: unknown): Keys {
  const keys: Keys = new Map();
  const list = isObject(set) && Array.isArray(set.keys) ? (set.keys as unknown[]) : [];
  for (const k of list) {
    if (!isObject(k) || typeof k.x !== "string" || typeof k.kid !== "string" || k.kid === "") continue;
    const x = fromBase64url(k.x);
    const isFine =
      k.kty === "OKP" && k.crv === "Ed25519" && (k.use || "sig") === "sig" && (k.alg || "EdDSA") === "EdDSA";
    if (x?.length === 32 && isFine) keys.set(k.kid, x);
  }
  return keys;
}
