import { type EventRecord, toEventJson } from '../monitor/event-body.ts';
import { type EventFilter, everything } from './event-filter.ts';

/** Events behind a position, in their order, each made into bytes once for all who read them. */
export class FeedPage {
  #events: readonly EventRecord[] = [];
  #position: number;
  readonly #frames = new Map<EventRecord, Buffer>();
  /** What everybody behind the same position gets who wants everything. */
  #whole: { behind: number; bytes: Buffer } | undefined;

  constructor(position: number) {
    this.#position = position;
  }

  /** The newest of them, or where it began. */
  get position(): number {
    return this.#position;
  }

  get size(): number {
    return this.#events.length;
  }

  /** How long the upstream's answers in them are, which is most of what is long. */
  get chars(): number {
    return this.#events.reduce((sum, event) => sum + answersOf(event), 0);
  }

  /** The next ones. */
  add(events: readonly EventRecord[]): void {
    this.#events = [...this.#events, ...events];
    this.#position = events.at(-1)?.seq ?? this.#position;
    if (events.length > 0) this.#whole = undefined;
  }

  /** Everybody has them up to and with this one. */
  drop(through: number): void {
    for (const event of this.#events) if (event.seq <= through) this.#frames.delete(event);
    this.#events = this.#events.filter(({ seq }) => seq > through);
  }

  /** What of them is behind `position` and passes the filter, as the stream has it. Undefined: nothing. */
  bytesFor(position: number, filter: EventFilter): Buffer | undefined {
    if (filter === everything && this.#whole?.behind === position) return this.#whole.bytes;
    const wanted = this.#events.filter((event) => event.seq > position && filter(event));
    if (wanted.length === 0) return undefined;
    const bytes = Buffer.concat(wanted.map((event) => this.#frameOf(event)));
    if (filter === everything) this.#whole = { behind: position, bytes };
    return bytes;
  }

  #frameOf(event: EventRecord): Buffer {
    const made = this.#frames.get(event) ?? toFrame(event);
    this.#frames.set(event, made);
    return made;
  }
}

function answersOf(event: EventRecord): number {
  return 'submission' in event ? (event.submission.answer?.length ?? 0) + (event.previous.answer?.length ?? 0) : 0;
}

function toFrame(event: EventRecord): Buffer {
  return Buffer.from(`id: ${event.seq}\nevent: ${event.type}\ndata: ${toEventJson(event)}\n\n`);
}
