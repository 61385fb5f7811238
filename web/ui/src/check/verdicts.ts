/**
 * Green: proven. Neutral: still to come, or the line above is. Amber: no fault, but not everything is proven.
 * Red: wrong.
 */
export type Status = "green" | "neutral" | "amber" | "red";

/**
 * The reasons of each of the four lines, with their colours. The same word
 * has a different meaning in each line.
 */
export const verdicts = {
  /** My arrival is in the record I have a receipt for, and in the one published now. */
  record: {
    included: "green",
    behind: "neutral", // what is published does not reach my receipt yet: ask again in a few seconds
    key: "red", // the key I was given is malformed, or of another room
    checkpoint: "red", // what is published is not signed by the key
    malformed: "red", // a published file is not in its form
    room: "red", // the first entry is no policy, one against the rules, or of another room or key
    receipt: "red", // my receipt is malformed, or not signed by the key
    arrival: "red", // my entry is not in what is published
    history: "red", // what is published does not continue what my receipt was given for
    "receipt-arrival": "red", // my receipt is for another entry
    ticket: "red", // the entry is not of my ticket
  },
  /** My group was closed before it was drawn, and the number of people in it was fixed. */
  group: {
    closed: "green",
    unchecked: "neutral", // because of the line above
    pending: "neutral", // not closed yet
    "not-found": "amber", // no freeze within a reasonable distance
    malformed: "red",
    schedule: "amber", // the published schedule, as far as known, has me in another group or open for longer
    freeze: "red", // the entry that closes my group is not in what is published
    window: "red", // it closes another group
    early: "red", // it is before my arrival
    size: "red", // it counts other entries before it than there are
    lots: "red", // it counts fewer people than me, or more than there are entries
    root: "red", // it names another history before it
  },
  /** The draw follows from the room's key, what the freeze fixed, and a round of the room's beacon. */
  draw: {
    witnessed: "green", // the freeze names a round of a public beacon, and enough of the room's witnesses signed it before
    unpredictable: "green", // the freeze names a round of a public beacon, which did not exist by the operator's clock
    "own-beacon": "amber", // the operator of the room's beacon knows its rounds in advance
    "no-beacon": "amber", // the operator could have tried outcomes in advance
    unchecked: "neutral",
    pending: "neutral", // not drawn yet
    "not-found": "amber",
    malformed: "red",
    round: "red", // the freeze names another round than the policy gives
    proof: "red", // the proof in the freeze is not the key's
    draw: "red", // the draw is not in what is published
    window: "red", // it is of another group
    early: "red", // it is before the freeze
    "too-soon": "red", // it is before its round
    beacon: "red", // what it uses is not what the room's beacon signed for that round
    witness: "red", // a cosignature is not by a witness of the room, not of this freeze, or not from before the round
    seed: "red", // the seed does not follow from the proof
  },
  /** My place is exactly what the shuffle gives. */
  place: {
    exact: "green",
    "more-lots": "amber", // it is a better one, of a lot that a merit could have given which is not here
    unchecked: "neutral",
    pending: "neutral", // not in the published log yet
    "not-found": "amber",
    malformed: "red",
    "too-large": "amber", // the group is too large to shuffle here
    merit: "red", // what I showed after my arrival is not in what is published, not mine, or not in time
    places: "red", // the places of my group are not in what is published, or not of my group
    first: "red", // my group does not begin where the groups before it end
    place: "red", // my place is not in what is published
    ticket: "red", // it is given to another ticket
    position: "red", // it is another one
    shown: "red", // I am shown another one
  },
} as const satisfies Record<string, Record<string, Status>>;

export type LineId = keyof typeof verdicts;
export type Reason<L extends LineId> = keyof (typeof verdicts)[L];

/** The facts behind the lines, as far as they are known and proven. */
export interface Facts {
  keyFrom?: "visitor" | "log"; // where the log's key comes from
  index?: bigint; // of my arrival
  size?: bigint; // of what is published
  window?: bigint;
  problem?: string; // the field of the policy that breaks the rules
  closed?: number; // time of the freeze, milliseconds since the Unix epoch
  lots?: number; // of my lane in my group
  own?: number; // of these, my ticket's
  most?: number; // of any ticket at most, where that is more than one
  chain?: string; // hash of the room's beacon, hexadecimal
  round?: bigint; // of it
  appears?: bigint; // when that round appears, milliseconds since the Unix epoch
  witnesses?: number; // of the room
  quorum?: number; // of them, by the policy
  cosigned?: number; // of them, the freeze
  cosigners?: string; // names of those, one space between two
  seed?: string; // hexadecimal
  rank?: number; // in my group, from 0
  first?: bigint; // position of my group's first place
  position?: bigint; // mine
  stated?: bigint; // the one in the record where that is another
}

/** One line of the result. */
export type Line = {
  [L in LineId]: { id: L; status: Status; reason: Reason<L>; facts: Facts };
}[LineId];
