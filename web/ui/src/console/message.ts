// The control of the message to visitors: languages are added and removed
// without leaving the page, and what visitors see now goes when it is over.
import { localMoments } from "./moments.ts";

/** How long a timer of browsers may be at most. */
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

/** Numbers the rows in their order, as the server reads them. */
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

/** Takes what visitors see away when it is over. */
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
