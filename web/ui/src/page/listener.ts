import { browserTimers, type Timers } from "./poll.ts";

/** The part of an EventSource that a listener uses. */
export type Source = Pick<EventSource, "onmessage" | "onerror" | "close">;

/** How long to wait after a stream has failed, in milliseconds. */
const rest = 60_000;

/**
 * Receives every change of a room at once, for visitors near the front. It
 * supplements polling, which continues at a slower pace, so a stream that fails is
 * closed for a while.
 */
export class Listener {
  readonly #open: () => Source;
  readonly #receive: (text: string) => void;
  readonly #timers: Timers;
  #source: Source | undefined;
  #restsUntil = -Infinity;
  #hasReceived = false;

  constructor(open: () => Source, receive: (text: string) => void, timers: Timers = browserTimers) {
    this.#open = open;
    this.#receive = receive;
    this.#timers = timers;
  }

  /** Reports whether the open stream has delivered anything. */
  get hasReceived(): boolean {
    return this.#hasReceived;
  }

  /** Starts or stops listening. */
  want(wanted: boolean): void {
    if (!wanted) this.#close();
    else if (!this.#source && this.#timers.now() >= this.#restsUntil) this.#listen();
  }

  #listen(): void {
    const source = this.#open();
    this.#source = source;
    source.onmessage = ({ data }: MessageEvent<string>) => {
      if (this.#source !== source) return;
      this.#hasReceived = true;
      this.#receive(data);
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
    this.#hasReceived = false;
  }
}
