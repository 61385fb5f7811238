// Proofs that a browser has the key of its session: see
// connector/rules/FORMAT.md, "Sessions and browsers". Texts are bytes (bytes.ts).
import { base64url, fromBase64url, fromBytes, toBytes, utf8 } from "./bytes.ts";
import { noKey, type Session } from "./session.ts";

export const proofPrefix = "__Host-proofline-proof.";
const proofSize = 8 + 65 + 64; // the time, a point on P-256 (uncompressed), r and s
export const proofFresh = 120_000; // milliseconds: how old a proof may be where a page is opened, which can prove it anew
const proofLeast = 600_000; // else; or as long as the session lasts from each activity on
const proofAhead = 60_000;
const maxLooks = 16; // proofs of a request that are looked at: a browser sends one for each room
const maxProofs = 10_000; // that are known to be right without another look

async function digest(text: string): Promise<string> {
  return fromBytes(new Uint8Array(await crypto.subtle.digest("SHA-256", toBytes(text))));
}

/** familyOf names the family of a browser: its User-Agent without versions, which change while a browser runs. It is never zeros. */
export async function familyOf(agent: string): Promise<string> {
  const name = (await digest("proofline browser\n" + agent.replace(/[0-9._]/g, ""))).slice(0, 8);
  return String.fromCharCode(name.charCodeAt(0) | 1) + name.slice(1);
}

/** subjectOf is what a browser's proofs of a session are about: the session, by a name that tells nothing of the pass. */
export async function subjectOf(url: string, { pass }: Session): Promise<string> {
  return base64url(toBytes((await digest(`proofline visit\n${utf8(url)}\n${pass}`)).slice(0, 16)));
}

/** ageOf returns how old a proof of a session may be for a request, in milliseconds. */
export function ageOf(session: Session, opensPage: boolean): number {
  return opensPage ? proofFresh : Math.max(proofLeast, session.length);
}

/** Proofs checks proofs, and remembers those that are right. */
export class Proofs {
  readonly #known = new Set<string>();
  readonly #looks = new WeakMap<Request, number>();

  /** keyOf returns the thumbprint of the key of a proof of a session, at most so old; undefined: there is none by the session's key. */
  async keyOf(request: Request, texts: string[], url: string, session: Session, age: number, now: number): Promise<string | undefined> {
    for (const text of texts) {
      const looks = this.#looks.get(request) ?? 0;
      if (looks >= maxLooks) break;
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
    const key = await crypto.subtle.importKey("raw", proof.slice(8, 73), { name: "ECDSA", namedCurve: "P-256" }, false, ["verify"]);
    return await crypto.subtle.verify({ name: "ECDSA", hash: "SHA-256" }, key, proof.slice(73), toBytes(text));
  } catch {
    return false; // the key is no point on the curve
  }
}
