/** What the event says. */
export interface Queue {
  /** The address of the waiting room. */
  room: string;
  /** Where to go: it leads to the room, and the visitor from there back to the page. */
  join: string;
}

export interface Options {
  /** "lead" to the room at once (the default), or ask in a "dialog" first. */
  mode?: "lead" | "dialog";
  /** Other hosts of the site whose answers count, such as "api.example.com". */
  hosts?: readonly string[];
}

/** Looks at what fetch and XMLHttpRequest get, from now on. Another call changes nothing. */
export function watch(options?: Options): void;

/**
 * Ends the visit of somebody who is done: the sessions at this host end, and the room calls the next visitor.
 * False: the connector did not answer, or refused.
 */
export function leave(): Promise<boolean>;

declare global {
  interface Window {
    /** What the script has for pages without a bundler. */
    readonly proofline?: { leave: typeof leave };
  }
  interface WindowEventMap {
    /** Something has to wait. Cancelled, the page is not led away. */
    "proofline:queue": CustomEvent<Queue>;
  }
}
