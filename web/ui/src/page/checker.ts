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
import { getPublic } from "./http.ts";
import type { Answer, Question } from "./proof.ts";

/** The most methods that a room may have, each of which a ticket shows once. */
const maxMethods = 16;

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

async function ofPlace({ prefix, ticket, visitor }: Extract<Question, { prefix: string }>): Promise<Answer> {
  const evidence = await gather(httpSource(prefix), visitor, { merits: () => meritsOf(`${prefix}tickets/${ticket}`) });
  return { lines: checkPlace(visitor, evidence), bundle: bundleOf(visitor, evidence), origin: visitor.origin };
}

/** The indexes of what a ticket has shown after its arrival, which the server lists with the names of the methods. */
async function meritsOf(ticket: string): Promise<bigint[]> {
  const shown = await getPublic(`${ticket}/credentials`);
  return [...shown.matchAll(/^[^ ]+ ([0-9]{1,18})$/gm)].slice(0, maxMethods).map(([, index]) => BigInt(index!));
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
