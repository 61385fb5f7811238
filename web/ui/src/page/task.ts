import { messageOf } from "../audit/subject.ts";
import { concat } from "../check/bytes.ts";
import { fromHex } from "../check/hex.ts";
import { uuidBytes } from "../check/uuid.ts";
import { confirmationOf, credentialOf, type Shown, signatureOf } from "./confirmation.ts";
import { getPublic, post, Refusal } from "./http.ts";
import { Memory } from "./memory.ts";
import { retry } from "./retry.ts";
import { chance, usualTries } from "./search.ts";
import type { Progress, Start } from "./solver.ts";
import { number, pageLocale } from "./words.ts";

/** What a task is doing; the page has words for each, except idle. */
type State = "idle" | "begins" | "running" | "paused" | "solved" | "away" | "wrong" | "expired" | "broken";

/** What the browser stores of a task. None of it is of use for another ticket. */
interface Stored {
  on?: boolean; // it runs, or the visitor has paused it
  next?: number; // all smaller numbers were tried
  found?: string; // the solution, in hex
  asked?: boolean; // the visitor went to the issuer for this lane
  shown?: Shown; // the issuer's credential
}

/** A page that has made no progress for so long was stopped by the browser, in milliseconds. */
const rested = 3000;
/** How long the rate is measured before the page says how long the task takes, in milliseconds. */
const measured = 1000;

/** The work that a lane needs, and the join that follows. */
export class Task {
  static #current: Task | undefined; // one at a time
  readonly #data: DOMStringMap;
  readonly #key: string;
  readonly #locale = pageLocale();
  #box: HTMLElement | undefined;
  #state: State = "idle";
  #stored: Stored;
  #worker: Worker | undefined;
  #run = 0; // number of the latest start; earlier ones must do nothing more
  #tries = 0; // of the latest progress, decaying, in #took milliseconds
  #took = 0;
  #total = 0; // milliseconds of work in this page
  #heard = 0; // when progress was last heard of
  #usual = 0; // as shown, in seconds
  #hasRested = false;

