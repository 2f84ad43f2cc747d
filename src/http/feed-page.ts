import { type EventRecord, toEventJson } from '../monitor/event-body.ts';
import type { EventFilter } from './event-filter.ts';

/** Events in their order, made into bytes once for all readers: of all of them together, and of each alone where a filter leaves some out. */
export class FeedPage {
  readonly events: readonly EventRecord[];
  readonly #frames: (Buffer | undefined)[] = [];
  #whole: Buffer | undefined;

  constructor(events: readonly EventRecord[]) {
    this.events = events;
  }

  /** The newest of them; 0 if there is none. */
  get position(): number {
    return this.events.at(-1)?.seq ?? 0;
  }

  /** What of them is behind `position` and passes the filter, as the stream has it. Undefined: nothing. */
  bytesFor(position: number, filter: EventFilter): Buffer | undefined {
    const wanted = this.events.flatMap((event, index) => (event.seq > position && filter(event) ? [index] : []));
    if (wanted.length === 0) return undefined;
    if (wanted.length < this.events.length) return Buffer.concat(wanted.map((index) => this.#frame(index)));
    this.#whole ??= Buffer.concat(wanted.map((index) => this.#frame(index)));
    return this.#whole;
  }

  #frame(index: number): Buffer {
    const made = this.#frames[index] ?? toFrame(this.events[index] as EventRecord);
    this.#frames[index] = made;
    return made;
  }
}

function toFrame(event: EventRecord): Buffer {
  return Buffer.from(`id: ${event.seq}\nevent: ${event.type}\ndata: ${toEventJson(event)}\n\n`);
}
