import { type Disk, SYNC_MS } from '../machine/disk.ts';
import type { Machine } from '../machine/machine.ts';
import { createRandom, type Random } from '../machine/random.ts';
import type { Callers } from './callers.ts';
import type { Receiver } from './receivers.ts';
import { RECEIVER_FAULTS, type ReceiverFault } from './receivers.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, type SimulatedServer } from './server.ts';
import { UPSTREAM_FAULTS, type Upstream, type UpstreamFault } from './upstream.ts';

/** Everything that can be left out of a simulation. */
export const FAULTS = ['kills', 'stops', 'reloads', 'upstream', 'receivers', 'disk', 'clock'] as const;
export const ACTIONS = ['cancels', 'retracks', 'updates'] as const;
export type FaultKind = (typeof FAULTS)[number];

type FaultsDeps = {
  machine: Machine;
  disk: Disk;
  server: SimulatedServer;
  upstream: Upstream;
  receivers: readonly Receiver[];
  callers: Callers;
};

/** Causes faults at random times. Those of one kind do not depend on the others, so that any kind can be left out. */
export class Faults {
  /** By kind: until when it may have effects; outside of the machine. */
  readonly lastAt = new Map<FaultKind, number>();
  /** Total milliseconds in which the upstream sent no truth, or the clock skipped. */
  outageMs = 0;
  count = 0;
  isActive = true;
  readonly #deps: FaultsDeps;
  /** Ends the running faults, with the times when they began. */
  readonly #ends = new Map<() => void, number>();

  constructor(deps: FaultsDeps & { seed: number; without: ReadonlySet<string> }) {
    this.#deps = deps;
    const meanMs = {
      kills: DAY_MS,
      stops: 3 * DAY_MS,
      reloads: DAY_MS,
      upstream: DAY_MS / 3,
      receivers: DAY_MS / 3,
      disk: 2 * DAY_MS,
      clock: 2 * DAY_MS,
    };
    for (const kind of FAULTS) {
      if (deps.without.has(kind)) continue;
      const random = createRandom(deps.seed, `faults ${kind}`);
      const repeat = () =>
        deps.machine.later(random.waitMs(meanMs[kind]), () => {
          if (!this.isActive) return;
          this.lastAt.set(kind, deps.machine.now);
          this.count += 1;
          this.#cause(kind, random);
          repeat();
        });
      repeat();
    }
  }

  /** The last time at which a start or a fault of these kinds may have had an effect; a running one has until now. */
  disturbedAt(kinds: readonly FaultKind[] = FAULTS): number {
    return Math.max(this.#deps.server.bootedAt, ...kinds.map((kind) => this.lastAt.get(kind) ?? 0));
  }

  /** Total milliseconds for which the running faults have lasted. */
  runningMs(): number {
    return this.#ends.values().reduce((sum, from) => sum + this.#deps.machine.now - from, 0);
  }

  /** Ends all faults and causes no more. */
  heal(): void {
    this.isActive = false;
    for (const end of this.#ends.keys().toArray()) end();
  }

  #cause(kind: FaultKind, random: Random): void {
    const { machine, disk, server, upstream, receivers, callers } = this.#deps;
    switch (kind) {
      case 'kills': {
        // An idle server has little to lose.
        if (random.chance(0.7)) callers.submitMany();
        disk.losesPower = random.chance(0.5);
        machine.killAfter(random.between(0, 80));
        // Without any reading or writing, it is killed while it waits.
        machine.later(MINUTE_MS, () => {
          if (server.bootedAt < machine.now - MINUTE_MS) machine.kill();
        });
        return;
      }
      case 'stops':
        void server.stop();
        return;
      case 'reloads':
        void server.reload();
        return;
      case 'upstream': {
        if (upstream.fault) return;
        upstream.fault = random.pick(Object.keys(UPSTREAM_FAULTS) as UpstreamFault[]);
        this.#during(kind, random.between(1, random.chance(0.6) ? 10 : 180) * MINUTE_MS, () => {
          upstream.fault = undefined;
        });
        return;
      }
      case 'receivers': {
        const receiver = random.pick(receivers);
        if (receiver.fault) return;
        receiver.fault = random.pick(Object.keys(RECEIVER_FAULTS) as ReceiverFault[]);
        this.#during(kind, random.between(1, random.chance(0.8) ? 30 : 360) * MINUTE_MS, () => {
          receiver.fault = undefined;
        });
        return;
      }
      case 'disk': {
        const fault = random.pick(['full', 'slow', 'failing'] as const);
        if (fault === 'full') disk.isFull = true;
        else if (fault === 'slow') disk.syncMs = random.between(50, 4_000);
        else disk.failsNextSync = true;
        this.#during(kind, random.between(1, 600) * 1_000, () => {
          disk.isFull = false;
          disk.syncMs = SYNC_MS;
          disk.failsNextSync = false;
        });
        return;
      }
      case 'clock': {
        const ms = random.between(1, random.chance(0.5) ? 10 * MINUTE_MS : HOUR_MS);
        this.outageMs += ms;
        if (random.chance(0.5)) machine.skip(ms);
        else {
          // A clock that is set back is followed at the next start.
          machine.kill();
          machine.aheadMs -= ms;
        }
        return;
      }
      default:
        kind satisfies never;
    }
  }

  #during(kind: FaultKind, durationMs: number, onEnd: () => void): void {
    const { machine } = this.#deps;
    const from = machine.now;
    this.lastAt.set(kind, Number.POSITIVE_INFINITY);
    const end = () => {
      if (!this.#ends.delete(end)) return;
      this.lastAt.set(kind, machine.now);
      this.outageMs += machine.now - from;
      onEnd();
    };
    this.#ends.set(end, from);
    machine.later(durationMs, end);
  }
}
