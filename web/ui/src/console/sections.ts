// The sections of the editor: what is set in a folded one, and which fields still need a change.
import { localClock } from "./outline.ts";

type Control = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/** Says in the summary of each section what is set there, in local time. The server says the same in UTC. */
export function saySections(form: HTMLFormElement): void {
  for (const section of form.querySelectorAll<HTMLDetailsElement>("[data-section]")) {
    const place = section.querySelector<HTMLElement>("[data-said]");
    const say = (): void => {
      if (place) place.textContent = said(section) || "Nothing is set.";
    };
    say();
    section.addEventListener("toggle", say);
  }
}

function said(section: Element): string {
  const list: string[] = [];
  const groups = new Set<Element>();
  for (const control of section.querySelectorAll<Control>("input, select, textarea")) {
    const group = control.closest<HTMLElement>("[data-say]");
    if (control.closest("[data-calculator]") || (group && groups.has(group))) continue;
    if (group) groups.add(group);
    const value = group ? firsts(group) : shown(control);
    const label = group?.dataset.say ?? labelOf(control);
    if (value) list.push(control.type === "checkbox" ? label : `${label}: ${value}`);
  }
  return list.join(" · ");
}

/** The first texts of a group's rows. */
function firsts(group: HTMLElement): string {
  const rows = [...group.querySelectorAll("li")];
  const values = rows.map((row) => row.querySelector<HTMLInputElement>('input[type="text"]')?.value ?? "");
  return values.filter(Boolean).join(group.dataset.between);
}

function shown(control: Control): string {
  if (control.type === "hidden") return "";
  if (control.type === "checkbox") return (control as HTMLInputElement).checked ? "yes" : "";
  const time = control.type === "datetime-local" ? Date.parse(control.value) : Number.NaN;
  if (!Number.isNaN(time)) {
    const { day, time: clock } = localClock(time);
    return `${day}, ${clock}`;
  }
  return control.value.trim().replaceAll(/\s*\n\s*/g, ", ");
}

function labelOf(control: Control): string {
  const label = control.labels?.[0];
  return (label?.firstElementChild?.nextElementSibling?.firstChild ?? label)?.textContent?.trim() ?? "";
}

/**
 * Keeps the list of wrong fields up to date: a field that was changed is checked when it is sent, and named again if it
 * is given its wrong value back. Returns the update, for changes that are not typed.
 */
export function followMending(form: HTMLFormElement): () => void {
  const notice = document.querySelector<HTMLElement>("[data-wrong]");
  const count = notice?.querySelector<HTMLElement>("[data-wrong-count]");
  if (!notice || !count) return () => {};
  const items = [...notice.querySelectorAll<HTMLElement>("[data-field]")].map((item) => {
    const field = item.dataset.field ?? "";
    return { item, field, was: typedIn(form, field) };
  });
  const update = (): void => {
    let left = 0;
    for (const { item, field, was } of items) {
      const isMended = typedIn(form, field) !== was;
      if (!isMended) left++;
      item.hidden = isMended;
      const error = document.getElementById(`e-${field}`);
      if (!error) continue;
      error.hidden = isMended;
      error.parentElement?.classList.toggle("wrong", !isMended);
      const control = error.parentElement?.querySelector("input, select, textarea");
      if (isMended) control?.removeAttribute("aria-invalid");
      else control?.setAttribute("aria-invalid", "true");
    }
    const fields = left === 1 ? "one field below needs a change" : `${left} fields below need a change`;
    const text =
      left === 0
        ? "All fields named here were changed. Save or publish to have them checked."
        : `This room cannot be published yet: ${fields}.`;
    if (count.textContent !== text) count.textContent = text;
    notice.classList.toggle("warn", left > 0);
  };
  form.addEventListener("input", update);
  return update;
}

/** The values of a field and its members. */
function typedIn(form: HTMLFormElement, field: string): string {
  const issuer = field.replace(/^(methods.*)\.key$/, "$1.issuer"); // a key is chosen or pasted
  const isOf = (name: string): boolean =>
    name === field || name === issuer || name.startsWith(`${field}.`) || name.startsWith(`${field}[`);
  return JSON.stringify([...new FormData(form)].filter(([name]) => isOf(name)));
}
