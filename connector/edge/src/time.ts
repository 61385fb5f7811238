const form = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):(\d\d))$/;

/** parseTime parses an RFC 3339 time as milliseconds since 1970; undefined: malformed. */
export function parseTime(text: string, round: (n: number) => number): number | undefined {
  const parts = form.exec(text);
  if (!parts) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.slice(1, 7).map(Number);
  const [zoneHour, zoneMinute] = [Number(parts[9] ?? 0), Number(parts[10] ?? 0)];
  const days = new Date(0);
  days.setUTCFullYear(year, month - 1, day);
  if (
    days.getUTCMonth() !== month - 1 ||
    days.getUTCDate() !== day ||
    hour > 23 ||
    minute > 59 ||
    second > 59 ||
    zoneHour > 23 ||
    zoneMinute > 59
  )
    return undefined;
  const zone = (parts[8] === "-" ? -1 : 1) * (zoneHour * 60 + zoneMinute);
  const digits = (parts[7] ?? "").padEnd(3, "0");
  const fraction = round(Number(digits.slice(0, 3)) + (/[1-9]/.test(digits.slice(3)) ? 0.5 : 0));
  return days.getTime() + ((hour * 60 + minute - zone) * 60 + second) * 1000 + fraction;
}
