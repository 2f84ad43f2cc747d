import fc from 'fast-check';
import { expect, it } from 'vitest';
import { seededRandom } from '../../bench/support/random.ts';
import { eventPacing } from '../../src/pacing/index.ts';
import type { Scheduler } from '../../src/polling/scheduler.ts';
import { MADE_UP_ID } from '../../src/polling/upstream-health.ts';
import type { Classification } from '../../src/submissions/classify.ts';
import { observation, VERDICTS, type VerdictName } from '../support/ledger/domain.ts';
import { createScheduler, drain, LEASE_MS, paced } from '../support/virtual-time/pacing.ts';

const NAMES = Object.keys(VERDICTS) as VerdictName[];

const world = fc.record({
  seed: fc.integer(),
  submissions: fc.integer({ min: 1, max: 25 }),
  requests: fc.integer({ min: 1, max: 20 }),
  perMs: fc.integer({ min: 100, max: 5_000 }),
  concurrency: fc.integer({ min: 1, max: 8 }),
  failures: fc.integer({ min: 1, max: 4 }),
  /** Percentage of polls without a result, and percentage of results that are failures. */
  lost: fc.constantFrom(0, 10, 50),
  trouble: fc.constantFrom(0, 20, 90),
  policy: fc.constantFrom('steady', 'learned'),
  /** Block numbers of final submissions, in addition to those of a regular chain. */
  oddBlocks: fc.array(fc.constantFrom(null, -1, 0, 0.5, 2 ** 60, Number.MAX_VALUE), {
    maxLength: 3,
  }),
});
/** A high price of lag, so that polls are as dense as those of the steady policy. */
const LEARNED = eventPacing({ lagPrice: 1_000 });
type World = typeof world extends fc.Arbitrary<infer T> ? T : never;

/** A scheduler whose results arrive late, wrong, twice or never, in virtual time. */
class Simulation {
  readonly scheduler: Scheduler;
  readonly sent: { at: number; id: string }[] = [];
  now = 0;
  /** Results in transit, the next one first. */
  readonly #responses: { at: number; id: string }[] = [];
  readonly #random: () => number;
  readonly #world: World;
  hostile = true;
  /** End of the pause that the upstream requested. */
  pausedUntil = 0;

