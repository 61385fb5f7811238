// The worker that checks a place: a script of its own, so that the check is
// loaded only when it is made, and never holds up the page.
import { checkPlace, formatBundle, gather, httpSource, type Evidence, type Visitor } from "../check/index.ts";
import type { Answer, Question } from "./proof.ts";

addEventListener("message", ({ data }: MessageEvent<Question>) => {
  void answer(data).then((result) => postMessage(result));
});

async function answer({ prefix, visitor }: Question): Promise<Answer> {
  try {
    const evidence = await gather(httpSource(prefix), visitor);
    return { lines: checkPlace(visitor, evidence), bundle: bundleOf(visitor, evidence) };
  } catch (failure) {
    return { failure: String(failure) };
  }
}

/** The proof to save; what no file can hold, such as more than the longest one, cannot be saved. */
function bundleOf(visitor: Visitor, evidence: Evidence): string | undefined {
  try {
    return formatBundle(visitor, evidence);
  } catch {
    return undefined;
  }
}
