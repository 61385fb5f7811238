import type { Blinded, Wish } from "./blind.ts";
import { post, postForm } from "./http.ts";

type Blind = typeof import("./blind.ts");

/** What is stored until the issuer sends the visitor back. */
interface Kept extends Blinded {
  seats?: number;
}

/** Reads the blind signature with which an issuer sends a visitor back, in the fragment of the address. */
export function signatureOf(hash: string): { method: string; signature: string } | undefined {
  const found = /^([a-z0-9-]{1,32}) ([0-9a-f]{512,1024})$/.exec(
    new URLSearchParams(hash.slice(1)).get("blind_signature") ?? "",
  );
  return found ? { method: found[1]!, signature: found[2]! } : undefined;
}

/** A credential as a join has it. */
export interface Shown {
  method: string;
  nullifier?: string;
  evidence: string;
}

/** Reads the credential with which an issuer sends a visitor back, in the fragment of the address. */
export function credentialOf(hash: string): { ticket: string; shown: Shown } | undefined {
  const fields = new URLSearchParams(hash.slice(1));
  const found = /^([a-z0-9-]{1,32}) ([0-9a-f]{64}) ([0-9a-f]{128})$/.exec(fields.get("credential") ?? "");
  if (!found) return undefined;
  const [, method, nullifier, evidence] = found as unknown as [string, string, string, string];
  return { ticket: fields.get("ticket") ?? "", shown: { method, nullifier, evidence } };
}

/** A form that leads to an issuer who signs blindly. */
export class Confirmation {
  readonly #form: HTMLFormElement;
  readonly #wish: Wish;
  readonly #key: string; // of the storage

  constructor(form: HTMLFormElement) {
    this.#form = form;
    const { ticket = "", lane = "", method = "", key = "", entry = "" } = form.dataset;
    this.#wish = { ticket, lane, method, key, entry };
    this.#key = `proofline blind ${entry} ${method} ${lane} ${ticket}`;
  }

  /**
   * Sends the form with a blinded message: each time the same one, because an issuer signs once for an account.
   * Throws if this browser stores nothing, because then the signature would be of no use.
   */
  async send(): Promise<void> {
    const { blind } = await this.#load();
    const seats = this.#form.querySelector("select")?.value; // in a room with parties
    const blinded = { ...(this.#kept ?? blind(this.#wish)), ...(seats !== undefined && { seats: Number(seats) }) };
    localStorage.setItem(this.#key, JSON.stringify(blinded));
    this.#form.querySelector<HTMLInputElement>("[name=blinded]")!.value = blinded.message;
    this.#form.submit();
  }

  /** The credential that the issuer's signature hides. Throws if it is not for this ticket. */
  async credential(signature: string): Promise<Shown> {
    const { unblind } = await this.#load();
    const evidence = this.#kept && unblind(this.#wish, this.#kept.factor, signature);
    if (evidence === undefined) throw new NotOurs();
    return { method: this.#wish.method, evidence };
  }

  /**
   * Joins with the issuer's signature, or shows it for one more lot. Throws if it is not for this ticket, or the room
   * refuses it.
   */
  async finish(room: string, signature: string): Promise<void> {
    const { ticket, lane } = this.#wish;
    const seats = this.#kept?.seats;
    const shown = await this.credential(signature);
    if (this.#form.dataset.lot !== undefined)
      await postForm(`${room}/credential`, { ticket, lane, method: shown.method, evidence: shown.evidence });
    else await post(`${room}/join`, { ticket, lane, ...(seats !== undefined && { seats }), credentials: [shown] });
    localStorage.removeItem(this.#key);
  }

  get #kept(): Kept | undefined {
    const text = localStorage.getItem(this.#key);
    return text === null ? undefined : (JSON.parse(text) as Kept);
  }

  async #load(): Promise<Blind> {
    return (await import(this.#form.dataset.script!)) as Blind;
  }
}

/** A signature that is not for what this browser has asked. */
export class NotOurs extends Error {}
