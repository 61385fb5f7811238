import { Refusal } from "./http.ts";
import { backoff, browserTimers, type Timers } from "./poll.ts";

/**
 * Repeats an action until it succeeds or is refused permanently. The delays grow
 * and vary, and are never shorter than the server asks for. onTrouble is called with
 * every temporary failure; it may throw to give up.
 */
export async function retry<T>(
  act: () => Promise<T>,
  onTrouble: (failure: unknown) => void,
  timers: Timers = browserTimers,
): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await act();
    } catch (failure) {
      if (failure instanceof Refusal && !failure.isTemporary) throw failure;
      onTrouble(failure);
      const asked = failure instanceof Refusal ? failure.retryAfter : 0;
      const wait = Math.max(asked, backoff(failures) / 2) * (1 + 0.3 * timers.random());
      await new Promise<void>((done) => timers.set(done, wait));
    }
  }
}
