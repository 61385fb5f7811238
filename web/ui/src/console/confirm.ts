// Asks before something is done that cannot be undone. Without this script the
// server asks, on a page of its own.

/** Lets every button with data-confirm below root ask its question first. */
export function confirmActs(root: ParentNode): void {
  for (const button of root.querySelectorAll<HTMLButtonElement>("button[data-confirm]")) {
    button.addEventListener("click", (event) => {
      const form = button.form;
      if (!form || form.dataset.confirmed === "1") return;
      event.preventDefault();
      if (form.reportValidity()) ask(button, form);
    });
  }
}

function ask(button: HTMLButtonElement, form: HTMLFormElement): void {
  const dialog = document.createElement("dialog");
  dialog.className = "ask";
  const question = document.createElement("p");
  question.id = `ask-${Math.random().toString(36).slice(2)}`;
  question.textContent = button.dataset.confirm ?? "";
  dialog.setAttribute("aria-labelledby", question.id);
  const actions = document.createElement("div");
  actions.className = "actions";
  const yes = choice(button.textContent ?? "Yes", button.classList.contains("danger") ? "button danger" : "button");
  const no = choice("Cancel", "button quiet");
  actions.append(no, yes);
  dialog.append(question, actions);
  document.body.append(dialog);
  dialog.addEventListener("close", () => {
    dialog.remove();
    button.focus();
  });
  no.addEventListener("click", () => dialog.close());
  yes.addEventListener("click", () => {
    form.dataset.confirmed = "1";
    const confirmed = document.createElement("input");
    confirmed.type = "hidden";
    confirmed.name = "confirmed";
    confirmed.value = "1";
    form.append(confirmed);
    dialog.close();
    form.requestSubmit(button);
  });
  dialog.showModal();
  no.focus();
}

function choice(text: string, className: string): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = className;
  button.textContent = text;
  return button;
}
