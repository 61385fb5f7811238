// The brand editor: the server checks the input and shows it at once, because only it knows what is
// allowed.

/** The server's answer about a brand that is not saved. */
export interface Verdict {
  problems: { field: string; detail: string }[];
  css: { line: number; column: number; detail: string }[];
  contrast: Finding[];
}

interface Finding {
  scheme: string;
  pair: string;
  where: string;
  given: string;
  ground: string;
  ratio: number;
  required: number;
  shown: string;
  then: number;
  repaired: boolean;
  good: boolean;
}

const pause = 400; // milliseconds without a change before a request
const maxImage = 64 * 1024;

/** Updates the preview when a choice changes. */
export function previewChoices(form: HTMLElement): void {
  if (!(form instanceof HTMLFormElement)) return;
  const show = shower(form);
  form.addEventListener("change", (event) => {
    if ((event.target as HTMLInputElement).name !== "screen") show();
  });
}

/** Checks and shows the input, and accepts dropped images. */
export function brandForm(form: HTMLElement): void {
  if (!(form instanceof HTMLFormElement)) return;
  const show = shower(form);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let asked = 0;
  const ask = async (): Promise<void> => {
    const turn = ++asked;
    show();
    const verdict = await check(form);
    if (turn === asked && verdict) render(form, verdict);
  };
  form.addEventListener("input", (event) => {
    if ((event.target as HTMLInputElement).name === "screen") return;
    clearTimeout(timer);
    timer = setTimeout(() => void ask(), pause);
  });
  for (const input of form.querySelectorAll<HTMLInputElement>("[data-color]")) picker(input);
  for (const zone of form.querySelectorAll<HTMLElement>("[data-drop]")) dropZone(zone);
  form.querySelector<HTMLElement>("[data-css]")?.addEventListener("click", (event) => {
    const { line, column } = (event.target as HTMLElement).dataset;
    const editor = form.querySelector<HTMLTextAreaElement>("textarea[name=css]");
    if (line !== undefined && editor) select(editor, Number(line), Number(column));
  });
}

/**
 * Returns a function that shows the form in its preview. It loads each preview in a new frame, which replaces the
 * old one when it has loaded: so nothing flickers, and the back button does not go through every typed letter.
 */
function shower(form: HTMLFormElement): () => void {
  const button = form.querySelector<HTMLButtonElement>("[data-show]");
  let frame = form.querySelector<HTMLIFrameElement>("iframe");
  let turns = 0;
  if (!button || !frame) return () => undefined;
  button.hidden = true;
  return () => {
    const old = frame!;
    const next = old.cloneNode() as HTMLIFrameElement;
    const turn = ++turns;
    next.removeAttribute("src");
    next.name = `preview-${turn}`;
    next.classList.add("coming");
    for (const late of form.querySelectorAll("iframe.coming")) late.remove();
    old.after(next);
    next.addEventListener("load", () => {
      if (turn !== turns || next.contentDocument?.URL === "about:blank") return;
      next.classList.remove("coming");
      frame!.remove();
      frame = next;
    });
    button.formTarget = next.name;
    form.requestSubmit(button);
  };
}

async function check(form: HTMLFormElement): Promise<Verdict | undefined> {
  const status = form.querySelector<HTMLElement>("[data-status]");
  const say = (words: string): void => {
    if (status) status.textContent = words;
  };
  try {
    const answer = await fetch(form.dataset.check ?? "", {
      method: "POST",
      body: new FormData(form),
      headers: { Accept: "application/json" },
    });
    if (answer.ok) {
      const verdict = (await answer.json()) as Verdict;
      say(verdict.problems.length === 0 ? "Not saved yet." : "There are problems. Nothing is saved yet.");
      return verdict;
    }
    say(
      answer.status === 413
        ? "The images are too large."
        : answer.status === 401
          ? "You are signed out. Sign in again in another tab."
          : "The server could not check the brand.",
    );
  } catch {
    say("The server does not answer. Nothing is saved yet.");
  }
  return undefined;
}

/** Returns the problems of a field and of its members. */
export function problemOf(verdict: Verdict, field: string): string {
  return verdict.problems
    .filter((p) => p.field === field)
    .map((p) => p.detail)
    .join("; ");
}

function render(form: HTMLFormElement, verdict: Verdict): void {
  for (const place of form.querySelectorAll<HTMLElement>("[data-problem]")) {
    const words = problemOf(verdict, place.dataset.problem ?? "");
    if (place.textContent !== words) place.textContent = words;
    place.closest(".field")?.classList.toggle("wrong", words !== "");
  }
  form.querySelector("[data-css]")?.replaceChildren(...verdict.css.map(message));
  form.querySelector("[data-contrast]")?.replaceChildren(...verdict.contrast.map(row));
}

