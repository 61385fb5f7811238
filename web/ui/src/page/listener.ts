import { browserTimers, type Timers } from "./poll.ts";

/** What a listener needs of an EventSource. */
export type Source = Pick<EventSource, "onmessage" | "onerror" | "close">;

/** How long to do without after a stream that failed, in milliseconds. */
const rest = 60_000;

/**
 * Hears of every change of a room at once, for the few who are near the front.
 * It is a help beside polling, which goes on slowly: a stream that fails is
 * given up for a while.
 */
export class Listener {
  readonly #open: () => Source;
  readonly #hear: (text: string) => void;
  readonly #timers: Timers;
  #source: Source | undefined;
  #restsUntil = -Infinity;
  #isHeard = false;

  constructor(open: () => Source, hear: (text: string) => void, timers: Timers = browserTimers) {
    this.#open = open;
    this.#hear = hear;
    this.#timers = timers;
  }

  /** Something came from the stream that is open now. */
  get isHeard(): boolean {
    return this.#isHeard;
  }

  /** Listens, or no longer. */
  want(wanted: boolean): void {
    if (!wanted) this.#close();
    else if (!this.#source && this.#timers.now() >= this.#restsUntil) this.#listen();
  }

  #listen(): void {
    const source = this.#open();
    this.#source = source;
    source.onmessage = ({ data }: MessageEvent<string>) => {
      if (this.#source !== source) return;
      this.#isHeard = true;
      this.#hear(data);
    };
    source.onerror = () => {
      if (this.#source !== source) return;
      this.#close();
      this.#restsUntil = this.#timers.now() + rest;
    };
  }

  #close(): void {
    this.#source?.close();
    this.#source = undefined;
    this.#isHeard = false;
  }
}
