import { DamagedRowError } from '../lib/stored.ts';
import { type DamagedEvent, type EventRecord, toEventJson } from './event-body.ts';
import { type EventFilter, matchAll } from './event-filter.ts';

/** Type of the event that reports missing events. It is not in the log. */
const GAP_TYPE = 'feed.gap';

/**
 * Returns a frame reporting that events after `after`, up to and including `through`, may be
 * missing.
 */
export function gapFrame(
  { after, through }: { after: number; through: number },
  position: number,
): string {
  const event = { id: `gap_${after}_${through}`, type: GAP_TYPE, data: { after, through } };
  return `id: ${position}\nevent: ${GAP_TYPE}\ndata: ${JSON.stringify(event)}\n\n`;
}

type PageEvent = EventRecord | DamagedEvent;

/**
 * Consecutive events after a position, each serialized once for all readers (row feed: 200 events/s
 * to 1000 readers).
 */
export class FeedPage {
  #events: readonly PageEvent[] = [];
  #position: number;
  readonly #frames = new Map<PageEvent, Buffer>();
  /** The bytes for unfiltered readers at the same position. */
  #unfiltered: { after: number; bytes: Buffer } | undefined;

  constructor(position: number) {
    this.#position = position;
  }

  /** Number of the newest event, or the initial position. */
  get position(): number {
    return this.#position;
  }

  get size(): number {
    return this.#events.length;
  }

  /** Total length of the upstream data in the events, which dominates their size. */
  get chars(): number {
    return this.#events.reduce((sum, event) => sum + dataCharsOf(event), 0);
  }

  /** Appends events. */
  add(events: readonly PageEvent[]): void {
    this.#events = [...this.#events, ...events];
    this.#position = events.at(-1)?.seq ?? this.#position;
    if (events.length > 0) this.#unfiltered = undefined;
  }

  /** Removes events up to and including `through`, which every reader has received. */
  drop(through: number): void {
    for (const event of this.#events) if (event.seq <= through) this.#frames.delete(event);
    this.#events = this.#events.filter(({ seq }) => seq > through);
  }

  /**
   * Returns the frames of events after `position` that pass the filter; undefined if there are
   * none.
   */
  bytesFor(position: number, filter: EventFilter): Buffer | undefined {
    if (filter === matchAll && this.#unfiltered?.after === position) return this.#unfiltered.bytes;
    const matching = this.#events.filter(
      (event) => event.seq > position && ('damage' in event || filter(event)),
    );
    if (matching.length === 0) return undefined;
    const bytes = Buffer.concat(matching.map((event) => this.#frameOf(event)));
    if (filter === matchAll) this.#unfiltered = { after: position, bytes };
    return bytes;
  }

  #frameOf(event: PageEvent): Buffer {
    const frame = this.#frames.get(event) ?? toFrame(event);
    this.#frames.set(event, frame);
    return frame;
  }
}

function dataCharsOf(event: PageEvent): number {
  return 'submission' in event
    ? (event.submission.envelope?.length ?? 0) + (event.previous.envelope?.length ?? 0)
    : 0;
}

/** Serializes an event. A damaged one becomes a gap of one event, after which readers continue. */
function toFrame(event: PageEvent): Buffer {
  const { seq } = event;
  const gap = () => Buffer.from(gapFrame({ after: seq - 1, through: seq }, seq));
  if ('damage' in event) return gap();
  try {
    return Buffer.from(`id: ${seq}\nevent: ${event.type}\ndata: ${toEventJson(event)}\n\n`);
  } catch (error) {
    if (error instanceof DamagedRowError) return gap();
    throw error;
  }
}
