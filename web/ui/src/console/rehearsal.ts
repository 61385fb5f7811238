// Updates the figures of a running rehearsal.
import { localTimes } from "./times.ts";

const every = 2000; // milliseconds

/** Reloads the page in the background and copies its figures until the rehearsal is over. */
export function rehearsal(card: HTMLElement): void {
  const label = card.getAttribute("aria-label");
  const timer = setInterval(async () => {
    if (document.hidden) return;
    const next = await load(label);
    if (!next) return;
    card.querySelector("[data-figures]")?.replaceWith(...figuresOf(next));
    if (next.dataset.island === undefined) {
      clearInterval(timer);
      card.replaceWith(next);
      localTimes(next);
    }
  }, every);
}

async function load(label: string | null): Promise<HTMLElement | undefined> {
  try {
    const answer = await fetch(location.pathname, { headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) return undefined;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    return [...page.querySelectorAll<HTMLElement>("main section.card")].find(
      (card) => card.getAttribute("aria-label") === label,
    );
  } catch {
    return undefined; // try again later
  }
}

function figuresOf(card: HTMLElement): Element[] {
  const figures = card.querySelector("[data-figures]");
  return figures ? [figures.cloneNode(true) as Element] : [];
}
