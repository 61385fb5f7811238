import type { Facts, Line } from "../check/index.ts";
import { Memory } from "./memory.ts";
import { check, overall, proofName } from "./proof.ts";
import { Screen } from "./screen.ts";

/** How long a browser may take to fetch a saved file from memory, in milliseconds. */
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
    this.#memory = new Memory(this.#data["room"] ?? "");
  }

  start(): void {
    this.#screen.show(".lines, .choices, [data-about]", true);
    this.#screen.show("[data-static]", false);
    this.#screen.find("[data-again]")?.addEventListener("click", () => void this.#run());
    this.#screen.find("button[data-proof]")?.addEventListener("click", () => this.#save());
    void this.#run();
  }

  async #run(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    this.#overall("running");
    try {
      const { lines, bundle } = await check(this.#data, this.#memory);
      this.#bundle = bundle;
      for (const line of lines) this.#line(line);
      this.#screen.text(this.#screen.find("pre"), details(lines, this.#data));
      this.#overall(overall(lines));
    } catch {
      this.#overall("failed");
    }
    this.#screen.show("[data-proof]", this.#bundle !== undefined);
    this.#running = false;
  }

  #overall(status: string): void {
    const box = this.#screen.find("[data-verdict]");
    if (!box) return;
    box.hidden = false;
    box.dataset["status"] = status;
    this.#screen.choose("data-overall", status);
  }

  #line({ id, status, reason, facts }: Line): void {
    const item = this.#screen.find(`[data-line="${id}"]`);
    if (!item) return;
    item.dataset["status"] = status;
    for (const word of item.querySelectorAll<HTMLElement>("[data-word]")) word.hidden = word.dataset["word"] !== status;
    const words = [...item.querySelectorAll<HTMLElement>("[data-reason]")];
    // Whatever is wrong has the same words: that it is, and what is.
    const said = words.find((text) => text.dataset["reason"] === reason) ?? words.find((text) => text.dataset["reason"] === status);
    for (const text of words) text.hidden = text !== said;
    // Of the facts these are the numbers in the sentences.
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

/** What was found, for those who want to know exactly. */
function details(lines: readonly Line[], { ticket, origin }: DOMStringMap): string {
  const facts: Facts = Object.assign({}, ...lines.map((line) => line.facts));
  const found = lines.map(({ id, status, reason }) => `${id} ${status} ${reason}`);
  const known = Object.entries(facts).map(([name, value]) => `${name} ${String(value)}`);
  return [`origin ${origin}`, `ticket ${ticket}`, ...found, ...known].join("\n");
}
