// Proofs that a browser has the key of its session: see
// connector/rules/FORMAT.md, "Sessions and browsers". Strings are bytes (bytes.ts).
import { base64url, fromBase64url, fromBytes, toBytes, utf8 } from "./bytes.ts";
import { noKey, type Session } from "./session.ts";

export const proofPrefix = "__Host-proofline-proof.";
const proofSize = 8 + 65 + 64; // time, uncompressed point on P-256, r and s
export const pageProofTTL = 120_000; // milliseconds, when loading a page, which can renew the proof
const minProofTTL = 600_000; // otherwise, or the session's length if that is longer
const proofAhead = 60_000;
const maxProofsRead = 16; // per request: a browser sends one per room
const maxProofs = 10_000; // remembered valid proofs

async function digest(text: string): Promise<string> {
  return fromBytes(new Uint8Array(await crypto.subtle.digest("SHA-256", toBytes(text))));
}

/** familyOf returns an identifier of a browser family: a hash of the User-Agent without version numbers. Never zero. */
export async function familyOf(agent: string): Promise<string> {
  const name = (await digest("proofline browser\n" + agent.replace(/[0-9._]/g, ""))).slice(0, 8);
  return String.fromCharCode(name.charCodeAt(0) | 1) + name.slice(1);
}

/** subjectOf returns the subject of a session's proofs: an identifier that does not reveal the pass. */
export async function subjectOf(url: string, { pass }: Session): Promise<string> {
  return base64url(toBytes((await digest(`proofline visit\n${utf8(url)}\n${pass}`)).slice(0, 16)));
}

/** ageOf returns the maximum age of a session's proof for a request, in milliseconds. */
export function ageOf(session: Session, opensPage: boolean): number {
  return opensPage ? pageProofTTL : Math.max(minProofTTL, session.length);
}

/** Proofs verifies proofs, and remembers valid ones. */
export class Proofs {
  readonly #known = new Set<string>();
  readonly #looks = new WeakMap<Request, number>();

  /** keyOf returns the thumbprint of the key of a valid proof of at most the given age; undefined: none. */
  async keyOf(
    request: Request,
    texts: string[],
    url: string,
    session: Session,
    age: number,
    now: number,
  ): Promise<string | undefined> {
    for (const text of texts) {
      const looks = this.#looks.get(request) ?? 0;
      if (looks >= maxProofsRead) break;
      this.#looks.set(request, looks + 1);
      const bytes = fromBase64url(text);
      if (bytes?.length !== proofSize) continue;
      const at = Number(new DataView(bytes.buffer).getBigInt64(0));
      if (at > now + proofAhead || at <= now - age) continue;
      const key = (await digest(fromBytes(bytes.slice(8, 73)))).slice(0, 16);
      if (session.key !== noKey && session.key !== key) continue;
      const name = `${text}\n${session.pass}`;
      if (this.#known.has(name)) return key;
      if (!(await isOf(bytes, `proofline proof 1\n${await subjectOf(url, session)}\n${at}`))) continue;
      this.#remember(name);
      return key;
    }
    return undefined;
  }

  #remember(name: string): void {
    this.#known.add(name);
    if (this.#known.size > maxProofs) this.#known.delete(this.#known.values().next().value ?? "");
  }
}

async function isOf(proof: Uint8Array<ArrayBuffer>, text: string): Promise<boolean> {
  try {
    const key = await crypto.subtle.importKey(
      "raw",
      proof.slice(8, 73),
      { name: "ECDSA", namedCurve: "P-256" },
      false,
      ["verify"],
    );
    return await crypto.subtle.verify({ name: "ECDSA", hash: "SHA-256" }, key, proof.slice(73), toBytes(text));
  } catch {
    return false; // not a point on the curve
  }
}