  constructor(settings: World) {
    this.#world = settings;
    this.#random = seededRandom(settings.seed);
    const { policy, ...pacing } = settings;
    const common = { ...pacing, maxProbeMs: 4_000, random: this.#random };
    this.scheduler = createScheduler(
      policy === 'learned' ? { ...common, policy: LEARNED } : common,
    );
    for (let i = 0; i < settings.submissions; i++)
      this.scheduler.add(
        paced(`s${i}`, { seen: this.#random() < 0.5, dueAt: Math.floor(this.#random() * 5_000) }),
        0,
      );
  }

  /**
   * Advances to the next event, and checks that the scheduler returns nothing before its wake time.
   */
  step(): void {
    const { scheduler, now } = this;
    const { isUp, probeAt } = scheduler.health;
    const ids = drain(scheduler, now);
    if (ids.length > 0)
      expect(now, 'polled during the pause').toBeGreaterThanOrEqual(this.pausedUntil);
    if (ids.length > 0 && !isUp)
      expect([ids.length, now >= probeAt], 'more than a probe').toEqual([1, true]);
    for (const id of ids) this.#send(id);
    const wakeAt = scheduler.wakeAt();
    expect(wakeAt, 'a busy loop').toBeGreaterThan(now);
    expect(wakeAt, 'never wakes').toBeLessThan(Number.POSITIVE_INFINITY);
    const next = Math.min(wakeAt, this.#responses[0]?.at ?? Number.POSITIVE_INFINITY);
    const between = now + (next - now) * 0.9 * this.#random();
    // Times that are as close as numbers can be have none between them.
    if (between < wakeAt)
      expect(scheduler.next(between), `polled at ${between}, before ${wakeAt}`).toEqual([]);
    this.now = next;
    if (this.#responses[0]?.at === next) this.#deliver();
  }

  #send(id: string): void {
    this.sent.push({ at: this.now, id });
    const chance = () => this.#random() * 100;
    const copies =
      this.hostile && chance() < this.#world.lost ? 0 : this.hostile && chance() < 5 ? 2 : 1;
    for (let i = 0; i < copies; i++) {
      const late = this.hostile && chance() < 5 ? 2 * LEASE_MS : 500;
      this.#responses.push({ at: this.now + 1 + this.#random() * late, id });
    }
    this.#responses.sort((a, b) => a.at - b.at);
  }

  #deliver(): void {
    const id = this.#responses.shift()?.id ?? '';
    const trouble = this.hostile && this.#random() * 100 < this.#world.trouble;
    const name = trouble
      ? (NAMES[Math.floor(this.#random() * NAMES.length)] ?? 'pending')
      : 'pending';
    const wait = this.#random() < 0.5 ? null : this.#random() * 8_000;
    const verdict: Classification =
      name === 'throttled'
        ? { ...VERDICTS[name], retryAfterMs: wait }
        : name === 'finalized'
          ? { ...VERDICTS[name], blockNumber: this.#block() }
          : VERDICTS[name];
    const chance = this.hostile ? this.#random() : 1;
    if (chance >= 0.03 && verdict.kind === 'throttled' && wait !== null)
      this.pausedUntil = Math.max(this.pausedUntil, this.now + wait);
    if (chance < 0.03) this.scheduler.retry(id, this.now + 1_000, this.now);
    else this.scheduler.observe(observation(verdict, this.now, id), true, this.now);
    // Cancelled and tracked again, possibly with its poll in flight; later resumed as after a
    // restart.
    if (chance > 0.03 && chance < 0.06) {
      this.scheduler.remove(id, this.now);
      if (chance < 0.045) this.scheduler.add(paced(id, { dueAt: this.now }), this.now);
      else
        this.scheduler.resume(
          { ...paced(id), polledAt: this.now - 1_000 * chance, finalizedAt: null },
          this.now,
        );
    }
  }

  #block(): number | null {
    const odd = this.#world.oddBlocks;
    const which = Math.floor(this.#random() * 2 * odd.length);
    return which < odd.length ? (odd[which] ?? null) : Math.floor(this.now / 2_000);
  }
}

it('with any sequence of results, the budget, the concurrency and pauses hold, the scheduler wakes in time and never spins; after the upstream has recovered, no submission starves', () => {
  fc.assert(
    fc.property(world, (settings) => {
      const { submissions, requests, perMs, concurrency } = settings;
      const simulation = new Simulation(settings);
      for (let i = 0; i < 150; i++) {
        simulation.step();
        const { inFlight } = simulation.scheduler;
        expect(inFlight >= 0 && inFlight <= concurrency, `${inFlight} in flight`).toBe(true);
      }
      simulation.hostile = false;
      // The longest interval of the policy, leases, a probe, and then two rounds of all submissions
      // within the budget.
      const turnMs = Math.ceil(submissions / requests) * (perMs + 501) + submissions * 501 + 2_400;
      const from = simulation.now;
      const until = from + 300_000 + 3 * LEASE_MS + 4_800 + 2 * turnMs;
      const { sent, scheduler } = simulation;
      const polled = new Set<string>();
      for (let seen = sent.length; polled.size < submissions || !scheduler.health.isUp; ) {
        expect(simulation.now, `${polled.size} polled`).toBeLessThan(until);
        simulation.step();
        for (; seen < sent.length; seen++) {
          const { at, id } = sent[seen] as { at: number; id: string };
          if (at > from && id !== MADE_UP_ID) polled.add(id);
        }
      }
      for (const [index, { at }] of sent.entries()) {
        const beyond = sent[index + requests];
        if (beyond) expect(beyond.at).toBeGreaterThanOrEqual(at + perMs);
      }
    }),
    { numRuns: 25 },
  );
});