/** A problem of the CSS, with a link to its place. */
function message({ line, column, detail }: Verdict["css"][number]): HTMLElement {
  const item = element("li", "error");
  const link = element("button", "to-line", `line ${line}, column ${column}`) as HTMLButtonElement;
  link.type = "button";
  link.dataset.line = `${line}`;
  link.dataset.column = `${column}`;
  item.append(link, `: ${detail}`);
  return item;
}

/** Moves the cursor to the place of a problem. Columns count characters, not UTF-16 units. */
function select(editor: HTMLTextAreaElement, line: number, column: number): void {
  const at = offset(editor.value, line, column);
  editor.focus();
  editor.setSelectionRange(at, at);
  editor.scrollTop = Math.max(0, (line - 4) * parseFloat(getComputedStyle(editor).lineHeight));
}

/** Returns the offset of a line and column in a text. */
export function offset(text: string, line: number, column: number): number {
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  const inLine = [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
  return Math.min(before + inLine, text.length);
}

function row(f: Finding): HTMLElement {
  const tr = element("tr");
  const what = element("td", "", f.pair);
  what.append(element("br"), element("span", "hint", f.where));
  const given = element("td");
  given.append(pair(f.given, f.ground), " ", element("code", "", f.given));
  const shown = element("td");
  if (f.repaired)
    shown.append(
      element("span", "badge warn", "changed"),
      " ",
      pair(f.shown, f.ground),
      " ",
      element("code", "", f.shown),
      ` ${f.then.toFixed(1)}`,
    );
  else if (f.good) shown.append(element("span", "badge good", "as chosen"));
  else shown.append(element("span", "badge bad", "hard to see"), " as chosen");
  tr.append(
    element("td", "", f.scheme),
    what,
    given,
    element("td", "number", `${f.ratio.toFixed(1)} of ${f.required.toFixed(1)}`),
    shown,
  );
  return tr;
}

function element(name: string, className = "", text = ""): HTMLElement {
  const e = document.createElement(name);
  if (className !== "") e.className = className;
  e.textContent = text;
  return e;
}

/** A sample of two colours, in attributes because the content security policy forbids styles. */
function pair(text: string, ground: string): SVGElement {
  const make = (name: string, attributes: Record<string, string>): SVGElement => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name) as SVGElement;
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    return e;
  };
  const svg = make("svg", { class: "pair", viewBox: "0 0 32 20", width: "32", height: "20", "aria-hidden": "true" });
  svg.append(
    make("rect", { width: "32", height: "20", rx: "4", fill: ground }),
    make("circle", { cx: "16", cy: "10", r: "6", fill: text }),
  );
  return svg;
}

const colorForm = /^#[0-9a-f]{6}$/i;

/** Adds a picker to a colour field. Unlike a picker, the field may be empty. */
function picker(input: HTMLInputElement): void {
  const pick = document.createElement("input");
  pick.type = "color";
  pick.setAttribute("aria-label", `Pick: ${input.labels?.[0]?.textContent ?? ""}`);
  const follow = (): void => {
    pick.value = colorForm.test(input.value) ? input.value : input.placeholder;
  };
  pick.addEventListener("input", () => (input.value = pick.value));
  input.addEventListener("input", follow);
  follow();
  input.after(pick);
}

/** Selects an image that is dropped or pasted. */
function dropZone(zone: HTMLElement): void {
  const input = zone.querySelector<HTMLInputElement>("input[type=file]");
  const problem = zone.querySelector<HTMLElement>("[data-problem]");
  if (!input) return;
  for (const hint of zone.querySelectorAll<HTMLElement>("[data-drop-hint]")) hint.hidden = false;
  const take = (files: FileList | undefined): boolean => {
    const image = [...(files ?? [])].find((file) => file.type.startsWith("image/"));
    if (!image) return false;
    const chosen = new DataTransfer();
    chosen.items.add(image);
    input.files = chosen.files;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    return true;
  };
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    take(event.dataTransfer?.files);
  });
  zone.addEventListener("paste", (event) => {
    if (take(event.clipboardData?.files)) event.preventDefault();
  });
  input.addEventListener("input", () => {
    const size = input.files?.[0]?.size ?? 0;
    const words = size > maxImage ? `The new image has ${Math.ceil(size / 1024)} KiB: at most 64 are allowed` : "";
    if (words !== "") input.value = ""; // the server would refuse it
    if (problem) problem.textContent = words;
  });
}
