import assert from "node:assert/strict";

import { accessible } from "./axe.mjs";
import { screenshots } from "./places.mjs";
import { Watch } from "./watch.mjs";

/** The screen sizes for which every state is checked. */
export const sizes = {
  phone: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
  desktop: { viewport: { width: 1280, height: 800 } },
};

/** Sizes that a page must fit, too: 200 % and 400 % zoom of the desktop's (https://www.w3.org/TR/WCAG22/#reflow), and smaller phones. */
const others = {
  desktop: [
    { width: 640, height: 400 },
    { width: 320, height: 256 },
  ],
  phone: [
    { width: 360, height: 800 },
    { width: 320, height: 568 },
  ],
};

/** Runs in the page: returns how much wider than the window it is, and which tabs of a row are out of sight. */
function tooWide() {
  const { scrollWidth, clientWidth } = document.documentElement;
  const wide = scrollWidth > clientWidth ? [`${scrollWidth} px of ${clientWidth}`] : [];
  const cut = [...document.querySelectorAll("nav a, .tabs > *")].filter((tab) => {
    const { left, right, width } = tab.getBoundingClientRect();
    return width > 0 && (left < -1 || right > clientWidth + 1);
  });
  return [...wide, ...cut.map((tab) => `${tab.textContent.trim()} is cut off`)];
}

/** A visitor with a browser. */
export class Visitor {
  constructor(context, page, watch, name) {
    this.context = context;
    this.page = page;
    this.watch = watch;
    this.name = name; // of the size
  }

  static async open(browser, { size = "desktop", origins, ...options }) {
    const zone = { locale: "en-GB", timezoneId: "Europe/Vienna" };
    const context = await browser.newContext({ ...zone, ...sizes[size], ...options });
    // biome-ignore lint/complexity/noThisInStatic: a subclass makes its own kind
    return this.in(context, origins, options.locale ? `${size}-${options.locale.split("-")[0]}` : size);
  }

  /** A visitor whose browser is already open. */
  static async in(context, origins, name) {
    const watch = new Watch(origins);
    await watch.on(context);
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    return new this(context, page, watch, name);
  }

  /** Waits until the page of a line is in a state. */
  async is(state) {
    await this.page.locator(`main#line[data-state="${state}"]`).waitFor();
    return this;
  }

  async visit(room, query = "") {
    await this.page.goto(room.url + query);
    return this;
  }

  /** Taps the page's main button. */
  async main() {
    await this.page.locator("form button.main").click();
  }

  async join(room) {
    await this.visit(room);
    await this.main();
    await this.page.locator("main#line[data-ticket]").waitFor();
    return this;
  }

  /** Returns what the page shows of the place. */
  data() {
    return this.page.locator("main").evaluate((main) => ({ ...main.dataset }));
  }

  async ticket() {
    return (await this.data()).ticket;
  }

  async position() {
    return Number((await this.data()).position);
  }

  /** Opens the check and waits for its result. */
  async checks(room) {
    await this.page.goto(`${room.url}/check`);
    return this.verdict();
  }

  /** The result of the check: overall, and line by line. */
  async verdict() {
    await this.page.locator("#check [data-verdict]:not([data-status=running])").waitFor();
    return this.page.evaluate(() => {
      const status = (element) => element.dataset.status;
      const lines = [...document.querySelectorAll("[data-line]")].map((line) => [line.dataset.line, status(line)]);
      return { overall: status(document.querySelector("[data-verdict]")), ...Object.fromEntries(lines) };
    });
  }

  /** Checks a page in light and dark, at its own size and zoomed, and takes pictures. */
  async inspect(what) {
    const { page, name } = this;
    const schemes = name.includes("-") ? ["light"] : ["light", "dark"]; // colours are the same in every language
    for (const colorScheme of schemes) {
      await page.emulateMedia({ colorScheme });
      await accessible(page, `${what}, ${name}, ${colorScheme}`);
      await this.picture(`${what}-${name}${colorScheme === "dark" ? "-dark" : ""}`);
    }
    await page.emulateMedia({ colorScheme: "light" });
    await this.fits(what);
    const was = page.viewportSize();
    for (const size of others[name] ?? []) {
      await page.setViewportSize(size);
      await this.fits(`${what} at ${size.width} px`);
    }
    await page.setViewportSize(was);
  }

  async picture(name) {
    const path = `${screenshots}/${name}.png`;
    await this.page.screenshot({ path, fullPage: true, animations: "disabled" });
  }

  /** Fails if any content needs horizontal scrolling. */
  async fits(what) {
    await this.page.waitForTimeout(100); // scripts draw a moment later; a page without scripts has no frames to wait for
    assert.deepEqual(await this.page.evaluate(tooWide), [], `${what}, ${this.name}: wider than the window`);
  }
}
