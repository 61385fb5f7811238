// The figures of a room: see console/live/figures.go.

export interface Figures {
  at: string;
  phase: string;
  opens: string;
  starts: string;
  closes: string | null;
  arrivals: number;
  arrival_rate: number | null;
  waiting: number;
  windows: {
    index: number;
    from: string;
    to: string;
    arrivals: number;
    waiting: number;
    frozen: boolean;
    drawn: boolean;
  }[];
  active: number;
  admitted: number;
  lanes: {
    name: string;
    share: number;
    given: number | null;
    arrivals: number;
    waiting: number;
    called: number;
    admitted: number;
    no_shows: number;
  }[];
  joining: Span | null;
  next: { window: string | null; draw: string | null; called: Span | null };
  alarms: { level: string; text: string }[];
  no_show_rate: { recent: number | null; overall: number | null };
  outflow: { per_minute: number; max_active: number; minute: number | null };
  gate: { state: string; since: string; started: number; active: number; nodes: number } | null;
  fail_open: { at: string; from: string; until: string; requests: number }[];
  witnesses: { name: string; cosigned: number; draws: number }[];
  nodes: {
    name: string;
    version: string;
    self: boolean;
    lost: boolean;
    healthy: boolean;
    started: string;
    rooms: number;
    heap: number;
    refused: Record<string, number>;
  }[];
}

/** The expected time of something. */
export interface Span {
  earliest: string;
  latest: string;
}

/** The latest minutes, with a value per second in each list; at is in seconds. */
export interface Series {
  at: number[];
  arrivals: number[];
  waiting: number[];
  admitted: number[];
  active: number[];
  target: number[];
  limit: number[];
}

/** One step of a room's history: see console/live/history.go. */
export interface Minute {
  at: string;
  arrivals: number;
  admitted: number;
  waiting: number;
  active: number;
  per_minute: number;
  max_active: number;
  paused: boolean;
}

/** Returns the value at a path such as "outflow.minute"; "" is the whole. */
export function valueAt(figures: object, path: string): unknown {
  let value: unknown = figures;
  for (const name of path ? path.split(".") : []) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}
