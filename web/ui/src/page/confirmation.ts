import type { Blinded, Wish } from "./blind.ts";
import { post } from "./http.ts";

type Blind = typeof import("./blind.ts");

/** Reads the blind signature with which an issuer sends a visitor back, in the fragment of the address. */
export function signatureOf(hash: string): { method: string; signature: string } | undefined {
  const found = /^([a-z0-9-]{1,32}) ([0-9a-f]{512,1024})$/.exec(
    new URLSearchParams(hash.slice(1)).get("blind_signature") ?? "",
  );
  return found ? { method: found[1]!, signature: found[2]! } : undefined;
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
    const blinded = this.#kept ?? blind(this.#wish);
    localStorage.setItem(this.#key, JSON.stringify(blinded));
    this.#form.querySelector<HTMLInputElement>("[name=blinded]")!.value = blinded.message;
    this.#form.submit();
  }

  /** Joins with the issuer's signature. Throws if it is not for this ticket, or the room refuses it. */
  async finish(room: string, signature: string): Promise<void> {
    const { unblind } = await this.#load();
    const { ticket, lane, method } = this.#wish;
    const evidence = this.#kept && unblind(this.#wish, this.#kept.factor, signature);
    if (evidence === undefined) throw new NotOurs();
    await post(`${room}/join`, { ticket, lane, credentials: [{ method, evidence }] });
    localStorage.removeItem(this.#key);
  }

  get #kept(): Blinded | undefined {
    const text = localStorage.getItem(this.#key);
    return text === null ? undefined : (JSON.parse(text) as Blinded);
  }

  async #load(): Promise<Blind> {
    return (await import(this.#form.dataset.script!)) as Blind;
  }
}

/** A signature that is not for what this browser has asked. */
export class NotOurs extends Error {}