  constructor(box: HTMLElement) {
    this.#data = { ...box.dataset };
    this.#key = Task.keyOf(box);
    this.#stored = read(this.#key);
    if (this.#stored.on === false) this.#state = "paused";
  }

  static keyOf({ dataset: { entry, method, lane, ticket } }: HTMLElement): string {
    return `proofline work ${entry} ${method} ${lane} ${ticket}`;
  }

  /** Shows the task in a box of the page, which may be a new one. */
  show(box: HTMLElement): void {
    if (box === this.#box) return;
    this.#box = box;
    for (const button of box.querySelectorAll<HTMLElement>("[data-do]"))
      button.addEventListener("click", () => (button.dataset.do === "pause" ? this.pause() : void this.start()));
    this.#section?.addEventListener("submit", () => this.#keep({ asked: true }));
    this.#render();
  }

  /** Ends the work while the page has no box for it, for instance because the line is full. */
  hide(): void {
    this.#box = undefined;
    this.#stop();
  }

  /** Starts if the visitor has pressed the button that led here, and has not paused since. */
  begin(): void {
    if (this.#stored.on ?? this.#data.begin !== undefined) void this.start();
  }

  /** Goes on with what the page did before it was loaded again. */
  resume(): void {
    if (this.#stored.on) void this.start();
  }

  /** Reports whether a fragment of the address has the confirmation that this lane needs. */
  takes(hash: string): boolean {
    const { needs, ticket } = this.#data;
    const credential = credentialOf(hash);
    if (credential) return credential.shown.method === needs && credential.ticket === ticket;
    return signatureOf(hash)?.method === needs && this.#stored.asked === true;
  }

  /** Keeps the confirmation in a fragment of the address, and starts. */
  async confirm(hash: string): Promise<void> {
    try {
      const signature = signatureOf(hash)?.signature;
      const form = this.#section?.querySelector<HTMLFormElement>("form[data-blind]");
      const shown =
        signature !== undefined && form
          ? (await confirmationOf(form)).credential(signature)
          : credentialOf(hash)?.shown;
      if (!shown) return signature === undefined ? undefined : this.#become("wrong");
      this.#keep({ shown });
    } catch {
      return this.#become("wrong");
    }
    await this.start();
  }

  async start(): Promise<void> {
    if (!this.#isConfirmed) return;
    if (Task.#current !== this) Task.#current?.pause();
    Task.#current = this;
    this.#stop();
    const run = this.#run;
    this.#keep({ on: true });
    if (this.#stored.found !== undefined) return this.#join(this.#stored.found);
    const round = await this.#round(run);
    if (run === this.#run && round !== undefined) this.#solve(round);
  }

  pause(): void {
    this.#stop();
    this.#keep({ on: false });
    this.#become("paused");
  }

  /** Handles that the page is visible again. */
  look(): void {
    if (this.#state !== "running" || Date.now() - this.#heard < rested) return;
    this.#hasRested = true;
    this.#render();
  }

  /** The beacon's signature that the work is for, once it is in the transcript. */
  async #round(run: number): Promise<Uint8Array | undefined> {
    if (this.#data.round) return fromHex(this.#data.round);
    for (;;) {
      const state = await retry(
        async () =>
          JSON.parse(await getPublic(`${this.#data.room}/state`)) as {
            now: string;
            work?: { due: string; signature: string | null };
          },
        () => this.#become("away", run),
      ).catch(() => undefined);
      if (run !== this.#run) return undefined;
      if (!state?.work) return void this.#become("expired");
      if (state.work.signature !== null) return fromHex(state.work.signature);
      this.#become("begins");
      const left = Date.parse(state.work.due) - Date.parse(state.now);
      await sleep(Math.min(Math.max(left, 0), 60_000) + 500 + 1000 * Math.random()); // not all at once
      if (run !== this.#run) return undefined;
    }
  }

  #solve(round: Uint8Array): void {
    const { entry = "", lane = "", method = "", ticket = "", solver = "" } = this.#data;
    const subject = { room: fromHex(entry, 32), lane, ticket: uuidBytes(ticket), round };
    const start: Start = {
      message: concat(messageOf(subject, method, new Uint8Array()), round),
      bits: Number(this.#data.bits),
      next: this.#stored.next ?? 0,
    };
    [this.#tries, this.#took, this.#total, this.#usual, this.#heard] = [0, 0, 0, 0, Date.now()];
    const worker = new Worker(solver, { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<Progress>) => this.#hear(data);
    worker.onerror = () => {
      this.#stop();
      this.#become("broken");
    };
    worker.postMessage(start);
    this.#worker = worker;
    this.#become("running");
  }

  #hear({ next, tries, took, found }: Progress): void {
    if (this.#hasRested && Date.now() - this.#heard < rested) this.#hasRested = this.#total < 5000;
    this.#heard = Date.now();
    this.#tries = 0.8 * this.#tries + tries;
    this.#took = 0.8 * this.#took + took;
    this.#total += took;
    this.#keep({ next, ...(found !== undefined && { found }) });
    this.#render();
    if (found === undefined) return;
    this.#stop();
    void this.#join(found);
  }

  /** Joins with the solution, as often as it takes. */
  async #join(evidence: string): Promise<void> {
    const { room = "", ticket = "", lane = "", method = "" } = this.#data;
    const credentials = [{ method, evidence }, ...(this.#stored.shown ? [this.#stored.shown] : [])];
    this.#become("solved");
    try {
      const answer = await retry(
        () => post(`${room}/join`, { ticket, lane, credentials }),
        () => this.#become("away"),
      );
      if (typeof answer.receipt === "string") new Memory(room).keep(ticket, { receipt: answer.receipt });
      this.#forget();
      location.replace(room); // the server knows the visitor by the cookie
    } catch (failure) {
      this.#forget();
      const isWrong = failure instanceof Refusal && [400, 403].includes(failure.status);
      this.#become(isWrong ? "wrong" : "expired");
    }
  }

  #stop(): void {
    this.#run++;
    this.#worker?.terminate();
    this.#worker = undefined;
  }

  #keep(more: Stored): void {
    Object.assign(this.#stored, more);
    attempt(() => localStorage.setItem(this.#key, JSON.stringify(this.#stored)));
  }

  #forget(): void {
    this.#stored = {};
    attempt(() => localStorage.removeItem(this.#key));
  }

  #become(state: State, run = this.#run): void {
    if (run !== this.#run) return;
    this.#state = state;
    this.#render();
  }

  get #isConfirmed(): boolean {
    return this.#data.needs === "" || this.#stored.shown !== undefined;
  }

  get #section(): HTMLElement | undefined {
    return this.#box?.closest<HTMLElement>("section") ?? undefined;
  }

  #render(): void {
    const box = this.#box;
    if (!box) return;
    const state = this.#state;
    const isConfirmed = this.#isConfirmed;
    const tries = this.#stored.next ?? 0;
    const bits = Number(this.#data.bits);
    const rate = this.#took === 0 ? 0 : (1000 * this.#tries) / this.#took;
    this.#section?.querySelector("[data-unconfirmed]")?.toggleAttribute("hidden", isConfirmed);
    for (const words of box.querySelectorAll<HTMLElement>("[data-work-is]"))
      toggle(words, words.dataset.workIs === state);
    toggle(box.querySelector("[data-do=start]"), isConfirmed && state === "idle");
    toggle(box.querySelector("[data-do=pause]"), state === "running" || state === "begins");
    toggle(box.querySelector("[data-do=continue]"), isConfirmed && state === "paused");
    toggle(box.querySelector("[data-bar]"), state === "running" || (state === "paused" && tries > 0));
    const isMeasured = state === "running" && this.#total >= measured;
    const isLong = tries > usualTries(bits);
    toggle(box.querySelector("[data-more=rate]"), isMeasured);
    toggle(box.querySelector("[data-more=usual]"), isMeasured && !isLong);
    toggle(box.querySelector("[data-more=luck]"), isLong);
    toggle(box.querySelector("[data-more=background]"), this.#hasRested);
    box.querySelector("progress")!.value = chance(tries, bits);
    const percent = new Intl.NumberFormat(this.#locale, { style: "percent" });
    write(box.querySelector("[data-chance]"), percent.format(Math.floor(100 * chance(tries, bits)) / 100));
    if (!isMeasured) return;
    write(box.querySelector("[data-rate]"), number(Number(rate.toPrecision(2)), this.#locale));
    const usual = usualTries(bits) / rate;
    if (usual > 1.3 * this.#usual || usual < this.#usual / 1.3) this.#usual = usual; // it is read out when it changes
    write(box.querySelector("[data-usual]"), lasting(this.#usual, this.#locale));
  }
}

/** Writes a number of seconds, rounded up, in the unit that suits it. */
export function lasting(seconds: number, locale: string): string {
  const [size, unit] = seconds <= 90 ? [1, "second"] : seconds <= 5400 ? [60, "minute"] : [3600, "hour"];
  const step = seconds / size > 10 ? 5 : 1;
  const n = Math.max(1, Math.ceil(seconds / size / step) * step);
  return new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "long" }).format(n);
}

function read(key: string): Stored {
  return attempt(() => JSON.parse(localStorage.getItem(key) ?? "{}") as Stored) ?? {};
}

/** Blocked or full storage is not an error: the task begins again if the page is loaded again. */
function attempt<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}

function toggle(element: HTMLElement | null, shown: boolean): void {
  if (element && element.hidden === shown) element.hidden = !shown;
}

function write(element: HTMLElement | null, text: string): void {
  if (element && element.textContent !== text) element.textContent = text;
}

function sleep(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
