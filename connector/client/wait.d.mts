/** The detail of the event. */
export interface Queue {
  /** The address of the waiting room. */
  room: string;
  /** Where to go: it leads to the room, which sends the visitor back to the page. */
  join: string;
}

export interface Options {
  /** "lead" to the room at once (the default), or ask in a "dialog" first. */
  mode?: "lead" | "dialog";
  /** Other hosts of the site whose responses count, such as "api.example.com". */
  hosts?: readonly string[];
}

/** Watches the responses to fetch and XMLHttpRequest from now on. Further calls have no effect. */
export function watch(options?: Options): void;

/**
 * Ends the visitor's sessions at this host, so that the room calls the next visitor.
 * False: the connector did not respond, or refused.
 */
export function leave(): Promise<boolean>;

declare global {
  interface Window {
    /** The functions of the script, for pages without a bundler. */
    readonly proofline?: { leave: typeof leave };
  }
  interface WindowEventMap {
    /** Something has to wait. If it is canceled, the page stays. */
    "proofline:queue": CustomEvent<Queue>;
  }
}
