import type { Machine } from '../machine/machine.ts';
import type { Reply, Sent } from '../machine/network.ts';

const response = (status: number, headers = {}): Reply => ({
  kind: 'response',
  status,
  body: '',
  headers,
});

/**
 * What a receiver does with a request. `accepted`: it processed the event, whatever it responds.
 */
export const RECEIVER_FAULTS = {
  refusing: { reply: { kind: 'reset' } },
  hanging: { reply: { kind: 'hang' } },
  failing: { reply: response(500) },
  unavailable: { reply: response(503) },
  throttling: { reply: response(429, { 'retry-after': '60' }) },
  forgetting: { reply: { kind: 'reset' }, accepted: true },
  slow: { reply: { kind: 'response', status: 204, body: '', delayMs: 5_000 }, accepted: true },
} satisfies Record<string, { reply: Reply; accepted?: boolean }>;
export type ReceiverFault = keyof typeof RECEIVER_FAULTS;

/** How long after an event was accepted its result is committed for certain. */
const COMMITTED_MS = 60_000;

type Accepted = { body: string; at: number };

/** Receives the events of one webhook or origin, and notes what receivers must not see. */
export class Receiver {
  fault: ReceiverFault | undefined;
  /** By the id of the event. */
  readonly accepted = new Map<string, Accepted>();
  /** The number of events in messages to people, which have no ids. */
  announced = 0;
  /** The newest request about each event. */
  readonly #newest = new Map<string, Sent>();
  readonly #machine: Machine;
  readonly #onDefect: (text: string) => void;
  /** When a lost result may have caused a repetition, the last time. */
  readonly #disturbedAt: () => number;

  constructor(deps: {
    machine: Machine;
    onDefect: (text: string) => void;
    disturbedAt: () => number;
  }) {
    this.#machine = deps.machine;
    this.#onDefect = deps.onDefect;
    this.#disturbedAt = deps.disturbedAt;
  }

  receive(sent: Sent): Reply {
    const { headers, body } = sent;
    const fault: { reply: Reply; accepted?: boolean } = this.fault
      ? RECEIVER_FAULTS[this.fault]
      : { reply: response(204), accepted: true };
    const id = headers['webhook-id'];
    if (fault.accepted && id === undefined) this.announced += eventsIn(body);
    if (id !== undefined) {
      if (this.#newest.get(id)?.isOver() === false)
        this.#onDefect(`two attempts to deliver the event ${id} are in flight`);
      this.#newest.set(id, sent);
    }
    if (fault.accepted && id !== undefined) this.#accept(id, body, fault.reply.kind === 'response');
    return fault.reply;
  }

  #accept(id: string, body: string, isConfirmed: boolean): void {
    const { now } = this.#machine;
    const known = this.accepted.get(id);
    if (known && known.body !== body) this.#onDefect(`the event ${id} arrived with two bodies`);
    if (known && known.at + COMMITTED_MS < now && this.#disturbedAt() < known.at)
      this.#onDefect(`the event ${id} arrived again, although its delivery was confirmed`);
    // Without a confirmation, a repetition is due.
    if (isConfirmed) this.accepted.set(id, { body, at: now });
    else this.accepted.set(id, { body, at: Number.POSITIVE_INFINITY });
  }
}

/**
 * Returns the number of events in a message to Slack. The events of a message about several are
 * lines without a label, of which the last one may count others.
 */
function eventsIn(body: string): number {
  const { blocks } = JSON.parse(body) as { blocks: { text: { text: string } }[] };
  const lines = blocks.map(({ text }) => text.text).filter((text) => text.startsWith('`'));
  const others = Number(/^`and (\d+) more`$/.exec(lines.at(-1) ?? '')?.[1] ?? 0);
  return Math.max(1, lines.length + (others > 0 ? others - 1 : 0));
}
