// Reads and writes lengths of time as the server does (web/console/format/read.go).

const units: Record<string, number> = {
  ms: 1,
  millisecond: 1,
  s: 1000,
  sec: 1000,
  second: 1000,
  m: 60_000,
  min: 60_000,
  minute: 60_000,
  h: 3_600_000,
  hour: 3_600_000,
  d: 86_400_000,
  day: 86_400_000,
};

const form = /^(?:\s*[0-9]{1,9}(?:\.[0-9]{1,3})?\s*[a-z]+)+\s*$/;
const part = /([0-9.]+)\s*([a-z]+)/g;

/** Reads a length such as "1 min 30 s" in milliseconds; undefined if it is malformed. */
export function readLength(text: string): number | undefined {
  const lower = text.toLowerCase();
  if (!form.test(lower)) return undefined;
  let sum = 0;
  for (const [, digits, name] of lower.matchAll(part)) {
    const unit = own(name!) ?? own(name!.replace(/s$/, ""));
    if (unit === undefined) return undefined;
    sum += Number(digits) * unit;
  }
  return Math.round(sum);
}

function own(name: string): number | undefined {
  return Object.hasOwn(units, name) ? units[name] : undefined;
}

/** Writes a length in the largest units: "1 h 30 min". */
export function writeLength(ms: number): string {
  if (ms === 0) return "0 s";
  const parts: string[] = [];
  let rest = ms;
  for (const name of ["d", "h", "min", "s", "ms"]) {
    const unit = units[name]!;
    const n = Math.floor(rest / unit);
    if (n > 0) parts.push(`${n} ${name}`);
    rest -= n * unit;
  }
  return parts.join(" ");
}

/** Writes a whole number with commas: 1,234,567. */
export function writeNumber(n: number): string {
  return String(n).replace(/\B(?=([0-9]{3})+$)/g, ",");
}

/** Reads a whole number. Its digits may be separated by commas and spaces. */
export function readNumber(text: string): number | undefined {
  const digits = text.replace(/[, \u202f\u00a0]/g, "");
  return /^[0-9]{1,15}$/.test(digits) ? Number(digits) : undefined;
}
