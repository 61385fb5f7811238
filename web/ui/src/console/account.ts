// Scripts of the account pages: links with a token in their fragment, and secrets that are shown once.

/** Returns the token in the fragment of a link, or null. */
export function tokenOf(hash: string): string | null {
  const token = new URLSearchParams(hash.replace(/^#/, "")).get("t");
  return token !== null && /^[A-Za-z0-9_-]{43}$/.test(token) ? token : null;
}

/**
 * Sends the token of the link that led here. The fragment leaves the address
 * first, so that neither history nor bookmarks keep it.
 */
export function followLink(form: HTMLElement): void {
  const token = tokenOf(location.hash);
  const input = form.querySelector<HTMLInputElement>("input[name=token]");
  if (token === null || input === null || !(form instanceof HTMLFormElement)) return;
  history.replaceState(null, "", location.pathname + location.search);
  input.value = token;
  form.requestSubmit();
}

/** Copies the text of the element that data-from names. */
export function copyButton(button: HTMLElement): void {
  const from = document.getElementById(button.dataset.from ?? "");
  if (from === null || navigator.clipboard === undefined) return;
  const plain = button.textContent ?? "";
  const said = document.createElement("span");
  said.className = "visually-hidden";
  said.setAttribute("role", "status");
  button.after(said);
  button.hidden = false;
  button.addEventListener("click", () => {
    void navigator.clipboard.writeText(textOf(from)).then(
      () => say("Copied"),
      () => say("Could not copy"),
    );
  });
  const say = (text: string): void => {
    button.textContent = text;
    said.textContent = text;
    setTimeout(() => {
      button.textContent = plain;
      said.textContent = "";
    }, 3000);
  };
}

/** Returns the text of an element, or the items of a list as lines. */
export function textOf(element: Element): string {
  const items = [...element.querySelectorAll("li")];
  return items.length > 0 ? items.map((item) => item.textContent ?? "").join("\n") : (element.textContent ?? "").trim();
}

/** Prints the page. */
export function printButton(button: HTMLElement): void {
  button.hidden = false;
  button.addEventListener("click", () => print());
}
