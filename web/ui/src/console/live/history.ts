import { chartMaker } from "./dashboard.ts";
import type { Minute } from "./figures.ts";
import { ofMinutes } from "./past.ts";

/** Draws the history of a room. */
export async function history(place: HTMLElement): Promise<void> {
  const state = document.querySelector<HTMLElement>("[data-history-state]");
  try {
    const answer = await fetch(place.dataset.history ?? "", { headers: { accept: "application/json" } });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const { minutes } = (await answer.json()) as { minutes: Minute[] };
    if (minutes.length < 2) return;
    draw(place, minutes);
  } catch {
    if (state) state.textContent = "The charts cannot be loaded at the moment. The files above have the same figures.";
  }
}

function draw(place: HTMLElement, minutes: readonly Minute[]): void {
  place.hidden = false;
  const make = chartMaker(place);
  const c = ofMinutes(minutes);
  make("arrivals", [{ name: "Arrivals per minute", color: "--series-1" }], " per minute")?.show(c.at, c.arrivals);
  make("waiting", [{ name: "In line", color: "--series-4" }], "")?.show(c.at, c.waiting);
  make(
    "admitted",
    [
      { name: "Let in per minute", color: "--series-3" },
      { name: "Target", color: "--series-2", isMark: true },
    ],
    " per minute",
  )?.show(c.at, c.admitted, c.target);
  make(
    "active",
    [
      { name: "In the shop or called", color: "--series-1" },
      { name: "Limit", color: "--series-2", isMark: true },
    ],
    "",
  )?.show(c.at, c.active, c.limit);
}
