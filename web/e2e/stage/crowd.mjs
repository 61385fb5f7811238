import { setTimeout as pause } from "node:timers/promises";

import { newVisitor } from "./room.mjs";

const connections = 50;

/** Calls a function for each item of a list, with a number of calls running at once. */
async function each(list, act, atOnce = connections) {
  const queue = list.values();
  const work = async () => {
    for (const one of queue) await act(one);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

/**
 * Visitors without browsers, who join a room, poll their places and claim them when they are called. One in twenty
 * never comes back, and one in thirty gives the place up.
 */
export class Crowd {
  people = [];
  left = 0;
  admitted = 0;
  #assigned = 0; // places that were requested
  #over = false;

  constructor(room) {
    this.room = room;
  }

  /** Joins more visitors, as fast as the room responds. */
  async join(n) {
    const people = Array.from({ length: n }, (_, i) => {
      const all = this.people.length + i;
      return { ...newVisitor(this.room.origin), comes: all % 20 !== 7, leaves: all % 30 === 11 };
    });
    await each(people, ({ ticket }) => this.#post("/join", { ticket }, 201));
    this.people.push(...people);
    const leaving = people.filter(({ leaves }) => leaves);
    await each(leaving, ({ secret }) => this.#post("/leave", { secret }, 200));
    this.left += leaving.length;
  }

  /** Claims for called visitors, until the crowd is stopped. */
  play() {
    this.playing = this.#claim();
    this.playing.catch(() => {}); // stop says so
  }

  async stop() {
    this.#over = true;
    await this.playing;
  }

  async #claim() {
    while (!this.#over) {
      const state = await this.room.state();
      const { called, assigned } = state.lanes.general;
      if (assigned > this.#assigned) await this.#ask();
      this.#assigned = assigned;
      const ready = this.people.filter((one) => one.comes && !one.leaves && !one.in && one.position <= called);
      if (!state.claims_frozen) await each(ready, (one) => this.#enter(one));
      await pause(300);
    }
  }

  /** Requests the places that are not known yet. */
  async #ask() {
    const unknown = this.people.filter((one) => !one.leaves && !one.position);
    await each(unknown, async (one) => {
      const answer = await fetch(`${this.room.url}/tickets/${one.ticket}`);
      one.position = (await answer.json()).position;
    });
  }

  async #enter(one) {
    const status = await this.#post(`/tickets/${one.ticket}/claim`, { secret: one.secret }, 200, 409, 410);
    if (status === 409) return; // claims are frozen, or the call has not been stored yet
    one.in = true;
    if (status === 200) this.admitted++;
  }

  async #post(path, body, ...statuses) {
    const answer = await fetch(this.room.url + path, {
      method: "POST",
      headers: { "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin" },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    if (!statuses.includes(answer.status)) throw new Error(`${path}: status ${answer.status}: ${text}`);
    return answer.status;
  }
}
