import type { FastifyBaseLogger } from 'fastify';

type Line = [fields: unknown, event?: string];
type ChildOf = Parameters<FastifyBaseLogger['child']>;

/** A child of a log, made for its first line: making one costs more than the rest of a request, and few requests write any. */
class LazyLog {
  readonly #make: () => FastifyBaseLogger;
  readonly #parent: FastifyBaseLogger;
  #made: FastifyBaseLogger | undefined;

  constructor(parent: FastifyBaseLogger, make: () => FastifyBaseLogger) {
    this.#parent = parent;
    this.#make = make;
  }

  get level(): string {
    return this.#parent.level;
  }

  isLevelEnabled(level: string): boolean {
    return (this.#parent as unknown as LazyLog).isLevelEnabled(level);
  }

  child(...as: ChildOf): FastifyBaseLogger {
    return this.#log.child(...as);
  }

  trace(...line: Line): void {
    this.#log.trace(...line);
  }

  debug(...line: Line): void {
    this.#log.debug(...line);
  }

  info(...line: Line): void {
    this.#log.info(...line);
  }

  warn(...line: Line): void {
    this.#log.warn(...line);
  }

  error(...line: Line): void {
    this.#log.error(...line);
  }

  fatal(...line: Line): void {
    this.#log.fatal(...line);
  }

  silent(): void {}

  get #log(): FastifyBaseLogger {
    this.#made ??= this.#make();
    return this.#made;
  }
}

export function lazyChild(parent: FastifyBaseLogger, ...as: ChildOf): FastifyBaseLogger {
  return new LazyLog(parent, () => parent.child(...as));
}
