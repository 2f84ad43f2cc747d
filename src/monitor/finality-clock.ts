/**
 * When a block became final: after `after`, when an answer still said it was not, and by `by`, when one said it was. Where
 * `after` is later, the block did not become final for all at once.
 */
export type Tick = { block: number; after: number; by: number };

/** The next block becomes final in here, as far as is known. */
export type Window = { from: number; until: number };

/** So many blocks are remembered: at 20 s each, ten minutes. */
const MEMORY = 32;
/** From so many blocks a clock can be told; from more once one was wrong, because a few fit any clock by chance. */
const ENOUGH = 3;
const ENOUGH_AFTER_CHANGE = 6;
/** Clocks that change or leave out blocks are trusted again sooner than what was found to be none. */
const MOST_AFTER_CHANGE = 12;
const MOST_AFTER_DOUBT = 24;
/** Clocks drift, and so what was seen long ago says less: the share of a period that each block since then adds. */
const DRIFT = 0.001;
const MIN_PERIOD_MS = 500;

/**
 * Learns the clock on which the upstream's blocks become final, from answers alone. Every finalized submission names its
 * block and bounds the moment of its finality. Moved along by whole periods, the bounds of all blocks lie over each other:
 *
 *     block 41        (--------------]
 *     block 42            (-----------------]
 *     block 45      (-----------]
 *     all of them         (-----]            ← the window: here each block becomes final
 *
 * Where the bounds contradict each other, the clock is uneven, and the window is as wide as the contradiction. Where that
 * is more than half a period, the clock has changed, and the oldest blocks are forgotten.
 */
export class FinalityClock {
  #ticks: Tick[];
  #enough: number;
  #isBelieved = false;
  #fit: Fit | null = null;
  #isFitted = false;

  /** `enough`: from so many blocks it is believed. */
  constructor(ticks: readonly Tick[] = [], enough = ENOUGH) {
    this.#ticks = ticks.slice(-MEMORY);
    this.#enough = enough;
  }

  /** What to keep over a restart. */
  get ticks(): readonly Tick[] {
    return this.#ticks;
  }

  get enough(): number {
    return this.#enough;
  }

  /** Null: not known, so nothing is told about the moments to come. */
  get periodMs(): number | null {
    return this.#current?.periodMs ?? null;
  }

