import { describe, expect, it } from 'vitest';
import { stubChain } from '../../support/chain/stub-chain.ts';
import { historyOf } from '../../support/ledger/domain.ts';
import { rawConnection } from '../../support/ledger/ledger-file.ts';
import {
  MINUTE_MS,
  openWatcher,
  response,
  START_MS,
} from '../../support/virtual-time/virtual-watcher.ts';

const HASH = `0x${'a'.repeat(64)}`;
const FORK = `0x${'f'.repeat(64)}`;
const PRUNED = null;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** An upstream that reports every submission as final in block 7, and a node of its chain. */
function open(verify: 'off' | 'report' | 'require', answer: string | null) {
  const node = { answer };
  const upstream = { data: { block_hash: HASH, block_number: 7 } as object };
  const stub = stubChain(async () => node.answer);
  const settings = { urls: ['ws://node'], verify, verify_data: false };
  const world = openWatcher({
    respond: () => response(200, { state: 'Finalized', error: null, data: upstream.data }),
    verification: { chain: stub.chain, settings },
  });
  return {
    ...{ ...stub, world, node, upstream, settings },
    /** A new final block is announced. */
    async head(number = 8): Promise<void> {
      stub.announce(number);
      await world.clock.advance(100);
    },
    verdicts: (id = 'a') => historyOf(world.ledger, id).map(({ status, chain }) => [status, chain]),
    events: () =>
      rawConnection(world.file).prepare('SELECT type FROM outbox ORDER BY seq').pluck().all(),
  };
}

describe('a report of finality', () => {
  it('is verified as soon as a node answers, also after a restart, and costs no further poll', async () => {
    const { world, node, head, verdicts, events } = open('report', PRUNED);
    world.track(['a']);
    await world.clock.advance(24 * MINUTE_MS);
    expect(world.get('a')).toMatchObject({ status: 'finalized', chain: 'unavailable' });
    world.restart();
    node.answer = HASH;
    await head();
    expect(verdicts().slice(1)).toEqual([
      ['finalized', 'unavailable'],
      ['finalized', 'confirmed'],
    ]);
    expect(events()).toEqual(['submission.finalized']);
    expect(world.polls).toHaveLength(1);
  });

  it('is asked about every 30 s without new blocks, once for all submissions of a block, until the deadline', async () => {
    const { world, calls } = open('report', PRUNED);
    const deadlineAt = START_MS + 10 * MINUTE_MS;
    world.track(
      Array.from({ length: 250 }, (_, index) => `s${index}`),
      { deadlineAt },
    );
    await world.clock.advance(5 * MINUTE_MS);
    expect(calls.length).toBeLessThanOrEqual(11);
    await world.clock.advance(DAY_MS);
    const before = calls.length;
    await world.clock.advance(MINUTE_MS);
    expect(calls).toHaveLength(before);
  });

  it('is settled with all others at the next block', async () => {
    const { world, node, head, calls } = open('report', PRUNED);
    const ids = Array.from({ length: 250 }, (_, index) => `s${index}`);
    world.track(ids);
    await world.clock.advance(MINUTE_MS);
    node.answer = HASH;
    const before = calls.length;
    await head();
    expect(ids.filter((id) => world.get(id).chain !== 'confirmed')).toEqual([]);
    expect(calls).toHaveLength(before + 1);
  });

  it('is polled again at most every ten minutes while it is contradicted, because it may be corrected', async () => {
    const { world, upstream, head, verdicts, events } = open('report', FORK);
    world.track(['a']);
    await world.clock.advance(1_000);
    expect(world.get('a').chain).toBe('unavailable');
    await head();
    expect(world.get('a').chain).toBe('contradicted');
    await world.clock.advance(25 * MINUTE_MS);
    expect(world.polls).toHaveLength(3);
    upstream.data = { block_hash: FORK, block_number: 7 };
    await world.clock.advance(10 * MINUTE_MS);
    expect(verdicts().at(-1)).toEqual(['finalized', 'confirmed']);
    expect(events()).toEqual([
      'submission.finalized',
      'submission.contradicted',
      'submission.corrected',
    ]);
    await world.clock.advance(60 * MINUTE_MS);
    expect(world.polls).toHaveLength(4);
  });

  it('is verified again when the expected hash of its data changes', async () => {
    const { world, settings } = open('report', HASH);
    settings.urls = [];
    const dataHash = `0x${'d'.repeat(64)}`;
    world.track(['a'], { dataHash });
    await world.clock.advance(1_000);
    expect(world.get('a')).toMatchObject({ chain: 'unavailable' });
    world.update('a', { dataHash: null });
    await world.clock.advance(MINUTE_MS);
    expect(world.get('a')).toMatchObject({ status: 'finalized', chain: null });
  });
});

