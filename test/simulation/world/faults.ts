import { NODE_FAULT_KINDS } from '../../../src/sandbox/node/node-faults.ts';
import type { Disk } from '../machine/disk.ts';
import type { Machine } from '../machine/machine.ts';
import { createRandom, type Random } from '../machine/random.ts';
import type { Callers } from './callers.ts';
import { RECEIVER_FAULTS, type Receiver, type ReceiverFault } from './receivers.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, type SimulatedServer } from './server.ts';
import { UPSTREAM_FAULTS, type Upstream, type UpstreamFault } from './upstream.ts';

/** Everything that can be left out of a simulation. */
export const FAULTS = ['kills', 'stops', 'upstream', 'node', 'receivers', 'disk', 'clock'] as const;
export const ACTIONS = ['cancels', 'retracks', 'updates'] as const;
export type FaultKind = (typeof FAULTS)[number];
const DISK_FAULTS = ['full', 'nearly_full', 'failing'] as const;

/** What has to occur in the runs of a fixed set of seeds. */
export const OCCURRENCES: readonly string[] = [
  ...FAULTS,
  ...ACTIONS,
  ...NODE_FAULT_KINDS.filter((kind) => kind !== 'none').map((kind) => `node ${kind}`),
  ...DISK_FAULTS.map((fault) => `disk ${fault}`),
  'failed syncs',
  'deletions',
  'expiries',
];

const LOOKS = 40;
const LOOK_MS = 7_000;

type FaultsDeps = {
  machine: Machine;
  disk: Disk;
  server: SimulatedServer;
  upstream: Upstream;
  receivers: readonly Receiver[];
  callers: Callers;
  note: (occurrence: string) => void;
};

/**
 * Causes faults at random times. Those of one kind do not depend on the others, so that any kind
 * can be left out.
 */
export class Faults {
  /** By kind: when a fault began or ended, the last time; outside of the machine. */
  readonly #lastAt = new Map<FaultKind, number>();
  /** By kind: how many faults last. */
  readonly #running = new Map<FaultKind, number>();
  isActive = true;
  readonly #deps: FaultsDeps;
  readonly #without: ReadonlySet<string>;
  /** Ends the running faults. */
  readonly #ends = new Set<() => void>();

  constructor(deps: FaultsDeps & { seed: number; without: ReadonlySet<string> }) {
    this.#deps = deps;
    this.#without = deps.without;
    // Each kind occurs several times in a month.
    const meanMs = {
      kills: (2 * DAY_MS) / 5,
      stops: 6 * DAY_MS,
      upstream: (2 * DAY_MS) / 3,
      node: DAY_MS / 6,
      receivers: DAY_MS / 6,
      disk: DAY_MS,
      clock: 4 * DAY_MS,
    };
    for (const kind of FAULTS) {
      if (deps.without.has(kind)) continue;
      const random = createRandom(deps.seed, `faults ${kind}`);
      const repeat = () =>
        deps.machine.later(random.waitMs(meanMs[kind]), () => {
          if (!this.isActive) return;
          this.#lastAt.set(kind, deps.machine.now);
          deps.note(kind);
          this.#cause(kind, random);
          repeat();
        });
      repeat();
    }
  }

