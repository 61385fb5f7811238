import assert from "node:assert/strict";

const mark = "proofline sees ";

/** Runs in every page: reports each change in what it shows of a place. */
function look(mark) {
  let last = "";
  const digits = (element) => {
    const found = [...(element?.textContent.matchAll(/\p{Nd}/gu) ?? [])]; // 0 to 9 in the scripts of the pages
    return found.length > 0 ? Number(found.map(([digit]) => digit.codePointAt(0) & 0xf).join("")) : undefined;
  };
  const tell = () => {
    const main = document.querySelector("main[data-state]");
    if (!main) return;
    const { state, room, ticket } = main.dataset;
    const position = digits(main.querySelector("h1 b"));
    const ahead = digits(main.querySelector('[data-live="ahead"]'));
    const seen = JSON.stringify({ state, room, ticket, position, ahead });
    if (seen === last) return;
    last = seen;
    console.debug(mark + JSON.stringify({ ...JSON.parse(seen), at: Date.now() }));
  };
  new MutationObserver(tell).observe(document, {
    subtree: true,
    childList: true,
    attributes: true,
    characterData: true,
  });
}

/**
 * Watches all pages of a browser's context: they may send requests only to the server, violate no policy, log no
 * error, and never show a place before its draw, or one that rises.
 */
export class Watch {
  problems = [];
  seen = []; // the places that were shown, in order
  #expected = []; // [pattern, how often]

  constructor(origins) {
    this.origins = origins;
  }

  async on(context) {
    context.on("console", (message) => this.#hear(message));
    context.on("weberror", (error) => this.#problem(`uncaught: ${error.error().stack}`));
    context.on("request", (request) => this.#asked(request));
    await context.addInitScript(look, mark);
  }

  /** Declares that a problem is part of the test; it must then occur. */
  expect(pattern) {
    this.#expected.push([pattern, 0]);
  }

  /** Declares that a problem may occur in the test. */
  allow(pattern) {
    this.#expected.push([pattern, 1]);
  }

  #hear(message) {
    const text = message.text();
    if (text.startsWith(mark)) this.seen.push(JSON.parse(text.slice(mark.length)));
    else if (["error", "warning", "assert"].includes(message.type())) {
      this.#problem(`console: ${text} (${message.location().url})`);
    }
  }

  #asked(request) {
    const url = new URL(request.url());
    const isOwn = url.protocol === "blob:" || url.protocol === "data:" || this.origins.includes(url.origin);
    if (!isOwn) this.#problem(`third party: ${url}`);
  }

  #problem(text) {
    const expected = this.#expected.find(([pattern]) => pattern.test(text));
    if (expected) expected[1]++;
    else this.problems.push(text);
  }

  /** Fails if there was a problem. */
  check() {
    assert.deepEqual(this.problems, [], "problems of pages");
    for (const [pattern, times] of this.#expected) assert.ok(times > 0, `${pattern} did not come up`);
    this.#checkPlaces();
  }

  #checkPlaces() {
    const shown = new Map(); // by what must never rise
    for (const { state, ticket, position, ahead } of this.seen) {
      if (ticket === undefined) continue;
      if (position !== undefined) assert.equal(state, "drawn", "only a drawn place has a number");
      for (const [name, n] of Object.entries({ position, [`${state} ahead`]: ahead })) {
        if (n === undefined) continue;
        const key = `${ticket} ${name}`;
        assert.ok(n <= (shown.get(key) ?? Infinity), `${key} rises from ${shown.get(key)} to ${n}`);
        shown.set(key, n);
      }
    }
  }

  /** Fails if a place was shown that is not in the transcript of its room, or before its draw. */
  async checkTranscript(room) {
    const shown = this.seen.filter((one) => one.position !== undefined && one.room === `/r/${room.slug}`);
    if (shown.length === 0) return;
    const entries = await room.transcript();
    for (const { ticket, position, at } of shown) {
      const assigned = entries.find((entry) => entry.kind === "assign" && entry.names(ticket));
      assert.ok(assigned, `place ${position} was shown without an entry`);
      const [window, , place] = assigned.fields;
      assert.equal(position, Number(place), "the place that was shown");
      const draw = entries.find((entry) => entry.kind === "draw" && entry.fields[1] === window);
      assert.ok(at >= Number(draw.fields[0]), "shown before its draw");
    }
  }
}
