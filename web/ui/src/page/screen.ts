import { countdown, moment, number, pageLocale, plural, timeLocale } from "./words.ts";

/** How long an announcement stays on the page, in milliseconds. */
const announcedFor = 10_000;

/** Updates what a page shows, in place and only where it differs. */
export class Screen {
  readonly #locale = pageLocale();
  #silence: ReturnType<typeof setTimeout> | undefined;
  readonly #timeLocale = timeLocale(this.#locale, navigator.languages);

  find<E extends HTMLElement>(selector: string): E | undefined {
    return document.querySelector<E>(selector) ?? undefined;
  }

  all(selector: string): HTMLElement[] {
    return [...document.querySelectorAll<HTMLElement>(selector)];
  }

  /** Shows or hides all matching elements. */
  show(selector: string, visible: boolean): void {
    for (const element of this.all(selector)) {
      if (element.hidden === visible) element.hidden = !visible;
    }
  }

  /** Shows the elements whose attribute has a value, and hides the others that have the attribute. */
  choose(attribute: string, value: string | undefined): void {
    for (const element of this.all(`[${attribute}]`)) {
      const hidden = element.getAttribute(attribute) !== value;
      if (element.hidden !== hidden) element.hidden = hidden;
    }
  }

  text(element: HTMLElement | undefined, text: string): void {
    if (element && element.textContent !== text) element.textContent = text;
  }

  /** Writes a number to all elements with its name, in the right form of their sentences. */
  count(name: string, n: number): void {
    for (const element of this.all(`[data-live="${name}"]`)) {
      const { forms } = element.dataset;
      const words =
        forms === undefined
          ? number(n, this.#locale)
          : plural(JSON.parse(forms) as Record<string, string>, n, this.#locale);
      this.text(element, words);
    }
  }

  /** Writes all moments in the visitor's time zone. */
  localize(now: number): void {
    for (const element of document.querySelectorAll("time")) {
      this.text(element, moment(Date.parse(element.dateTime), now, this.#timeLocale));
    }
  }

  /** Sets the time that an element shows. */
  moment(element: HTMLTimeElement | undefined, at: number, now: number): void {
    if (!element) return;
    const iso = new Date(at).toISOString();
    if (element.dateTime !== iso) element.dateTime = iso;
    this.text(element, moment(at, now, this.#timeLocale));
  }

  /** Shows or hides elements that are valid until a time, or since one. */
  pass(now: number): void {
    for (const element of this.all("[data-until]")) element.hidden = now >= Number(element.dataset.until);
    for (const element of this.all("[data-since]")) element.hidden = now < Number(element.dataset.since);
  }

  countdown(box: HTMLElement, left: number): void {
    box.hidden = false;
    this.text(box.querySelector("b") ?? undefined, countdown(left, this.#locale));
  }

  progress(name: string, value: number, max: number): void {
    for (const bar of document.querySelectorAll<HTMLProgressElement>(`[data-progress="${name}"]`)) {
      bar.max = Math.max(max, 1);
      bar.value = Math.min(Math.max(value, 0), bar.max);
    }
  }

  /** Announces a text to screen readers. */
  announce(words: string): void {
    const voice = this.find("[data-announce]");
    if (!voice || words === "") return;
    voice.textContent = words.replace(/\s+/g, " ").trim();
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => (voice.textContent = ""), announcedFor); // what was announced is not read again as if it still held
  }

  /** The text of all visible elements that match. */
  words(selector: string): string {
    return this.all(selector)
      .filter((element) => !element.closest("[hidden]"))
      .map((element) => element.innerText)
      .join(" ");
  }

  /**
   * Puts a new <main> in the place of the old one. The keyboard's focus stays
   * where it is, or goes to the new heading if it was on something that is gone.
   * A number of seats that was chosen stays.
   */
  swap(main: HTMLElement): void {
    const old = document.querySelector("main");
    if (!old) return;
    const hadFocus = old.contains(document.activeElement);
    const [chosen, choice] = [old.querySelector("select"), main.querySelector("select")];
    if (chosen && choice) choice.value = chosen.value;
    old.replaceWith(document.adoptNode(main));
    document.title = main.dataset.title ?? document.title;
    if (hadFocus) main.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
    if (hadFocus) window.scrollTo({ top: 0 });
  }
}
