// Moments are sent in UTC; people think in their own time.

const form = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** Writes every <time data-local> below root in the browser's time zone. */
export function localTimes(root: ParentNode): void {
  for (const time of root.querySelectorAll<HTMLTimeElement>("time[data-local]")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    time.title = time.textContent ?? "";
    time.textContent = form.format(moment);
  }
}
