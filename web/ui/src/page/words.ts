// Puts numbers and times into texts that the server wrote.

const second = 1000;
const day = 86_400 * second;

/** The language of the page, with numbers in Western digits as the server writes them. */
export function pageLocale(): string {
  return `${document.documentElement.lang || "en"}-u-nu-latn`;
}

/** The visitor's regional variant of that language, such as en-GB, for times of day. */
export function timeLocale(page: string, own: readonly string[]): string {
  const [language] = page.split("-");
  const like = own.find((tag) => tag.split("-")[0] === language);
  return like === undefined ? page : `${like.split("-u-")[0]}-u-nu-latn`;
}

/** Writes a whole number. */
export function number(n: number, locale: string): string {
  // "always", because the server groups four digits in every language.
  return new Intl.NumberFormat(locale, { useGrouping: "always" } as unknown as Intl.NumberFormatOptions).format(n);
}

/** Chooses the form of a sentence for a number, and puts the number in its place. */
export function plural(forms: Record<string, string>, n: number, locale: string): string {
  const form = forms[`=${n}`] ?? forms[new Intl.PluralRules(locale).select(n)] ?? forms.other ?? "";
  return form.replace("{n}", number(n, locale));
}

/** Writes a time, with seconds if they matter, and with the date unless it is today's. */
export function moment(at: number, now: number, locale: string, zone?: string): string {
  const date = new Date(at);
  const dayOf = new Intl.DateTimeFormat("en", { dateStyle: "short", ...(zone && { timeZone: zone }) });
  const options: Intl.DateTimeFormatOptions = { hour: "numeric", minute: "2-digit" };
  if (zone) options.timeZone = zone;
  if (date.getUTCSeconds() !== 0) options.second = "2-digit";
  if (dayOf.format(date) !== dayOf.format(new Date(now))) {
    Object.assign(options, { weekday: "short", day: "numeric", month: "short" });
  }
  return new Intl.DateTimeFormat(locale, options).format(date);
}

/** Writes a time to go, such as "4:32" or "1:04:32", with whole days before it. */
export function countdown(ms: number, locale: string): string {
  const left = Math.max(0, Math.ceil(ms / second) * second);
  const days = Math.floor(left / day);
  const parts = [
    Math.floor((left % day) / 3_600_000),
    Math.floor((left % 3_600_000) / 60_000),
    Math.floor((left % 60_000) / second),
  ];
  if (days === 0 && parts[0] === 0) parts.shift();
  const digits = parts.map((part, i) => (i === 0 ? `${part}` : `${part}`.padStart(2, "0"))).join(":");
  if (days === 0) return digits;
  const unit = new Intl.NumberFormat(locale, { style: "unit", unit: "day", unitDisplay: "long" });
  return `${unit.format(days)} ${digits}`;
}
