// The rules editor: shows answers without leaving the page, and links problems to their lines. Only the
// server knows what rules do, so answers are parts of the page that it returns.
import { localMoments } from "./moments.ts";
import { localTimes } from "./times.ts";

/** Shows the results of checking addresses below the form. */
export function siteCheck(form: HTMLElement): void {
  if (!(form instanceof HTMLFormElement)) return;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const address = new URL(form.action);
    address.search = new URLSearchParams(textsOf(new FormData(form))).toString();
    address.hash = "";
    void show(form, "findings", address.href, {});
  });
}

/** The rules editor. */
export function siteRules(form: HTMLElement): void {
  if (!(form instanceof HTMLFormElement)) return;
  const editor = form.querySelector<HTMLTextAreaElement>("textarea[name=document]");
  form.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!(button instanceof HTMLButtonElement) || button.value !== "check") return;
    event.preventDefault();
    const body = new URLSearchParams(textsOf(new FormData(form, button)));
    void show(form, "preview-found", form.action, { method: "POST", body });
  });
  form.addEventListener("click", (event) => {
    const line = (event.target as HTMLElement).closest<HTMLElement>("[data-line]")?.dataset.line;
    if (line === undefined || !editor) return;
    event.preventDefault();
    selectLine(editor, Number(line));
  });
  localMoments(form, { begins: () => {}, changes: () => {} });
  leaveWithCare(form);
}

/** The offsets of a line in a text. Lines count from 1. */
export function lineAt(text: string, line: number): [number, number] {
  let from = 0;
  for (let i = 1; i < line; i++) {
    const next = text.indexOf("\n", from);
    if (next < 0) break;
    from = next + 1;
  }
  const to = text.indexOf("\n", from);
  return [from, to < 0 ? text.length : to];
}

function selectLine(editor: HTMLTextAreaElement, line: number): void {
  const [from, to] = lineAt(editor.value, line);
  editor.focus();
  editor.setSelectionRange(from, to);
  const height = editor.scrollHeight / editor.value.split("\n").length;
  editor.scrollTop = Math.max(0, (line - 4) * height);
}

function textsOf(data: FormData): [string, string][] {
  return [...data].map(([name, value]) => [name, String(value)]);
}

/** Replaces a part of this page by that of the server's answer, and shows problems at their fields. */
async function show(form: HTMLFormElement, part: string, address: string, asked: RequestInit): Promise<void> {
  const place = document.getElementById(part);
  if (!place) return;
  place.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(address, { ...asked, headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = page.getElementById(part);
    if (!found) throw new Error("another page");
    place.replaceChildren(...found.childNodes);
    localTimes(place);
    takeProblems(form, page);
  } catch {
    const said = document.createElement("p");
    said.className = "error";
    said.textContent =
      "The server does not answer, or you are signed out. Nothing is lost: try again, or sign in in another tab.";
    place.replaceChildren(said);
  } finally {
    place.removeAttribute("aria-busy");
  }
}

/** Copies problems from another copy of the page to the fields. */
function takeProblems(form: HTMLFormElement, page: Document): void {
  for (const old of form.querySelectorAll(".error[id^=e-], [data-misplaced]")) old.remove();
  for (const field of form.querySelectorAll<HTMLElement>(".wrong")) field.classList.remove("wrong");
  for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
  for (const error of page.querySelectorAll(".error[id^=e-]")) {
    const id = error.parentElement?.querySelector("[id^=f-]")?.id;
    const field = id === undefined ? groupOf(form, error) : document.getElementById(id)?.closest(".field");
    field?.classList.add("wrong");
    field?.append(error);
    const input = id === undefined ? null : document.getElementById(id);
    input?.setAttribute("aria-invalid", "true");
    input?.setAttribute(
      "aria-describedby",
      [...new Set([...(input.getAttribute("aria-describedby") ?? "").split(" "), error.id])].join(" ").trim(),
    );
  }
  const misplaced = page.querySelector("[data-misplaced]");
  if (misplaced) form.querySelector("textarea[name=document]")?.closest(".field")?.before(misplaced);
}

/** The group of choices that a problem concerns. */
function groupOf(form: HTMLFormElement, error: Element): Element | null | undefined {
  return form.querySelector(`input[name="${CSS.escape(error.id.slice(2))}"]`)?.closest("fieldset");
}

/** Asks before the page is left with unsaved rules. */
function leaveWithCare(form: HTMLFormElement): void {
  let typed = false;
  form.addEventListener("input", () => (typed = true));
  form.addEventListener("submit", (event) => {
    if (!event.defaultPrevented) typed = false;
  });
  addEventListener("beforeunload", (event) => {
    if (typed) event.preventDefault();
  });
}
