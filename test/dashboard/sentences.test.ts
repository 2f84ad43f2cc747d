import { describe, expect, it } from 'vitest';
import type { Alert, SubmissionWithHistory } from '../../src/client/api.ts';
import { headlineOf } from '../../src/dashboard/page/alerts/problems.js';
import { sentenceOf, short } from '../../src/dashboard/page/submissions/submission-page.js';

const NOW = Date.parse('2026-01-02T03:04:05Z');
const iso = (beforeS: number) => new Date(NOW - beforeS * 1_000).toISOString();

it('the headline of the overview counts problems, also muted ones', () => {
  const alerts = (...mutes: (string | null)[]) =>
    mutes.map((muted_until) => ({ muted_until })) as Alert[];
  expect(headlineOf([])).toBe('Everything works');
  expect(headlineOf(alerts(null))).toBe('1 problem');
  expect(headlineOf(alerts(null, iso(-60), null))).toBe('3 problems, 1 of them muted');
});

describe('the sentence of a submission', () => {
  const one = (fields: object) =>
    ({
      ...{
        tracked_at: iso(60),
        finalized_at: null,
        finality_at: null,
        polls: 1,
        data: null,
        error: null,
      },
      ...{ chain: null, next_poll_at: null, history: [], ...fields },
    }) as unknown as SubmissionWithHistory;
  const deliveries = ['delivered', 'dead'].map((state) => ({ state })) as never;

  it.each([
    [
      {
        ...{ status: 'finalized', finalized_at: iso(33.1), data: { block_number: 3_672_325 } },
        ...{ chain: 'confirmed', finality_at: iso(33.5), finality_source: 'chain' },
      },
      'Finalized after 26.9 s in block 3672325, confirmed by the chain; detection lag 0.40 s; 1 request; 1 of 2 deliveries arrived.',
    ],
    [
      {
        ...{ status: 'failed', error: 'no funds', polls: 3 },
        history: [{ at: iso(10), status: 'failed', previous_status: 'failing' }],
      },
      'Failed after 50.0 s: no funds; 3 requests; 1 of 2 deliveries arrived.',
    ],
    [
      { status: 'pending', next_poll_at: iso(-5), polls: 2 },
      'Pending, tracked 1 min ago, with 2 requests so far; next poll in 5 s.',
    ],
    [
      { status: 'tracking', polls: 0 },
      'Tracked 1 min ago, not yet seen by the upstream, with 0 requests so far.',
    ],
  ])('of %j is: %s', (fields, sentence) => {
    expect(sentenceOf(one(fields), deliveries, NOW)).toBe(sentence);
  });

  it('has short fees, and numbers of blocks without separators', () => {
    const values = ['3672325', 12_345, '25480493035376714673782', '0x12345', '12345.5', null];
    const texts = ['3672325', '12345', '2.548 × 10^22', '0x12345', '12345.5', 'null'];
    expect(values.map(short)).toEqual(texts);
  });
});
