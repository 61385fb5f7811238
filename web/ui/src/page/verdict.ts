import type { Memory } from "./memory.ts";
import { backoff, browserTimers, type Timers } from "./poll.ts";
import { check, isPending, overall, summary } from "./proof.ts";
import type { Screen } from "./screen.ts";

const again = 15_000; // milliseconds, while something is pending
const attempts = 12;

/** The check that runs automatically on the page of the line, and its result in one sentence. */
export class Verdict {
  readonly #screen: Screen;
  readonly #memory: Memory;
  readonly #timers: Timers;
  #ticket: string | undefined;
  #shown: string | undefined; // the sentence
  #status = ""; // its colour

  constructor(screen: Screen, memory: Memory, timers: Timers = browserTimers) {
    this.#screen = screen;
    this.#memory = memory;
    this.#timers = timers;
  }

  /** Shows the result on a page, and starts the check if this ticket has not been checked. */
  show(data: DOMStringMap): void {
    const { ticket } = data;
    if (!this.#screen.find("[data-verdict]") || ticket === undefined) return;
    this.#render();
    if (this.#ticket === ticket) return;
    this.#ticket = ticket;
    // All visitors of a group are drawn at once, so checks are spread over some seconds.
    this.#later(2_000 + 8_000 * this.#timers.random(), () => this.#run(data, 1));
  }

  async #run(data: DOMStringMap, attempt: number): Promise<void> {
    this.#shown ??= "running";
    this.#render();
    let wait = again;
    try {
      const { lines } = await check(data, this.#memory);
      this.#shown = summary(lines);
      this.#status = overall(lines);
      if (!isPending(lines)) attempt = attempts;
    } catch {
      if (this.#shown === "running") this.#shown = undefined; // the result is unknown
      wait = Math.max(again, backoff(attempt));
    }
    this.#render();
    if (attempt < attempts) this.#later(wait, () => this.#run(data, attempt + 1));
  }

  #later(ms: number, run: () => Promise<void>): void {
    this.#timers.set(() => void run(), ms);
  }

  #render(): void {
    const box = this.#screen.find("[data-verdict]");
    if (!box) return;
    box.hidden = this.#shown === undefined;
    box.dataset.status = this.#shown === "running" ? "running" : this.#status;
    this.#screen.choose("data-overall", this.#shown);
  }
}
