import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";

import { fromHex } from "../check/hex.ts";
import { parseKey, parseWitnessKey } from "../check/note.ts";
import { audit, type Progress } from "./audit.ts";
import { open } from "./files.ts";
import type { Trust } from "./level.ts";
import { format } from "./print.ts";

const help = `Check a whole transcript with a program of its own, written from the documents.

usage: npm run audit -- DIR|URL [--vkey KEY] [--beacon HASH]... [--witness KEY]... [--json]

  DIR|URL        a room as it is published: https://example.com/r/sale, or a copy of it
  --vkey KEY     key of the log; default is the one that the transcript names
  --beacon HASH  a drand chain that the operator does not run; that of quicknet is known
  --witness KEY  a witness who is independent of the operator
  --json         print the report as JSON
  -h, --help     print this

A KEY may be @FILE, a file that holds it. Exit codes: 0 verified, 1 a check
failed, 2 wrong usage, 3 the transcript could not be read.
`;

const exit = { ok: 0, failed: 1, usage: 2, unread: 3 };

const options = {
  vkey: { type: "string" },
  beacon: { type: "string", multiple: true },
  witness: { type: "string", multiple: true },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

interface Task extends Trust {
  from: string;
  json: boolean;
}

/** Parses the arguments; undefined: help. Throws an error to print if they are wrong. */
function taskOf(args: string[]): Task | undefined {
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  if (values.help) return undefined;
  const [from, ...more] = positionals;
  if (from === undefined || more.length > 0) throw new Error("give one directory or URL");
  const keyOf = (word: string): string =>
    word.startsWith("@") ? readFileSync(inPlace(word.slice(1)), "utf8").trim() : word;
  const vkey = values.vkey === undefined ? undefined : keyOf(values.vkey);
  const beacons = values.beacon ?? [];
  const witnesses = (values.witness ?? []).map(keyOf);
  if (vkey !== undefined) parseKey(vkey);
  for (const key of witnesses) parseWitnessKey(key);
  for (const hash of beacons) fromHex(hash, 32);
  return { from: /^https?:/.test(from) ? from : inPlace(from), vkey, beacons, witnesses, json: values.json ?? false };
}

/** Resolves a path in the directory where npm was called: npm runs scripts in the package's own. */
function inPlace(path: string): string {
  return resolve(process.env.INIT_CWD ?? ".", path);
}

/** A stream that a command writes to. */
export interface Output {
  isTTY?: boolean;
  write(text: string): unknown;
}

/** Shows the progress, only on a terminal. */
function progressOn(terminal: Output): Progress | undefined {
  if (!terminal.isTTY) return undefined;
  let shown = -1;
  return (done, total) => {
    const percent = Math.floor((100 * done) / total);
    if (percent !== shown) terminal.write(done === total ? "\r\x1b[K" : `\r${percent} %`);
    shown = percent;
  };
}

/** Audits one room, prints the result, and returns the exit code. */
export async function run(args: string[], stdout: Output, stderr: Output): Promise<number> {
  let task: Task | undefined;
  try {
    task = taskOf(args);
  } catch (failure) {
    const [problem] = (failure as Error).message.split(". ");
    stderr.write(`audit: ${problem}\nhint: npm run audit -- --help\n`);
    return exit.usage;
  }
  if (!task) {
    stdout.write(help);
    return exit.ok;
  }
  try {
    const report = await audit(open(task.from), task, progressOn(stderr));
    stdout.write(task.json ? `${JSON.stringify(report, undefined, 2)}\n` : format(report, task.vkey !== undefined));
    return report.ok ? exit.ok : exit.failed;
  } catch (failure) {
    stderr.write(
      `audit: read ${task.from}: ${(failure as Error).message}\nhint: this says nothing about the room; try again\n`,
    );
    return exit.unread;
  }
}
