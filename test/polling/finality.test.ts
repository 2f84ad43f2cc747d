import { describe, expect, it } from 'vitest';
import type { HttpResult } from '../../src/lib/http-call.ts';
import type { PolicyFactory } from '../../src/pacing/index.ts';
import type { Finalization } from '../../src/submissions/ledger-stats.ts';
import { byAge } from '../support/virtual-time/pacing.ts';
import {
  openWatcher,
  pending,
  response,
  START_MS,
} from '../support/virtual-time/virtual-watcher.ts';

const responseOf = (block: number) =>
  response(200, {
    state: 'Finalized',
    error: null,
    data: { block_hash: '0xabc', block_number: block },
  });

/**
 * An upstream where all submissions become final 40 s after the start and every 20 s from then on.
 */
function world({
  respondInstead,
  policy = byAge,
  announcedAt,
}: {
  respondInstead?: () => HttpResult | undefined;
  policy?: PolicyFactory;
  /** When a node of the chain announces a block as final; null: not yet. */
  announcedAt?: (block: number, now: number) => number | null;
} = {}) {
  const finalities: Finalization[] = [];
  const now = () => monitor.clock.now();
  const bornAt = new Map<string, number>();
  const monitor = openWatcher({
    respond(id) {
      const other = respondInstead?.();
      if (other) return other;
      const bornMs = bornAt.get(id) ?? START_MS;
      const block = Math.max(0, Math.ceil((bornMs + 25_000 - START_MS) / 20_000));
      return now() >= START_MS + block * 20_000 ? responseOf(block) : pending;
    },
    policy,
    ...(announcedAt && { chain: { finalizedAt: (block) => announcedAt(block, now()) } }),
    listener: { finalized: (finality) => finalities.push(finality) },
  });
  return {
    monitor,
    reported: finalities,
    track(id: string, bornMs = 0) {
      bornAt.set(id, now() - bornMs);
      monitor.track([id], bornMs > 0 ? { trackedAt: now() - bornMs } : {});
    },
  };
}

it('is reported once, with its polls and its duration', async () => {
  const { monitor, reported: finalities, track } = world();
  track('a');
  await monitor.clock.advance(60_000);
  expect(finalities).toHaveLength(1);
  const [{ at = 0, trackedAt, polls, upstream } = {}] = finalities;
  const pollTimes = monitor.polls.map((one) => one.at);
  expect({ trackedAt, polls, upstream }).toEqual({
    trackedAt: START_MS,
    polls: pollTimes.length,
    upstream: 'default',
  });
  expect(at).toBe(pollTimes.at(-1));
  expect(at).toBeGreaterThanOrEqual(START_MS + 40_000);
});

describe('the time of finality', () => {
  const FINAL_MS = START_MS + 40_000;
  const found = async (options: Parameters<typeof world>[0], bornMs = 0) => {
    const { monitor, reported, track } = world(options);
    track('a', bornMs);
    await monitor.clock.advance(60_000);
    const [{ at = 0, detection } = {}] = reported;
    const { finalizedAt, finalityAt, finalitySource } = monitor.get('a');
    expect(finalizedAt).toBe(at);
    expect({ finalityAt, finalitySource }).toEqual({
      finalityAt: detection?.finalityAt ?? null,
      finalitySource: detection?.source ?? null,
    });
    return { at, detection };
  };

  it('is that of the announcement by a node, from which the detection lag counts', async () => {
    const { at, detection } = await found({ announcedAt: () => FINAL_MS + 300 });
    const finalityAt = FINAL_MS + 300;
    expect(detection).toEqual({ finalityAt, source: 'chain', lagMs: at - finalityAt });
  });

  it('is that of the response if the poll found it before the announcement', async () => {
    const { at, detection } = await found({ announcedAt: () => FINAL_MS + 30_000 });
    expect(detection).toEqual({ finalityAt: at, source: 'chain', lagMs: 0 });
  });

  it('may be before its tracking, from which the detection lag counts then', async () => {
    const { at, detection } = await found({ announcedAt: () => START_MS - 5_000 });
    const lagMs = at - START_MS;
    expect(detection).toEqual({ finalityAt: START_MS - 5_000, source: 'chain', lagMs });
  });

  it('of an import may be before the import, from which the detection lag counts then', async () => {
    const announcedAt = () => START_MS - 5_000;
    const { at, detection } = await found({ announcedAt }, 48 * 3_600_000);
    expect(detection?.lagMs).toBe(at - START_MS);
  });

  it.each([['no node is configured'], ['no node announced the block', () => null]])(
    'is estimated if %s, and not known before the policy has an estimate',
    async (_, announcedAt?: () => null) => {
      const options = announcedAt && { announcedAt };
      expect((await found({ ...options, policy: estimating(null) })).detection).toBeNull();
      const { at, detection } = await found({ ...options, policy: estimating(500.4) });
      expect(detection).toEqual({ finalityAt: at - 500, source: 'estimate', lagMs: 500 });
    },
  );
});

/** Polls by age, and estimates this lag. */
function estimating(lagMs: number | null): PolicyFactory {
  return (deps) => ({ ...byAge(deps), lagOf: () => lagMs });
}
