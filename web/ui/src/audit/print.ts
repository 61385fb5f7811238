import type { Breach, Report } from "./audit.ts";
import { levels } from "./level.ts";

/** A report in words, for a terminal. */
export function format(report: Report, isKeyGiven: boolean): string {
  const { arrivals, windows, draws, assignments, admissions } = report;
  const lines = [
    !report.ok ? "NOT VERIFIED" : report.level === 1 ? "CONSISTENT" : "VERIFIED",
    `level ${report.level}, ${levels[report.level]}`,
    "",
    `room         ${report.origin}`,
    `key          ${report.key}${isKeyGiven ? "" : " (named by the transcript itself)"}`,
    `entries      ${report.entries}, root ${report.root}`,
    `arrivals     ${arrivals} in ${windows} windows, ${draws} of them drawn`,
    `places       ${assignments} stated, ${admissions} admitted`,
    `beacon       ${report.beacon || "none"}`,
    `witnesses    ${report.quorum} of ${report.witnesses} should sign; ${report.vouched} draws have so many whom you know`,
    ...report.breaches.flatMap(linesOf),
  ];
  return `${lines.join("\n")}\n`;
}

function linesOf({ check, entry, text, why }: Breach): string[] {
  const at = entry === undefined ? "" : ` at entry ${entry}`;
  return ["", `broken: ${check}${at}: ${why}`, ...(text === undefined ? [] : [`    ${JSON.stringify(text)}`])];
}