  /**
   * The last time at which a start or a fault of these kinds may have had an effect; a running one
   * has until now.
   */
  disturbedAt(kinds: readonly FaultKind[] = FAULTS): number {
    const lastAt = (kind: FaultKind) =>
      this.#running.get(kind) ? this.#deps.machine.now : (this.#lastAt.get(kind) ?? 0);
    return Math.max(this.#deps.server.bootedAt, ...kinds.map(lastAt));
  }

  /** Ends all faults and causes no more. */
  heal(): void {
    this.isActive = false;
    for (const end of [...this.#ends]) end();
  }

  #cause(kind: FaultKind, random: Random): void {
    const { machine, disk, server, upstream, receivers, callers, note } = this.#deps;
    switch (kind) {
      case 'kills': {
        // An idle server has little to lose.
        if (random.chance(0.7)) callers.submitMany();
        // At first it tracks them, and most events follow after half a minute.
        const afterMs = random.chance(0.5) ? 0 : random.between(0, MINUTE_MS);
        machine.later(afterMs, () => this.#kill(random));
        return;
      }
      case 'stops':
        void server.stop();
        return;
      case 'upstream': {
        if (upstream.fault) return;
        const any = random.pick(Object.keys(UPSTREAM_FAULTS) as UpstreamFault[]);
        upstream.fault = random.chance(0.25) ? 'throttled' : any;
        // On-demand polls wait for the end of a pause.
        if (upstream.fault === 'throttled')
          for (let look = 1; look < LOOKS; look++)
            machine.later(look * LOOK_MS, () => callers.look(random));
        // Most of all, an upstream under load fails or throttles.
        if (upstream.fault === 'throttled' || random.chance(0.3)) callers.submitMany();
        this.#during(kind, random.between(1, random.chance(0.6) ? 10 : 180) * MINUTE_MS, () => {
          upstream.fault = undefined;
        });
        return;
      }
      case 'node': {
        if (this.#running.get(kind)) return;
        const fault = random.pick(NODE_FAULT_KINDS.filter((each) => each !== 'none'));
        note(`node ${fault}`);
        upstream.node.setFault({ kind: fault, seconds: random.between(5, 300) });
        this.#during(kind, random.between(1, random.chance(0.6) ? 10 : 180) * MINUTE_MS, () =>
          upstream.node.setFault({ kind: 'none', seconds: 1 }),
        );
        return;
      }
      case 'receivers': {
        const receiver = random.pick(receivers);
        if (receiver.fault) return;
        receiver.fault = random.pick(Object.keys(RECEIVER_FAULTS) as ReceiverFault[]);
        const durationMs = random.between(1, random.chance(0.8) ? 30 : 360) * MINUTE_MS;
        this.#during(kind, durationMs, () => {
          receiver.fault = undefined;
        });
        // A restart with deliveries that wait to be tried again.
        const killAfterMs = random.between(0, durationMs);
        if (random.chance(0.3) && !this.#without.has('kills'))
          machine.later(killAfterMs, () => receiver.fault && machine.kill());
        return;
      }
      case 'disk': {
        if (this.#running.get(kind)) return;
        const fault = random.pick(DISK_FAULTS);
        note(`disk ${fault}`);
        let isOver = false;
        if (random.chance(0.5)) callers.submitMany();
        if (fault === 'full') disk.isFull = true;
        else if (fault === 'nearly_full') this.#fill(random, () => isOver);
        else disk.failsNextSync = true;
        this.#during(kind, random.between(1, 600) * 1_000, () => {
          isOver = true;
          disk.empty();
          disk.failsNextSync = false;
        });
        return;
      }
      case 'clock': {
        const ms = random.between(1, random.chance(0.5) ? 10 * MINUTE_MS : HOUR_MS);
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

  #kill(random: Random): void {
    const { machine, server } = this.#deps;
    if (!this.isActive) return;
    this.#lastAt.set('kills', machine.now);
    machine.killAfter(random.between(0, 80));
    // Without any reading or writing, it is killed while it waits.
    machine.later(MINUTE_MS, () => {
      if (server.bootedAt < machine.now - MINUTE_MS) machine.kill();
    });
  }

  /** Until the fault ends, the disk is full again and again, each time from a random commit on. */
  #fill(random: Random, isOver: () => boolean): void {
    const { machine, disk } = this.#deps;
    if (isOver()) return;
    disk.empty();
    disk.fillAfter(random.between(0, 12));
    machine.later(random.between(1, 60) * 1_000, () => this.#fill(random, isOver));
  }

  #during(kind: FaultKind, durationMs: number, onEnd: () => void): void {
    const { machine } = this.#deps;
    this.#running.set(kind, (this.#running.get(kind) ?? 0) + 1);
    const end = () => {
      if (!this.#ends.delete(end)) return;
      this.#running.set(kind, (this.#running.get(kind) ?? 0) - 1);
      this.#lastAt.set(kind, machine.now);
      onEnd();
    };
    this.#ends.add(end);
    machine.later(durationMs, end);
  }
}
