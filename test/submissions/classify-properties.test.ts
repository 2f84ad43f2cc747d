import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { classify } from '../../src/submissions/classify.ts';
import {
  FINAL_DATA,
  type Fields,
  finalEnvelope,
  ID,
  OTHER_ID,
  PENDING_DATA,
} from '../support/ledger/domain.ts';

const status = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(200, 203) },
  fc.constantFrom(400, 401, 403, 404, 406, 410, 422, 429, 500, 503),
  fc.integer({ min: -1, max: 1_000 }),
);
const unusualValue = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom<unknown>(
    '',
    ' ',
    '0xb1',
    'Finalized',
    OTHER_ID,
    ID.toUpperCase(),
    9e99,
    '9'.repeat(39),
    'x'.repeat(9_000),
  ),
  fc.constant('\u001b[2J\r\n\u0000\ud800'),
);
const field = fc.constantFrom(...Object.keys(FINAL_DATA));
/** A modification that makes an envelope invalid or incomplete. */
const flaw = fc.oneof(
  fc.tuple(field, unusualValue).map(([name, value]) => (envelope: Fields) => ({
    ...envelope,
    data: { ...dataIn(envelope), [name]: value },
  })),
  field.map((name) => (envelope: Fields) => ({
    ...envelope,
    data: without(dataIn(envelope), name),
  })),
  fc
    .tuple(fc.constantFrom('id', 'state', 'error', 'data', 'submission', 'extra'), unusualValue)
    .map(([name, value]) => (envelope: Fields) => ({ ...envelope, [name]: value })),
  fc
    .constantFrom('id', 'state', 'error', 'data')
    .map((name) => (envelope: Fields) => without(envelope, name)),
  fc.constantFrom('data', 'submission').map((name) => (envelope: Fields) => ({
    ...envelope,
    [name]: { ...dataIn(envelope), submission_id: OTHER_ID },
  })),
  fc.constant((envelope: Fields) => ({ ...envelope, data: [envelope.data] })),
  fc.constant((envelope: Fields) => ({ state: 'SUCCESS', data: envelope })),
);
const real = fc.constantFrom<Fields>(
  finalEnvelope(),
  finalEnvelope({}, { data: PENDING_DATA }),
  finalEnvelope({}, { state: 'Pending', data: PENDING_DATA }),
  finalEnvelope({}, { state: 'Error', error: 'TIMEOUT', data: null }),
  finalEnvelope({}, { submission: { id: ID, block_hash: 'b1' } }),
  { error: 'Record not found' },
  { state: 'ERROR', error: 'Database connection error' },
);
const body = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString('utf8')),
  fc.json(),
  fc
    .tuple(real, fc.array(flaw, { maxLength: 2 }))
    .map(([envelope, flaws]) =>
      JSON.stringify(flaws.reduce((flawed, apply) => apply(flawed), envelope)),
    ),
);

function dataIn(envelope: Fields): Fields {
  return (
    typeof envelope.data === 'object' && envelope.data !== null ? envelope.data : {}
  ) as Fields;
}

function without(envelope: Fields, name: string): Fields {
  return Object.fromEntries(Object.entries(envelope).filter(([key]) => key !== name));
}

/**
 * An independent formulation of the rule: the content that a text must have to end a submission.
 */
function isFinal(text: string): boolean {
  const parsed = JSON.parse(text);
  const { id, state, error, data, submission } = parsed;
  if (state !== 'Finalized' || (error ?? '') !== '' || typeof data?.block_hash !== 'string')
    return false;
  const names = [id, data.submission_id, submission?.id, submission?.submission_id];
  return data.block_hash.trim() !== '' && !names.includes(OTHER_ID);
}

describe('for any body, headers and status of a response', () => {
  it('only a complete Finalized with its block, a 406 of the service or a 404 of the service ends a submission', () => {
    let finalized = 0;
    fc.assert(
      fc.property(body, status, (text, httpStatus) => {
        const { kind } = classify(ID, {
          kind: 'response',
          httpStatus,
          retryAfter: null,
          date: null,
          body: text,
        });
        if (kind === 'rejected') expect(httpStatus).toBe(406);
        if (kind === 'not_found') expect([404, 500]).toContain(httpStatus);
        if (kind !== 'finalized') return;
        finalized += 1;
        expect([200, 203]).toContain(httpStatus);
        expect(isFinal(text), text).toBe(true);
      }),
      // Enough runs that both cases occur.
      { numRuns: 3_000 },
    );
    // Otherwise no run tested the rule.
    expect(finalized).toBeGreaterThan(10);
  });
});
