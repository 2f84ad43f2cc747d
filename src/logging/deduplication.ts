import type { Clock } from '../domain/clock.ts';
import type { LogEventName } from './event-catalog.ts';

const MINUTE_MS = 60_000;
/** Beyond them lines are told apart by their name alone. */
const MAX_SUBJECTS = 1_000;
const SUBJECTS = ['upstream', 'destination', 'rule', 'subject'] as const;

/** Lines of one name about one thing that were held back. */
export type Suppressed = {
  level: 'warn' | 'error';
  of: LogEventName;
  about: { [Field in (typeof SUBJECTS)[number]]?: unknown };
  suppressed: number;
};

/**
 * Lets only so many lines of one name about one thing through in a minute, and says how many it held back when the minute
 * is over. Minutes begin with a line, for all names at once.
 */
export class LogRepeats {
  readonly #deps: { perMinute: number; clock: Clock; onSuppressed: (suppressed: Suppressed) => void };
  readonly #seen = new Map<string, Suppressed & { written: number }>();
  #cancel: (() => void) | undefined;

  /** `perMinute` 0: all of them. */
  constructor(deps: { perMinute: number; clock: Clock; onSuppressed: (suppressed: Suppressed) => void }) {
    this.#deps = deps;
  }

  /** Whether that line is written. */
  allows(level: 'warn' | 'error', of: LogEventName, fields: Readonly<Record<string, unknown>>): boolean {
    const { perMinute, clock } = this.#deps;
    if (perMinute === 0) return true;
    this.#cancel ??= clock.after(MINUTE_MS, () => this.flush());
    const seen = this.#seenOf(level, of, fields);
    if (seen.written < perMinute) {
      seen.written += 1;
      return true;
    }
    seen.suppressed += 1;
    return false;
  }

  /** Ends the minute now. */
  flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const all = [...this.#seen.values()];
    this.#seen.clear();
    for (const { written: _, ...seen } of all) if (seen.suppressed > 0) this.#deps.onSuppressed(seen);
  }

  #seenOf(level: 'warn' | 'error', of: LogEventName, fields: Readonly<Record<string, unknown>>) {
    const isCrowded = this.#seen.size >= MAX_SUBJECTS;
    const names = isCrowded ? [] : SUBJECTS.filter((name) => fields[name] !== undefined);
    const about = Object.fromEntries(names.map((name) => [name, fields[name]]));
    const key = JSON.stringify([level, of, about]);
    const seen = this.#seen.get(key) ?? { level, of, about, suppressed: 0, written: 0 };
    this.#seen.set(key, seen);
    return seen;
  }
}