describe('a required confirmation', () => {
  it('finalizes a submission without another poll, however long it takes', async () => {
    const { world, node, head, verdicts, events } = open('require', PRUNED);
    world.track(['a']);
    await world.clock.advance(24 * MINUTE_MS);
    expect(verdicts().slice(1)).toEqual([['pending', 'unavailable']]);
    expect(world.monitor.nextPollAt(world.get('a'))).toBe(START_MS + DAY_MS);
    node.answer = HASH;
    const wait = world.monitor.waitUntilFinal(() => world.get('a'), DAY_MS);
    await head();
    await wait;
    expect(world.get('a')).toMatchObject({ status: 'finalized', chain: 'confirmed', polls: 1 });
    expect(events()).toEqual(['submission.stuck', 'submission.finalized']);
    await world.clock.advance(2 * DAY_MS);
    expect(world.polls).toHaveLength(1);
  });

  it('is awaited after a restart, until it is required no longer', async () => {
    const { world, settings, head } = open('require', PRUNED);
    world.track(['a']);
    await world.clock.advance(MINUTE_MS);
    world.restart();
    await head();
    expect(world.get('a').status).toBe('pending');
    settings.verify = 'off';
    world.restart();
    await world.clock.advance(1_000);
    expect(world.get('a')).toMatchObject({ status: 'finalized', chain: null });
    expect(world.polls).toHaveLength(1);
  });

  it('is awaited until the deadline, after which a last poll decides', async () => {
    const { world, verdicts } = open('require', PRUNED);
    world.track(['a'], { deadlineAt: START_MS + 5 * MINUTE_MS });
    await world.clock.advance(10 * MINUTE_MS);
    expect(verdicts().at(-1)).toEqual(['expired', 'unavailable']);
    expect(world.polls.map(({ at }) => at)).toEqual([expect.any(Number), START_MS + 5 * MINUTE_MS]);
  });

  it('is recorded later if the ledger cannot be written', async () => {
    const { world, node, head } = open('require', PRUNED);
    world.track(['a']);
    await world.clock.advance(MINUTE_MS);
    node.answer = HASH;
    const other = rawConnection(world.file);
    other.exec('BEGIN IMMEDIATE');
    await head();
    expect(world.get('a').status).toBe('pending');
    other.exec('COMMIT');
    await head(9);
    expect(world.get('a').status).toBe('finalized');
  });

  it('no longer holds a submission that the upstream reports as pending again', async () => {
    const { world, upstream, node, head } = open('require', FORK);
    world.track(['a']);
    await world.clock.advance(1_000);
    await head();
    upstream.data = { block_number: null };
    await world.clock.advance(11 * MINUTE_MS);
    expect(world.get('a')).toMatchObject({ status: 'pending', chain: null });
    upstream.data = { block_hash: HASH, block_number: 7 };
    node.answer = HASH;
    await world.clock.advance(10 * MINUTE_MS);
    expect(world.get('a')).toMatchObject({ status: 'finalized', chain: 'confirmed' });
  });
});
