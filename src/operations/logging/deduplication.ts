import type { Clock } from '../../lib/clock.ts';
import type { LogEventName } from './event-catalog.ts';

const MINUTE_MS = 60_000;
/** With more subjects than this in a minute, lines are counted by event alone. */
const MAX_SUBJECTS = 1_000;
const SUBJECT_FIELDS = ['upstream', 'destination', 'rule', 'subject'] as const;

/** The suppressed lines of one event about one subject. */
export type Suppressed = {
  level: 'warn' | 'error';
  event: LogEventName;
  subject: { [Field in (typeof SUBJECT_FIELDS)[number]]?: unknown };
  suppressed: number;
};

/**
 * Limits the lines of one event about one subject per minute and reports the number of suppressed
 * lines when the minute ends. A minute starts with the first line after the previous one ended and
 * is shared by all events.
 */
export class LogDeduplication {
  readonly #deps: {
    perMinute: number;
    clock: Clock;
    onSuppressed: (suppressed: Suppressed) => void;
  };
  readonly #counts = new Map<string, Suppressed & { written: number }>();
  #cancel: (() => void) | undefined;

  /** `perMinute` 0 disables the limit. */
  constructor(deps: {
    perMinute: number;
    clock: Clock;
    onSuppressed: (suppressed: Suppressed) => void;
  }) {
    this.#deps = deps;
  }

  /** Counts a line and returns whether to write it. */
  allows(
    level: 'warn' | 'error',
    event: LogEventName,
    fields: Readonly<Record<string, unknown>>,
  ): boolean {
    const { perMinute, clock } = this.#deps;
    if (perMinute === 0) return true;
    this.#cancel ??= clock.after(MINUTE_MS, () => this.flush());
    const count = this.#countOf(level, event, fields);
    if (count.written < perMinute) {
      count.written += 1;
      return true;
    }
    count.suppressed += 1;
    return false;
  }

  /** Ends the current minute and reports its suppressed lines. */
  flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const counts = [...this.#counts.values()];
    this.#counts.clear();
    for (const { written: _, ...count } of counts)
      if (count.suppressed > 0) this.#deps.onSuppressed(count);
  }

  #countOf(
    level: 'warn' | 'error',
    event: LogEventName,
    fields: Readonly<Record<string, unknown>>,
  ) {
    const isFull = this.#counts.size >= MAX_SUBJECTS;
    const names = isFull ? [] : SUBJECT_FIELDS.filter((name) => fields[name] !== undefined);
    const subject = Object.fromEntries(names.map((name) => [name, fields[name]]));
    const key = JSON.stringify([level, event, subject]);
    const count = this.#counts.get(key) ?? { level, event, subject, suppressed: 0, written: 0 };
    this.#counts.set(key, count);
    return count;
  }
}
