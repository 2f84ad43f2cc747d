import type { Candidate } from './policy.ts';

/** Groups whose youngest member is remembered. */
const MEMORY = 8;
/** Answers have a latency, and rows appear a little late: an age is not exact to more than this. */
const AGE_TOLERANCE_MS = 500;

/** What is learned about groups: how many become final at once, how old the youngest of each was, and how many blocks lie between them. */
export type Groups = { meanSize: number; youngestMs: number[]; distances: number[] };

/**
 * The sweep through the neighbours of what a block made final. Whoever became final in the same block stands beside; how
 * far to go is known from the groups before:
 *
 *     line      a b c d e f g h i j …        a was found final, groups have 5 members
 *     at once     b c d e                    as many as groups have, but nobody younger than the youngest one ever was
 *     then                f                  a quarter more than were found, until somebody is not final
 */
export class CohortSweep {
  #block = Number.NEGATIVE_INFINITY;
  #by = 0;
  #found = 0;
  #released = 0;
  #youngestMs = Number.POSITIVE_INFINITY;
  #left: Candidate | null = null;
  #right: Candidate | null = null;
  #meanSize: number;
  readonly #youngest: number[];
  readonly #distances: number[];

  constructor({ meanSize, youngestMs, distances }: Groups = { meanSize: 0, youngestMs: [], distances: [] }) {
    this.#meanSize = meanSize;
    this.#youngest = youngestMs.slice(-MEMORY);
    this.#distances = distances.slice(-MEMORY);
  }

  get groups(): Groups {
    return { meanSize: this.#meanSize, youngestMs: [...this.#youngest], distances: [...this.#distances] };
  }

  /** Whether several become final at once. */
  get areGroups(): boolean {
    return this.#meanSize >= 1.5;
  }

  /** The next block that can make somebody final: senders that all wait for the same block leave out the next ones. */
  get nextBlock(): number {
    const [distance = 1, ...others] = this.#distances;
    const isRegular = others.length === MEMORY - 1 && others.every((other) => other === distance);
    return this.#block + (isRegular ? distance : 1);
  }

  /** The age at which the first of a group become final; 0 while nothing is known. */
  get leastAgeMs(): number {
    const least = Math.min(...this.#youngest, this.#youngestMs);
    return least === Number.POSITIVE_INFINITY ? 0 : Math.max(0, least - AGE_TOLERANCE_MS);
  }

  get block(): number {
    return this.#block;
  }

  /** By when the newest block was certainly final. */
  get by(): number {
    return this.#by;
  }

  /** A block is final: the sweep begins between these two, if none has begun for it or a newer one. */
  begin(block: number, at: number, left: Candidate | null, right: Candidate | null): void {
    if (block <= this.#block) return;
    this.#close(block);
    this.#block = block;
    this.#by = at;
    this.#left = left;
    this.#right = right;
  }

  /** Somebody in line is final with the block, at this age as far as is known; null: it was final when it was tracked. */
  found(block: number, ageMs: number | null): void {
    if (block < this.#block) return;
    this.#found++;
    if (ageMs !== null) this.#youngestMs = Math.min(this.#youngestMs, ageMs);
  }

  /** Somebody is final, and nobody knows with whom: only the age tells something. */
  foundAlone(ageMs: number | null): void {
    if (ageMs !== null) remember(this.#youngest, Math.min(ageMs, this.#mostYoungestMs));
  }

  /** It leaves the line. */
  step(item: Candidate): void {
    if (this.#left === item) this.#left = item.before;
    if (this.#right === item) this.#right = item.after;
  }

  /** The next neighbour to ask about now. */
  next(): Candidate | null {
    while (this.#released < this.#allowed) {
      const item = this.#take();
      if (!item) return null;
      this.#released++;
      return item;
    }
    return null;
  }

  /** Whether this one, which is in line, was given out to be asked about and has not been since. */
  hasReached(item: Candidate): boolean {
    if (item.openAt >= this.#by || this.#by - item.trackedAt < this.leastAgeMs) return false;
    const from = this.#left?.order ?? 0;
    const until = this.#right?.order ?? Number.POSITIVE_INFINITY;
    return from < item.order && item.order < until;
  }

  get #allowed(): number {
    const further = this.areGroups || this.#found > 1 ? this.#found + Math.floor(this.#found / 4) + 1 : 0;
    return Math.max(Math.round(this.#meanSize), further);
  }

  #take(): Candidate | null {
    for (;;) {
      const item = this.#left ?? this.#right;
      if (!item) return null;
      if (item === this.#left) this.#left = item.before;
      else this.#right = item.after;
      // It was not final when the block was: it is of a later one.
      if (item.openAt >= this.#by) continue;
      if (this.#by - item.trackedAt >= this.leastAgeMs) return item;
      // Younger than anyone ever was: so are all behind it.
      this.#right = null;
    }
  }

  /**
   * Behind a queue everybody is old, and that tells nothing about the time after it. So what is learned rises slowly: a
   * least age that is too low costs a few questions, one that is too high costs lag.
   */
  get #mostYoungestMs(): number {
    const least = Math.min(...this.#youngest);
    return this.#youngest.length < MEMORY ? Number.POSITIVE_INFINITY : Math.max(1.01 * least, least + AGE_TOLERANCE_MS);
  }

  #close(next: number): void {
    if (this.#found > 0) {
      this.#meanSize = this.#meanSize === 0 ? this.#found : 0.8 * this.#meanSize + 0.2 * this.#found;
      if (this.#youngestMs < Number.POSITIVE_INFINITY) this.foundAlone(this.#youngestMs);
      remember(this.#distances, next - this.#block);
    }
    this.#found = 0;
    this.#released = 0;
    this.#youngestMs = Number.POSITIVE_INFINITY;
  }
}

function remember(values: number[], value: number): void {
  values.push(value);
  if (values.length > MEMORY) values.shift();
}
