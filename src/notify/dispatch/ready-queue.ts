import type { DestinationPriority, DestinationQueue } from './destination-queue.ts';

/** Lanes that wait for their turn, first come first served. One that is called back leaves its place, which is passed over. */
export class ReadyQueue {
  readonly #kind: DestinationPriority;
  #lanes: DestinationQueue[] = [];
  #first = 0;

  constructor(kind: DestinationPriority) {
    this.#kind = kind;
  }

  add(lane: DestinationQueue): void {
    if (lane.readyAs === this.#kind) return;
    lane.readyAs = this.#kind;
    this.#lanes.push(lane);
  }

  take(): DestinationQueue | undefined {
    while (this.#first < this.#lanes.length) {
      const lane = this.#lanes[this.#first++];
      this.#compact();
      if (lane?.readyAs !== this.#kind) continue;
      lane.readyAs = null;
      return lane;
    }
    return undefined;
  }

  /** Taking from the front of an array moves all the rest; this does so only once in a while. */
  #compact(): void {
    if (this.#first < 1_024 || this.#first * 2 < this.#lanes.length) return;
    this.#lanes = this.#lanes.slice(this.#first);
    this.#first = 0;
  }
}
