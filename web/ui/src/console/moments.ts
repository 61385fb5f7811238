// Fields with a moment: the form sends UTC, people read and type local time.

/** A moment field of the form. */
export interface Moment {
  /** Milliseconds since the epoch; undefined while it is empty or incomplete. */
  get(): number | undefined;
  set(time: number): void;
  readonly isEmpty: boolean;
  readonly isFixed: boolean;
}

/** Called with the name of a moment field while it is edited. */
export interface Typing {
  begins(): void;
  changes(name: string): void;
}

/** Makes all moment fields of a form use local time, and proposes that
 * the event is in this zone. Returns the moments by name. */
export function localMoments(form: HTMLFormElement, typing: Typing): Map<string, Moment> {
  const moments = new Map<string, Moment>();
  const fields = form.querySelectorAll<HTMLInputElement>('input[type="datetime-local"][name], input[data-fixed]');
  for (const field of fields) {
    const name = field.name;
    moments.set(name, field.dataset.fixed === undefined ? localField(field, typing) : fixedField(field));
  }
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const place of form.querySelectorAll("[data-zone]")) place.textContent = `Times are those of ${zone}.`;
  const place = form.querySelector<HTMLInputElement>("input[data-here]");
  if (place && place.value === "") place.value = zone;
  return moments;
}

function fixedField(field: HTMLInputElement): Moment {
  const time = Date.parse(field.value);
  return { get: () => time, set: () => {}, isEmpty: false, isFixed: true };
}

/** Moves the name and the UTC value to a hidden field, and shows local time. */
function localField(field: HTMLInputElement, typing: Typing): Moment {
  const sent = document.createElement("input");
  sent.type = "hidden";
  sent.name = field.name;
  field.removeAttribute("name");
  field.after(sent);
  const label = field.labels?.[0];
  if (label) label.textContent = label.textContent?.replace(" (UTC)", "") ?? "";
  const show = (time: number): void => {
    if (time % 1000 !== 0) field.step = "0.001";
    field.value = localText(time);
    sent.value = new Date(time).toISOString();
  };
  const given = Date.parse(`${field.value}Z`);
  if (!Number.isNaN(given)) show(given);
  field.addEventListener("focus", () => typing.begins());
  field.addEventListener("input", () => {
    const time = Date.parse(field.value); // local, because it has no zone
    sent.value = Number.isNaN(time)
      ? field.validity.badInput
        ? "not all of a date and a time"
        : ""
      : new Date(time).toISOString();
    typing.changes(sent.name);
  });
  return {
    get() {
      const time = Date.parse(sent.value);
      return Number.isNaN(time) ? undefined : time;
    },
    set: show,
    get isEmpty() {
      return sent.value === "";
    },
    isFixed: false,
  };
}

/** The local value of a datetime-local field. */
export function localText(time: number): string {
  const local = new Date(time - new Date(time).getTimezoneOffset() * 60_000);
  return local.toISOString().replace(/(\.000)?Z$/, "");
}
