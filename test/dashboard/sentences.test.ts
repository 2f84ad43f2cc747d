import { describe, expect, it } from 'vitest';
import type { Alert, Overview, SubmissionWithHistory } from '../../src/client/api.ts';
import { headlineOf } from '../../src/dashboard/page/overview/overview-page.js';
import { grouped, sentenceOf } from '../../src/dashboard/page/submissions/submission-page.js';

const NOW = Date.parse('2026-01-02T03:04:05Z');
const iso = (beforeS: number) => new Date(NOW - beforeS * 1_000).toISOString();

describe('the sentence of the overview', () => {
  const overview = (state = 'up') =>
    ({
      at: iso(0),
      submissions: { tracking: 10, pending: 2, failing: 0, finalized: 5_000 },
      total: { finalized: 1_200 },
      upstreams: [
        { name: 'a', state, tracked: 212 },
        { name: 'b', state: 'up', tracked: 3 },
      ],
    }) as unknown as Overview;
  const alert = (fields: Partial<Alert> = {}) =>
    ({
      ...{ rule: 'upstream_down', subject: 'a', since: iso(240) },
      ...{ muted_until: null, ...fields },
    }) as Alert;

  it('says that all is healthy, also with muted alerts', () => {
    const text = 'All healthy: 12 submissions are open, 1,200 became final in the last hour.';
    expect(headlineOf(overview(), [])).toEqual({ state: 'good', text });
    const handled = alert({ muted_until: iso(-60) });
    expect(headlineOf(overview(), [handled])).toEqual({ state: 'good', text });
  });

  it.each([
    ['down', [alert()], '1 upstream is down for 4 min; 212 submissions wait.'],
    ['down', [], '1 upstream is down; 212 submissions wait.'],
    ['unauthorized', [], '1 upstream refuses the API key; 212 submissions wait.'],
    [
      'paused',
      [alert({ rule: 'upstream_paused' })],
      '1 upstream asks for a pause for 4 min; 212 submissions wait.',
    ],
    [
      'up',
      [alert({ rule: 'stuck' }), alert({ rule: 'backlog' })],
      '2 alerts are firing; 12 submissions are open, 1,200 became final in the last hour.',
    ],
  ])('names what is wrong: %s with %j', (state, alerts, text) => {
    expect(headlineOf(overview(state), alerts)).toEqual({ state: 'bad', text });
  });
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
      'Finalized after 26.9 s in block 3,672,325, confirmed by the chain; detection lag 0.40 s; 1 request; 1 of 2 deliveries arrived.',
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

  it('has long integers in groups, and nothing else', () => {
    expect(
      ['1234', 12_345, '25480493035376714673782', '0x12345', '12345.5', null].map(grouped),
    ).toEqual(['1234', '12,345', '25,480,493,035,376,714,673,782', '0x12345', '12345.5', 'null']);
  });
});
