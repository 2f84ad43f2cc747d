import { describe, expect, it } from 'vitest';
import {
  type EventRecord,
  eventSchema,
  MAX_EVENT_BYTES,
  toEventBody,
  toEventJson,
} from '../../src/notifications/event-body.ts';

type SubmissionEvent = Extract<EventRecord, { submission: unknown }>;

function event(
  fields: Partial<SubmissionEvent['submission']> = {},
  previous: Partial<SubmissionEvent['previous']> = {},
): EventRecord {
  return {
    seq: 7,
    id: 'evt_1',
    at: 1_000,
    type: 'submission.corrected',
    submission: {
      submissionId: 'a/b',
      upstream: 'default',
      status: 'finalized',
      upstreamState: 'Finalized',
      chain: null,
      chainReason: null,
      error: null,
      envelope: '{"state":"Finalized","data":{"block_number":8}}',
      trackedAt: 0,
      finalizedAt: 500,
      finalityAt: 400,
      finalitySource: 'estimate',
      deadlineAt: 2_000,
      metadata: { order: 4711 },
      ...fields,
    },
    previous: {
      status: 'finalized',
      upstreamState: 'Finalized',
      error: null,
      envelope: '{"state":"Finalized","data":{"block_number":7}}',
      ...previous,
    },
  };
}

describe('the body of an event', () => {
  it('contains the submission, its previous status, and the position in the order of events', () => {
    expect(toEventBody(event())).toEqual({
      id: 'evt_1',
      type: 'submission.corrected',
      timestamp: '1970-01-01T00:00:01.000Z',
      data: {
        sequence: 7,
        submission: {
          submission_id: 'a/b',
          upstream: 'default',
          status: 'finalized',
          upstream_state: 'Finalized',
          data: { block_number: 8 },
          error: null,
          chain: null,
          chain_reason: null,
          tracked_at: '1970-01-01T00:00:00.000Z',
          finalized_at: '1970-01-01T00:00:00.500Z',
          finality_at: '1970-01-01T00:00:00.400Z',
          finality_source: 'estimate',
          deadline_at: '1970-01-01T00:00:02.000Z',
          metadata: { order: 4711 },
        },
        previous_status: 'finalized',
        previous_upstream_state: 'Finalized',
        previous_error: null,
        previous_data: { block_number: 7 },
        cut: false,
        href: '/v1/submissions/a%2Fb',
      },
    });
  });

  const long = (chars: number, character = 'x') =>
    JSON.stringify({ data: { text: character.repeat(chars) } });
  const worst = '\\u0007'.repeat(200);
  it.each<[string, EventRecord]>([
    ['much data', event({ envelope: long(30_000) })],
    ['much data before', event({}, { envelope: long(30_000) })],
    [
      'a long error',
      event({ error: 'e'.repeat(1_000_000) }, { error: '\u{1f4a5}'.repeat(100_000) }),
    ],
    [
      'all fields at their maximum length',
      event(
        {
          submissionId: '%'.repeat(128),
          upstreamState: worst.slice(0, 200),
          error: '\u0007'.repeat(1_000),
          envelope: long(50_000),
          metadata: { a: 'é'.repeat(2_000) },
        },
        { upstreamState: '\u0007'.repeat(200), error: '\u0007'.repeat(1_000) },
      ),
    ],
  ])('%s: it is truncated to less than 20 kB, and marked as truncated', (_name, record) => {
    const json = toEventJson(record);
    expect(Buffer.byteLength(json)).toBeLessThan(MAX_EVENT_BYTES);
    const body = eventSchema.parse(JSON.parse(json));
    expect(body.data).toMatchObject({
      cut: true,
      submission: { data: null },
      previous_data: null,
      sequence: 7,
    });
    expect(json).not.toMatch(/\\ud[89ab]/i);
  });

  it('is complete up to the limit', () => {
    const remaining =
      MAX_EVENT_BYTES - Buffer.byteLength(toEventJson(event({ envelope: long(0) }))) - 1;
    const complete = toEventJson(event({ envelope: long(remaining) }));
    expect(Buffer.byteLength(complete)).toBe(MAX_EVENT_BYTES - 1);
    expect(JSON.parse(complete).data.cut).toBe(false);
    expect(JSON.parse(toEventJson(event({ envelope: long(remaining + 1) }))).data.cut).toBe(true);
  });
});
