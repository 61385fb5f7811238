import { browserTimers, type Timers } from "../../page/poll.ts";

/** The events of a stream. */
export interface Hearing {
  past(text: string): void;
  figures(text: string): void;
  failed(): void;
}

/** The state of the figures on the page. */
export type State =
  | { is: "connecting" | "live" | "hidden" }
  | { is: "stale"; since: number } // the stream is open, but silent
  | { is: "waiting"; until: number } // for the next attempt
  | { is: "refused"; status: number }; // permanently

const staleAfter = 5_000;
const longest = 30_000;
/** How long a page may be hidden before its stream is closed. */
const hiddenAfter = 5_000;

/**
 * Keeps a stream of figures open while the page is visible. It reconnects after longer and longer waits, unless the
 * server's response says that this is pointless.
 */
export class Feed {
  readonly #open: (hearing: Hearing) => { close(): void };
  readonly #ask: () => Promise<number>; // the status that the stream would get; 0: no answer
  readonly #listener: Pick<Hearing, "past" | "figures">;
  readonly #tell: (state: State) => void;
  readonly #timers: Timers;
  #stream: { close(): void } | undefined;
  #failures = 0;
  #timer: number | undefined; // of the next attempt, or for staleness
  #hiding: number | undefined;
  #isHidden = false;
  #isOver = false;

  constructor(
    open: (hearing: Hearing) => { close(): void },
    ask: () => Promise<number>,
    listener: Pick<Hearing, "past" | "figures">,
    tell: (state: State) => void,
    timers: Timers = browserTimers,
  ) {
    this.#open = open;
    this.#ask = ask;
    this.#listener = listener;
    this.#tell = tell;
    this.#timers = timers;
  }

  start(): void {
    if (this.#stream || this.#isOver || this.#isHidden) return;
    this.#cancel();
    this.#tell({ is: "connecting" });
    let stream: { close(): void } | undefined;
    const isCurrent = () => this.#stream === stream;
    const hearing: Hearing = {
      past: (text) => isCurrent() && this.#listener.past(text),
      figures: (text) => isCurrent() && this.#take(text),
      failed: () => isCurrent() && void this.#fail(),
    };
    stream = this.#open(hearing);
    this.#stream = stream;
  }

  /** The page was hidden or shown. */
  show(isVisible: boolean): void {
    if (this.#hiding !== undefined) this.#timers.clear(this.#hiding);
    this.#hiding = undefined;
    if (!isVisible) {
      this.#hiding = this.#timers.set(() => this.#hide(), hiddenAfter);
    } else if (this.#isHidden) {
      this.#isHidden = false;
      this.#failures = 0;
      this.start();
    }
  }

  #hide(): void {
    this.#hiding = undefined;
    this.#isHidden = true;
    this.#cancel();
    this.#close();
    if (!this.#isOver) this.#tell({ is: "hidden" });
  }

  #take(text: string): void {
    this.#failures = 0;
    this.#cancel();
    this.#listener.figures(text);
    this.#tell({ is: "live" });
    const since = this.#timers.now();
    this.#timer = this.#timers.set(() => this.#tell({ is: "stale", since }), staleAfter);
  }

  async #fail(): Promise<void> {
    this.#close();
    this.#cancel();
    const status = this.#failures === 0 ? 204 : await this.#ask(); // the first time, the stream has probably reached its maximum length
    if (this.#stream || this.#isHidden) return;
    if (status === 401 || status === 403 || status === 404) {
      this.#isOver = true;
      this.#tell({ is: "refused", status });
      return;
    }
    const wait = Math.min(longest, 500 * 2 ** Math.min(this.#failures++, 10)) * (0.75 + 0.5 * this.#timers.random());
    this.#tell({ is: "waiting", until: this.#timers.now() + wait });
    this.#timer = this.#timers.set(() => this.start(), wait);
  }

  #close(): void {
    this.#stream?.close();
    this.#stream = undefined;
  }

  #cancel(): void {
    if (this.#timer !== undefined) this.#timers.clear(this.#timer);
    this.#timer = undefined;
  }
}

/** Opens a stream in the browser. */
export function openStream(url: string): (hearing: Hearing) => { close(): void } {
  return (hearing) => {
    const source = new EventSource(url);
    source.onmessage = ({ data }: MessageEvent<string>) => hearing.figures(data);
    source.addEventListener("past", ({ data }: MessageEvent<string>) => hearing.past(data));
    source.onerror = () => hearing.failed();
    return source;
  };
}

/** Requests the status that a stream would get. */
export function askStatus(url: string): () => Promise<number> {
  return async () => {
    try {
      const answer = await fetch(url, { method: "HEAD", headers: { accept: "text/event-stream" }, cache: "no-store" });
      return answer.status;
    } catch {
      return 0;
    }
  };
}
