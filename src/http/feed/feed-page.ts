import {
  type EventRecord,
  toEventJson,
  toUnreadableRow,
  type UnreadableEvent,
} from '../../domain/notifications/event-body.ts';
import type { ReportUnreadable } from '../../domain/stored.ts';
import { type EventFilter, matchAll } from './event-filter.ts';

/** Not an event of the log: it stands where events are missing. */
const GAP_TYPE = 'feed.gap';

/** Reports that events behind `after` may be missing, up to and with `through`. A reader resumes from `position`. */
export function gapFrame({ after, through }: { after: number; through: number }, position: number): string {
  const event = { id: `gap_${after}_${through}`, type: GAP_TYPE, data: { after, through } };
  return `id: ${position}\nevent: ${GAP_TYPE}\ndata: ${JSON.stringify(event)}\n\n`;
}

type PageEvent = EventRecord | UnreadableEvent;

/** Events behind a position, in their order, each made into bytes once for all who read them. */
export class FeedPage {
  #events: readonly PageEvent[] = [];
  #position: number;
  readonly #report: ReportUnreadable;
  readonly #frames = new Map<PageEvent, Buffer>();
  /** What everybody behind the same position gets who wants everything. */
  #whole: { behind: number; bytes: Buffer } | undefined;

  constructor(position: number, report: ReportUnreadable) {
    this.#position = position;
    this.#report = report;
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
  add(events: readonly PageEvent[]): void {
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
    if (filter === matchAll && this.#whole?.behind === position) return this.#whole.bytes;
    const wanted = this.#events.filter((event) => event.seq > position && ('unreadable' in event || filter(event)));
    if (wanted.length === 0) return undefined;
    const bytes = Buffer.concat(wanted.map((event) => this.#frameOf(event)));
    if (filter === matchAll) this.#whole = { behind: position, bytes };
    return bytes;
  }

  #frameOf(event: PageEvent): Buffer {
    const made = this.#frames.get(event) ?? toFrame(event, this.#report);
    this.#frames.set(event, made);
    return made;
  }
}

function answersOf(event: PageEvent): number {
  return 'submission' in event ? (event.submission.envelope?.length ?? 0) + (event.previous.envelope?.length ?? 0) : 0;
}

/** One that can not be read is a gap of one event: readers go on behind it. */
function toFrame(event: PageEvent, report: ReportUnreadable): Buffer {
  const { seq } = event;
  if ('unreadable' in event) {
    report(toUnreadableRow(event));
    return Buffer.from(gapFrame({ after: seq - 1, through: seq }, seq));
  }
  return Buffer.from(`id: ${seq}\nevent: ${event.type}\ndata: ${toEventJson(event, report)}\n\n`);
}