  learn({ block, after, by }: Tick): void {
    const at = this.#ticks.findLastIndex((tick) => tick.block <= block);
    const known = this.#ticks[at];
    if (known?.block === block) {
      if (after <= known.after && by >= known.by) return;
      known.by = Math.min(known.by, by);
      known.after = Math.max(known.after, after);
    } else if (at >= 0 || this.#ticks.length < MEMORY) {
      this.#ticks.splice(at + 1, 0, { block, after, by });
      if (this.#ticks.length > MEMORY) this.#ticks.shift();
    }
    this.#isFitted = false;
  }

  /** Somebody was final before the clock says that its block was: if much before, there is no such clock. */
  doubt(block: number, finalAt: number): void {
    const dueAt = this.finalBy(block);
    if (dueAt === null || finalAt >= dueAt - (this.periodMs ?? 0) / 4) return;
    this.#ticks = [];
    this.#distrust(MOST_AFTER_DOUBT);
    this.#isFitted = false;
  }

  /** The first window that ends after this moment. Null while the clock is not known. */
  windowAfter(time: number): Window | null {
    const fit = this.#current;
    if (!fit) return null;
    const { until, periodMs } = fit;
    let blocks = Math.floor((time - until) / periodMs);
    let window = ahead(fit, blocks);
    // Rounding may cost one more; what needs more than that is no time.
    for (let more = 0; more < 3 && window.until <= time; more++) window = ahead(fit, ++blocks);
    if (!(window.until > time)) return null;
    return window.until - window.from > periodMs / 2 ? null : window;
  }

  /** By when this block was final; null while the clock is not known. */
  finalBy(block: number): number | null {
    const fit = this.#current;
    return fit && fit.until + (block - fit.block) * fit.periodMs;
  }

  /** Until then this block was not final, as far as is known; null of a block that nobody was found in lately. */
  finalAfter(block: number): number | null {
    const tick = this.#ticks.find((known) => known.block === block);
    if (!tick) return null;
    const fit = this.#current;
    return fit ? Math.max(tick.after, ahead(fit, block - fit.block).from) : tick.after;
  }

  get #current(): Fit | null {
    if (!this.#isFitted) this.#fit = this.#refit();
    this.#isFitted = true;
    return this.#fit;
  }

  #refit(): Fit | null {
    while (this.#ticks.length >= this.#enough) {
      const period = periodOf(this.#ticks);
      const fit = period && lay(this.#ticks, period);
      if (!fit) return null;
      if (fit.contradictionMs <= fit.periodMs / 2) {
        if (this.#ticks.length === MEMORY) this.#enough = Math.min(this.#enough, ENOUGH_AFTER_CHANGE);
        this.#isBelieved = fit.until - fit.from <= fit.periodMs / 2;
        return this.#isBelieved ? fit : null;
      }
      this.#ticks.shift();
      this.#distrust(MOST_AFTER_CHANGE);
    }
    return null;
  }

  /** A clock that was believed and wrong again and again is believed less and less. */
  #distrust(most: number): void {
    const enough = this.#isBelieved ? Math.min(most, 2 * this.#enough) : 0;
    this.#enough = Math.max(ENOUGH_AFTER_CHANGE, this.#enough, enough);
    this.#isBelieved = false;
  }
}

type Period = { periodMs: number; slackMs: number };
/** `slackMs`: how uncertain the period is. The window is that of the newest block. */
type Fit = Period & Window & { block: number; contradictionMs: number };

/** The window so many blocks after the newest one, or before it: our own clock may have been set back. */
function ahead({ from, until, periodMs, slackMs }: Fit, blocks: number): Window {
  const uncertainMs = Math.abs(blocks) * slackMs;
  return { from: from + blocks * periodMs - uncertainMs, until: until + blocks * periodMs + uncertainMs };
}

/** Any two blocks bound the period. Those close together are left out: an uneven clock tells nonsense over a short time. */
function periodOf(ticks: readonly Tick[]): Period | null {
  const span = (ticks.at(-1)?.block ?? 0) - (ticks[0]?.block ?? 0);
  const leastDistance = Math.min(span / 2, MEMORY / 2);
  let least = 0;
  let most = Number.POSITIVE_INFINITY;
  for (const [index, early] of ticks.entries()) {
    for (let other = index + 1; other < ticks.length; other++) {
      const late = ticks[other];
      if (!late || late.block - early.block < leastDistance) continue;
      least = Math.max(least, (late.after - early.by) / (late.block - early.block));
      most = Math.min(most, (late.by - early.after) / (late.block - early.block));
    }
  }
  const periodMs = (least + most) / 2;
  if (!(periodMs >= MIN_PERIOD_MS && periodMs < Number.POSITIVE_INFINITY)) return null;
  const slackMs = Math.max(0, (most - least) / 2);
  return slackMs > periodMs / 4 ? null : { periodMs, slackMs: slackMs + DRIFT * periodMs };
}

/** Lays the bounds of all blocks over those of the newest one. */
function lay(ticks: readonly Tick[], { periodMs, slackMs }: Period): Fit {
  const newest = ticks.at(-1)?.block ?? 0;
  let after = Number.NEGATIVE_INFINITY;
  let by = Number.POSITIVE_INFINITY;
  for (const tick of ticks) {
    const blocks = newest - tick.block;
    after = Math.max(after, tick.after + blocks * (periodMs - slackMs));
    by = Math.min(by, tick.by + blocks * (periodMs + slackMs));
  }
  return {
    block: newest,
    periodMs,
    slackMs,
    from: Math.min(after, by),
    until: Math.max(after, by),
    contradictionMs: Math.max(0, after - by),
  };
}
