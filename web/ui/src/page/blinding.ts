import { type Blinded, blind, unblind, type Wish } from "./blind.ts";
import type { Shown } from "./confirmation.ts";

/** What is stored until the issuer sends the visitor back. */
interface Kept extends Blinded {
  seats?: number;
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
  send(): void {
    const seats = this.#form.querySelector("select")?.value; // in a room with parties
    const blinded = { ...(this.#kept ?? blind(this.#wish)), ...(seats !== undefined && { seats: Number(seats) }) };
    localStorage.setItem(this.#key, JSON.stringify(blinded));
    this.#form.querySelector<HTMLInputElement>("[name=blinded]")!.value = blinded.message;
    this.#form.submit();
  }

  /** The credential that the issuer's signature hides; undefined if it is not for this ticket. */
  credential(signature: string): Shown | undefined {
    const evidence = this.#kept && unblind(this.#wish, this.#kept.factor, signature);
    return evidence === undefined ? undefined : { method: this.#wish.method, evidence };
  }

  /** The seats that the visitor chose before going to the issuer; undefined: the room has no parties. */
  get seats(): number | undefined {
    return this.#kept?.seats;
  }

  /** Forgets what was stored, once the credential has been used. */
  forget(): void {
    localStorage.removeItem(this.#key);
  }

  get #kept(): Kept | undefined {
    const text = localStorage.getItem(this.#key);
    return text === null ? undefined : (JSON.parse(text) as Kept);
  }
}
