// The worker that checks a place. It is a separate script, so that pages load it
// only for a check, and a check never blocks the page.
import {
  checkPlace,
  type Evidence,
  formatBundle,
  gather,
  httpSource,
  parseBundle,
  type Visitor,
} from "../check/index.ts";
import type { Answer, Question } from "./proof.ts";

addEventListener("message", ({ data }: MessageEvent<Question>) => {
  void answer(data).then((result) => postMessage(result));
});

async function answer(question: Question): Promise<Answer> {
  try {
    return "file" in question ? ofFile(question) : await ofPlace(question);
  } catch (failure) {
    return { failure: String(failure) };
  }
}

async function ofPlace({ prefix, visitor }: Extract<Question, { prefix: string }>): Promise<Answer> {
  const evidence = await gather(httpSource(prefix), visitor);
  return { lines: checkPlace(visitor, evidence), bundle: bundleOf(visitor, evidence), origin: visitor.origin };
}

/** Checks a proof of this room against the room's key, not the one in the file. */
function ofFile({ file, origin, vkey }: Extract<Question, { file: Uint8Array }>): Answer {
  const { visitor, evidence } = parseBundle(file);
  const isOurs = visitor.origin === origin;
  return {
    lines: checkPlace(isOurs ? { ...visitor, vkey } : visitor, evidence),
    bundle: undefined,
    origin: visitor.origin,
  };
}

/** The proof to save; undefined if a file cannot hold it, for instance because it is too long. */
function bundleOf(visitor: Visitor, evidence: Evidence): string | undefined {
  try {
    return formatBundle(visitor, evidence);
  } catch {
    return undefined;
  }
}
