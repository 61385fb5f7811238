import type { Facts, Line } from "../check/index.ts";
import { Memory } from "./memory.ts";
import { atTime, check, checkFile, overall, proofName, summary } from "./proof.ts";
import { Screen } from "./screen.ts";

/** How long the URL of a saved file stays valid, in milliseconds. */
const keepUrl = 60_000;

/** The page on which a visitor checks a place. */
export class CheckPage {
  readonly #screen = new Screen();
  readonly #data: DOMStringMap;
  readonly #memory: Memory;
  #bundle: string | undefined;
  #running = false;

  constructor(main: HTMLElement) {
    this.#data = main.dataset;
    this.#memory = new Memory(this.#data.room ?? "");
  }

  start(): void {
    this.#screen.show("[data-scripted]", true);
    this.#screen.show("[data-static]", false);
    this.#takeFiles();
    if (this.#data.ticket === undefined) return;
    this.#screen.show(".lines, .choices, [data-about]", true);
    this.#screen.find("[data-again]")?.addEventListener("click", () => void this.#run());
    this.#screen.find("button[data-proof]")?.addEventListener("click", () => this.#save());
    void this.#run();
  }

  async #run(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    this.#overall("running");
    try {
      const now = Date.now();
      const draws = Number(this.#data.draws);
      const { lines: found, bundle } = await check(this.#data, this.#memory);
      const lines = atTime(found, draws, now);
      this.#bundle = bundle;
      this.#due(lines, now < draws);
      for (const line of lines) this.#line(line);
      this.#screen.text(this.#screen.find("pre"), details(lines, this.#data));
      this.#overall(overall(lines), summary(lines));
    } catch {
      this.#overall("failed");
    }
    this.#screen.show("[data-proof]", this.#bundle !== undefined);
    this.#running = false;
  }

  /** Checks a saved proof that is chosen, or dropped anywhere on the page. */
  #takeFiles(): void {
    const input = this.#screen.find<HTMLInputElement>("[data-file]");
    input?.addEventListener("change", () => void this.#take(input.files?.[0]));
    const drop = this.#screen.find("[data-drop]");
    document.addEventListener("dragover", (event) => {
      event.preventDefault();
      drop?.setAttribute("data-over", "");
    });
    document.addEventListener("dragleave", () => drop?.removeAttribute("data-over"));
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      drop?.removeAttribute("data-over");
      void this.#take(event.dataTransfer?.files[0]);
    });
  }

  async #take(file: File | undefined): Promise<void> {
    if (!file || this.#running) return;
    this.#running = true;
    this.#screen.choose("data-drop-is", undefined);
    const found = await checkFile(this.#data, new Uint8Array(await file.arrayBuffer())).catch(() => undefined);
    this.#running = false;
    if (!found) {
      this.#screen.choose("data-drop-is", "bad");
      return;
    }
    const { lines, origin } = found;
    this.#bundle = undefined;
    this.#screen.show("[data-none], [data-proof], [data-due], [data-late]", false);
    this.#screen.show(".lines, [data-about]", true);
    this.#screen.text(this.#screen.find("[data-proof-origin]"), origin);
    this.#screen.choose("data-drop-is", origin === this.#data.origin ? undefined : "other");
    for (const line of lines) this.#line(line);
    this.#screen.text(this.#screen.find("pre"), details(lines, { origin }));
    this.#overall(overall(lines), summary(lines));
    this.#screen.find("[data-verdict]")?.scrollIntoView({ block: "nearest" });
  }

  /** Shows the time of the draw on the lines that wait for it, or that it is late. */
  #due(lines: readonly Line[], isEarly: boolean): void {
    for (const { id, status, reason } of lines) {
      const waits = reason === "pending";
      this.#screen.show(`[data-line="${id}"] [data-due]`, waits && status === "neutral" && isEarly);
      this.#screen.show(`[data-line="${id}"] [data-late]`, waits && status === "amber");
    }
  }

  #overall(status: string, sentence = status): void {
    const box = this.#screen.find("[data-verdict]");
    if (!box) return;
    box.hidden = false;
    box.dataset.status = status;
    this.#screen.choose("data-overall", sentence);
  }

  #line({ id, status, reason, facts }: Line): void {
    const item = this.#screen.find(`[data-line="${id}"]`);
    if (!item) return;
    item.dataset.status = status;
    for (const word of item.querySelectorAll<HTMLElement>("[data-word]")) word.hidden = word.dataset.word !== status;
    const words = [...item.querySelectorAll<HTMLElement>("[data-reason]")];
    // All faults of a line share one text, which is stored under the status.
    const name = reason === "closed" && facts.most !== undefined ? "closed-lots" : reason;
    const shown =
      words.find((text) => text.dataset.reason === name) ?? words.find((text) => text.dataset.reason === status);
    for (const text of words) text.hidden = text !== shown;
    if (id === "place") this.#screen.show("[data-own]", reason === "exact" && (facts.own ?? 1) > 1);
    // Sentences show some of the facts as numbers.
    for (const [name, value] of Object.entries(facts)) this.#screen.count(name, Number(value));
  }

  #save(): void {
    if (this.#bundle === undefined) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([this.#bundle], { type: "application/json" }));
    link.download = proofName(this.#data);
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), keepUrl);
  }
}

/** The technical details of a check, one per line. */
function details(lines: readonly Line[], { ticket, origin }: DOMStringMap): string {
  const facts: Facts = Object.assign({}, ...lines.map((line) => line.facts));
  const found = lines.map(({ id, status, reason }) => `${id} ${status} ${reason}`);
  const known = Object.entries(facts).map(([name, value]) => `${name} ${String(value)}`);
  return [`origin ${origin}`, ...(ticket === undefined ? [] : [`ticket ${ticket}`]), ...found, ...known].join("\n");
}
