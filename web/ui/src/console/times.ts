// Writes moments in the browser's time zone, in the format in which the server writes them in UTC
// (web/console/format/moment.go).

export const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const two = (n: number): string => String(n).padStart(2, "0");

/** Writes a time of day: 18:00, or 18:00:05 unless the second is 0. */
export function timeOfDay(at: Date): string {
  const seconds = at.getSeconds();
  return `${two(at.getHours())}:${two(at.getMinutes())}${seconds === 0 ? "" : `:${two(seconds)}`}`;
}

/** Writes a time of day with seconds. */
export function clockTime(at: Date): string {
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Writes a day: 22 Nov. */
export function dayMonth(at: Date): string {
  return `${at.getDate()} ${months[at.getMonth()]}`;
}

/** Writes a moment: 22 Nov 2026, 18:00. */
export function dateTime(at: Date): string {
  return `${dayMonth(at)} ${at.getFullYear()}, ${timeOfDay(at)}`;
}

/** Writes every <time data-local> below root in the browser's time zone, and names the zone. */
export function localTimes(root: ParentNode): void {
  for (const time of root.querySelectorAll<HTMLTimeElement>("time[data-local]")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    time.title = time.textContent ?? "";
    time.textContent = dateTime(moment);
  }
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const place of root.querySelectorAll("[data-time-zone]")) place.textContent = zone;
  for (const note of root.querySelectorAll<HTMLElement>("[data-unless-zone]"))
    note.hidden = note.dataset.unlessZone === zone;
}
