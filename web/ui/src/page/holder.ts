import { getMain, post, Refusal } from "./http.ts";
import type { Memory } from "./memory.ts";
import { retry } from "./retry.ts";
import { exclusive, fragmentOf, hashOf, isOwn, makeSecret, stateOf } from "./secret.ts";

/** What a visitor may join with. */
export interface Wish {
  again?: boolean; // a new place, since the old one is gone
  seats?: number; // in a room with parties
}

/** The result of a join. */
export interface Joined {
  main: HTMLElement;
  /** This browser already had a place, and keeps that one. */
  kept: boolean;
}

/**
 * The visitor's hold on a place: the secret, which is in a cookie that no
 * script can read, or in the fragment of the address where cookies are blocked.
 */
export class Holder {
  readonly #room: string;
  readonly #lang: string;
  readonly #memory: Memory;
  readonly #onTrouble: (failure: unknown) => void;
  #secret: string | undefined;

  constructor(room: string, lang: string, memory: Memory, onTrouble: (failure: unknown) => void) {
    this.#room = room;
    this.#lang = lang;
    this.#memory = memory;
    this.#onTrouble = onTrouble;
  }

  /** Reports whether the secret is only in the address of the page. */
  get isBlocked(): boolean {
    return this.#secret !== undefined;
  }

  /** Joins, or takes the place of a given secret: once, however many tabs try. */
  join(given?: string, wish: Wish = {}): Promise<Joined> {
    return exclusive(
      `proofline ${this.#room}`,
      async () => {
        const secret = given ?? this.#memory.pending ?? makeSecret();
        this.#memory.pending = secret;
        const answer = await this.#line(secret, wish);
        const ticket = String(answer.ticket);
        if (typeof answer.receipt === "string") this.#memory.keep(ticket, { receipt: answer.receipt });
        const main = await retry(() => this.#joined(ticket), this.#onTrouble);
        this.#memory.pending = undefined;
        this.#hold(secret, main.dataset.cookie === undefined);
        return { main, kept: answer.kept === true };
      },
      navigator.locks,
    );
  }

  /** Fetches the page for a ticket, or for the cookie. */
  main(ticket: string | undefined): Promise<HTMLElement> {
    return ticket === undefined ? getMain(this.#fragment(), "same-origin") : getMain(this.#fragment(ticket), "omit");
  }

  /** Claims the place; returns the URL to go to, if any. */
  async claim(): Promise<string | undefined> {
    const answer = await retry(() => post(`${this.#room}/claim`, this.#own()), this.#onTrouble);
    const target = answer.location;
    return typeof target === "string" && /^https?:\/\//.test(target) ? target : undefined;
  }

  /** Gives the place up, or asks for more time to claim it. */
  async change(deed: "leave" | "extend"): Promise<void> {
    await retry(() => post(`${this.#room}/${deed}`, this.#own()), this.#onTrouble);
  }

  /** The link that takes the place to another device, once. */
  async link(): Promise<string> {
    const { link } = await post(`${this.#room}/link`, this.#own());
    if (typeof link !== "string") throw new Error("no link");
    return link;
  }

  /** The secret in the address, if this page put it there. Links from elsewhere have no such state. */
  get own(): string | undefined {
    const { secret } = fragmentOf(location.hash);
    return secret !== undefined && isOwn(secret, history.state) ? secret : undefined;
  }

  /** Takes over the place of a link, unless this browser has one. */
  async take(code: string): Promise<Joined> {
    const answer = await post(`${this.#room}/take`, { code });
    const main = await retry(() => this.#joined(String(answer.ticket)), this.#onTrouble);
    const secret = answer.secret;
    if (typeof secret === "string") this.#hold(secret, main.dataset.cookie === undefined);
    return { main, kept: answer.kept === true };
  }

  /** Removes a link's fragment from the address, and restores the secret if this page keeps it there. */
  forgetLink(): void {
    if (this.#secret !== undefined) this.#hold(this.#secret, true);
    else history.replaceState(null, "", location.pathname + location.search);
  }

  async #line(secret: string, wish: Wish): Promise<Record<string, unknown>> {
    try {
      return await retry(() => post(`${this.#room}/line`, { secret, ...wish }), this.#onTrouble);
    } catch (failure) {
      this.#memory.pending = undefined;
      throw failure;
    }
  }

  /** Fetches the page after a join, with the cookie if there is one. Another node may not know the ticket for a moment. */
  async #joined(ticket: string): Promise<HTMLElement> {
    try {
      return await getMain(this.#fragment(ticket), "same-origin");
    } catch (failure) {
      if (failure instanceof Refusal && failure.status === 404) throw new Error("not known yet");
      throw failure;
    }
  }

  #hold(secret: string, blocked: boolean): void {
    this.#secret = blocked ? secret : undefined;
    if (blocked) history.replaceState(stateOf(secret), "", hashOf(secret));
    else if (location.hash !== "") this.forgetLink();
  }

  #own(): { secret?: string } {
    return this.#secret === undefined ? {} : { secret: this.#secret };
  }

  #fragment(ticket?: string): string {
    const query = new URLSearchParams({ fragment: "1", lang: this.#lang, ...(ticket !== undefined && { ticket }) });
    return `${this.#room}?${query}`;
  }
}
