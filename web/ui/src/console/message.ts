// The message control: adds and removes languages without leaving the page, and removes the current message
// when it ends.
import { localMoments } from "./moments.ts";

/** The maximum delay of browsers' timers. */
const longest = 2 ** 31 - 1;

export function messageControl(control: HTMLElement): void {
  const rows = control.querySelector<HTMLElement>("[data-rows]");
  const blank = control.querySelector<HTMLTemplateElement>("template[data-row]");
  const form = rows?.closest("form");
  if (!rows || !blank || !form) return;
  localMoments(form, { begins: () => {}, changes: () => {} });
  form.addEventListener("click", (event) => {
    const button = (event.target as Element).closest("button");
    if (button?.dataset.add !== undefined) {
      rows.append(document.importNode(blank.content, true));
    } else if (button?.dataset.remove !== undefined) {
      button.closest(".message-row")?.remove();
    } else return;
    event.preventDefault();
    number(rows);
    const last = rows.lastElementChild;
    last?.querySelector<HTMLElement>(button.dataset.add === undefined ? "textarea" : "input")?.focus();
  });
  endMessage(control);
}

/** Numbers the rows for the server. */
function number(rows: HTMLElement): void {
  [...rows.children].forEach((row, i) => {
    const renamed = (text: string): string => text.replace(/message\[\d+\]/, `message[${i}]`);
    for (const element of row.querySelectorAll("*")) {
      for (const name of ["id", "for", "name", "aria-describedby"]) {
        const value = element.getAttribute(name);
        if (value !== null) element.setAttribute(name, renamed(value));
      }
    }
    const remove = row.querySelector<HTMLButtonElement>("[data-remove]");
    if (remove) remove.value = `remove-language:${i}`;
  });
}

/** Removes the current message when it ends. */
function endMessage(control: HTMLElement): void {
  const shown = control.querySelector<HTMLElement>("[data-live-message]");
  const left = Number(shown?.dataset.ends) - Date.now();
  if (!shown || Number.isNaN(left)) return;
  if (left > 0) {
    setTimeout(() => endMessage(control), Math.min(left, longest));
    return;
  }
  shown.hidden = true;
  const over = control.querySelector<HTMLElement>("[data-message-over]");
  if (over) over.hidden = false;
}
