// Asks before an action. The server checks the input and writes the question: browsers without scripts get
// it as a page, this script shows it as a dialog. Problems appear at their fields without leaving the page.
import { localTimes } from "./times.ts";

/** Makes every button with data-ask below root show its question as a dialog. */
export function confirmActs(root: ParentNode): void {
  for (const button of root.querySelectorAll<HTMLButtonElement>("button[data-ask]")) {
    button.addEventListener("click", (event) => {
      const form = button.form;
      if (!form || form.dataset.native === "1") return;
      event.preventDefault();
      if (button.getAttribute("aria-busy") !== "true") void ask(button, form);
    });
  }
}

async function ask(button: HTMLButtonElement, form: HTMLFormElement): Promise<void> {
  button.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(target(button, form), {
      method: "POST",
      headers: { accept: "text/html" },
      body: new URLSearchParams(fieldsOf(button, form)),
    });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const question = page.querySelector<HTMLElement>("[data-question]");
    if (question) {
      clearProblems(form);
      showQuestion(question, button);
    } else if (answer.redirected) location.assign(answer.url);
    else if (answer.status === 400 && showProblems(form, page)) return;
    else if (form.dataset.island) sendWhole(form, page, button);
    else showFailure(page, button);
  } catch {
    showMessage("The server does not answer", "Nothing was changed. Check your connection and try again.", button);
  } finally {
    button.removeAttribute("aria-busy");
  }
}

/** The target of the form. A field may be called "action", so this reads attributes. */
function target(button: HTMLButtonElement, form: HTMLFormElement): string {
  return new URL(button.getAttribute("formaction") ?? form.getAttribute("action") ?? "", location.href).href;
}

function fieldsOf(button: HTMLButtonElement, form: HTMLFormElement): [string, string][] {
  return [...new FormData(form, button)].filter((pair): pair is [string, string] => typeof pair[1] === "string");
}

function showQuestion(question: HTMLElement, button: HTMLButtonElement): void {
  const body = document.importNode(question, true);
  localTimes(body);
  const dialog = open(body, button);
  const cancel = body.querySelector<HTMLAnchorElement>("[data-cancel], [data-leave]");
  cancel?.addEventListener("click", (event) => {
    event.preventDefault();
    dialog.close();
  });
  const send = body.querySelector<HTMLFormElement>("form");
  send?.addEventListener("submit", () => (dialog.dataset.sent = "1"));
  const leave = cancel?.dataset.leave !== undefined ? cancel.href : undefined;
  dialog.addEventListener("close", () => {
    if (leave && dialog.dataset.sent !== "1") location.assign(leave); // the form was saved before the question
  });
}

/** Removes earlier problems. */
function clearProblems(form: HTMLFormElement): void {
  for (const field of form.querySelectorAll(".field.wrong")) {
    field.classList.remove("wrong");
    field.querySelector(".error")?.remove();
    for (const input of field.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
  }
  form.querySelector(":scope > [data-problem]")?.remove();
}

/** Replaces fields of the form by those of the answer that have problems. */
function showProblems(form: HTMLFormElement, page: Document): boolean {
  if (form.dataset.island) return false; // its script has references to its fields
  for (const field of form.querySelectorAll<HTMLElement>(".field")) {
    const id = field.querySelector("input, select, textarea")?.id;
    const fresh = id && page.getElementById(id)?.closest(".field");
    if (fresh && [field, fresh].some((one) => one.classList.contains("wrong")))
      field.replaceWith(document.importNode(fresh, true));
  }
  form.querySelector(":scope > [data-problem]")?.remove();
  const first = form.querySelector<HTMLElement>("[aria-invalid=true]");
  if (first) {
    first.focus();
    return true;
  }
  const texts = [...page.querySelectorAll("main .error, main .notice.bad")].map((one) => one.textContent ?? "");
  if (texts.length === 0) return false;
  const problem = document.createElement("p");
  problem.className = "error";
  problem.dataset.problem = "";
  problem.setAttribute("role", "alert");
  problem.textContent = texts.join("; ");
  form.append(problem);
  return true;
}

/** Sends the form as a browser without scripts would. The server may have saved it already. */
function sendWhole(form: HTMLFormElement, page: Document, button: HTMLButtonElement): void {
  const answered = page.querySelector<HTMLFormElement>("form[data-island]");
  const action = answered?.getAttribute("action");
  if (action) form.setAttribute("action", action);
  for (const field of answered?.querySelectorAll<HTMLInputElement>("input[type=hidden][data-saved]") ?? []) {
    const own = form.elements.namedItem(field.name);
    if (own instanceof HTMLInputElement) own.value = field.value;
  }
  form.dataset.native = "1";
  form.requestSubmit(button);
}

function showFailure(page: Document, button: HTMLButtonElement): void {
  const text = (selector: string, otherwise: string): string =>
    page.querySelector(selector)?.textContent?.trim() || otherwise;
  showMessage(
    text("main h1", "That did not work"),
    text("main h1 + p, main p", "Reload the page and try again."),
    button,
  );
}

function showMessage(title: string, detail: string, button: HTMLButtonElement): void {
  const body = document.createElement("div");
  const heading = document.createElement("h2");
  heading.textContent = title;
  const words = document.createElement("p");
  words.textContent = detail;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "button";
  close.textContent = "Close";
  const actions = document.createElement("div");
  actions.className = "actions";
  actions.append(close);
  body.className = "question stack";
  body.append(heading, words, actions);
  const dialog = open(body, button);
  close.addEventListener("click", () => dialog.close());
}

function open(body: HTMLElement, button: HTMLButtonElement): HTMLDialogElement {
  const dialog = document.createElement("dialog");
  dialog.className = "ask";
  const title = body.querySelector("h1, h2");
  if (title) {
    const heading = document.createElement("h2"); // the page has an h1 already
    heading.textContent = title.textContent;
    heading.tabIndex = -1;
    heading.id = `ask-${crypto.getRandomValues(new Uint32Array(1))[0]}`;
    title.replaceWith(heading);
    dialog.setAttribute("aria-labelledby", heading.id);
  }
  dialog.append(body);
  document.body.append(dialog);
  dialog.addEventListener("close", () => {
    dialog.remove();
    button.focus();
  });
  dialog.showModal();
  dialog.querySelector("h2")?.focus(); // a screen reader reads a long question from its beginning
  return dialog;
}
