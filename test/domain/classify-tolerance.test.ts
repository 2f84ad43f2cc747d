import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { classify, type UpstreamResponse } from '../../src/domain/classify.ts';
import { dataOf } from '../../src/domain/envelope.ts';
import { isObject, parseJson } from '../../src/domain/json.ts';
import { envelope, FINAL_DATA, finalEnvelope, ID, OTHER_ID, response } from '../support/domain.ts';

function classifyText(text: string, status = 200) {
  return classify(ID, response(status, text));
}

function answerOf(text: string): string {
  const verdict = classifyText(text);
  if (!('envelope' in verdict)) throw new Error(`${verdict.kind} keeps no envelope`);
  return verdict.envelope;
}

describe('what nobody knows is no error', () => {
  it('keeps the answer as it came: extra fields, the sibling `submission`, spaces and all', () => {
    const text = JSON.stringify(
      { ...finalEnvelope({ retries: 3 }), submission: { block_hash: 'b1', extrinsic_index: 3, converted_fees: '1' } },
      null,
      3,
    );
    expect(classifyText(text)).toMatchObject({ kind: 'finalized', envelope: text });
  });

  it('does not take the sibling `submission` for the data', () => {
    const { data, ...rest } = finalEnvelope();
    expect(classifyText(JSON.stringify({ ...rest, submission: data }))).toMatchObject({ kind: 'pending' });
  });

  it.each(Object.keys(FINAL_DATA).filter((name) => name !== 'block_hash'))('a wrong type in %s', (name) => {
    for (const wrong of [true, [], {}, -1.5, 'text', null, [['0x']]])
      expect(classifyText(JSON.stringify(finalEnvelope({ [name]: wrong })))).toMatchObject({ kind: 'finalized' });
  });

  it('a wrong type in id or data', () => {
    for (const id of [7, null, [], {}])
      expect(classifyText(JSON.stringify(finalEnvelope({}, { id })))).toMatchObject({ kind: 'finalized' });
    for (const data of [7, 'data', [FINAL_DATA], true])
      expect(classifyText(JSON.stringify(envelope({ data })))).toMatchObject({ kind: 'pending', state: 'Pending' });
  });

  it('a wrong type in block_number is no block number', () => {
    for (const block_number of ['12', null, [12]])
      expect(classifyText(JSON.stringify(finalEnvelope({ block_number })))).toMatchObject({ blockNumber: null });
  });
});

describe('what is no submission changes nothing', () => {
  it.each([
    ['an empty body', ''],
    ['a truncated one', JSON.stringify(finalEnvelope()).slice(0, -9)],
    ['HTML', '<html>Welcome</html>'],
    ['text', 'OK'],
    ['null', 'null'],
    ['a number', '1'],
    ['an array', JSON.stringify([finalEnvelope()])],
    ['an object without a state', '{"id":"x","data":{}}'],
    ['a state of another type', JSON.stringify(finalEnvelope({}, { state: 7 }))],
    ['an empty state', JSON.stringify(finalEnvelope({}, { state: '' }))],
    ['an endless state', JSON.stringify(finalEnvelope({}, { state: 'x'.repeat(10_000) }))],
    ['a state that only the prototype has', '{"__proto__":{"state":"Finalized","data":{"block_hash":"0x1"}}}'],
  ])('200 with %s', (_name, text) => {
    expect(classifyText(text)).toMatchObject({ kind: 'unavailable', reason: 'malformed' });
  });

  it('an answer about another submission is not believed; letter case makes no other one', () => {
    const about = (id: string) => classifyText(JSON.stringify(finalEnvelope({}, { id })));
    expect(about(OTHER_ID)).toMatchObject({ kind: 'unavailable', reason: 'malformed' });
    expect(about(ID.toUpperCase())).toMatchObject({ kind: 'finalized' });
    expect(about('internal-row-17')).toMatchObject({ kind: 'finalized' });
  });

  it.each([
    ['in the data', { data: { ...FINAL_DATA, submission_id: OTHER_ID } }],
    ['in the row beside it', { submission: { id: OTHER_ID } }],
    ['by its own name in the row beside it', { submission: { submission_id: OTHER_ID } }],
  ])('nor is one that names the other %s', (_name, fields) => {
    const text = JSON.stringify(finalEnvelope({}, fields));
    expect(classifyText(text)).toMatchObject({ kind: 'unavailable', reason: 'malformed' });
    expect(classifyText(text.replaceAll(OTHER_ID, ID.toUpperCase()))).toMatchObject({ kind: 'finalized' });
  });

  it('another one is seen however the id asked about is spelled', () => {
    const digits = ID.replaceAll('-', '');
    for (const asked of [digits, digits.toUpperCase(), `{${ID}}`, `urn:uuid:${ID}`]) {
      expect(classify(asked, response(200, finalEnvelope()))).toMatchObject({ kind: 'finalized' });
      expect(classify(asked, response(200, finalEnvelope({}, { id: OTHER_ID })))).toMatchObject({
        kind: 'unavailable',
      });
    }
  });

  it('a block hash of nothing but space is none', () => {
    expect(classifyText(JSON.stringify(finalEnvelope({ block_hash: ' \n' })))).toMatchObject({ kind: 'pending' });
  });
});

describe('hostile answers', () => {
  it('keeps 39 digits as digits, as a string or as a bare number', () => {
    const digits = '340282366920938463463374607431768211455';
    const asText = JSON.stringify(finalEnvelope({ fees: digits, data_billed: digits }));
    const bare = asText.replaceAll(`"${digits}"`, digits);
    for (const text of [asText, bare, bare.replaceAll(':', ': ')]) {
      expect(classifyText(text)).toMatchObject({ kind: 'finalized', envelope: text });
      expect(dataOf(answerOf(text))).toMatchObject({ fees: digits, data_billed: digits });
    }
    expect(parseJson(`[-${digits},9007199254740993,9007199254740991,1.5]`)).toEqual([
      `-${digits}`,
      '9007199254740993',
      9007199254740991,
      1.5,
    ]);
  });

  it('__proto__ keys neither add a field nor touch any other object', () => {
    const hash = '"block_hash":"0xb1"';
    const text = JSON.stringify(finalEnvelope()).replace(hash, `"__proto__":{${hash}}`);
    expect(text).toContain('__proto__');
    expect(classifyText(text)).toMatchObject({ kind: 'pending', state: 'Finalized' });
    expect(classifyText('{"__proto__":{"error":"Record not found"}}', 500)).toMatchObject({ kind: 'unavailable' });
    expect(Object.hasOwn(Object.prototype, 'block_hash')).toBe(false);
  });

  it('of duplicate keys the last one counts, as in JSON.parse', () => {
    const final = JSON.stringify(finalEnvelope()).slice(1, -1);
    expect(classifyText(`{${final},"state":"Pending"}`)).toMatchObject({ kind: 'pending', state: 'Pending' });
    expect(classifyText(`{"state":"Pending",${final}}`)).toMatchObject({ kind: 'finalized' });
  });

  it('cuts huge error texts, wherever they come from', () => {
    const huge = 'x'.repeat(1_000_000);
    const answers: UpstreamResponse[] = [
      response(200, envelope({ state: 'Error', error: huge, data: null })),
      response(200, huge),
      ...[400, 401, 404, 406, 429, 500, 503].flatMap((status) => [
        response(status, huge),
        response(status, { error: huge }),
        response(status, { error: [huge] }),
      ]),
      { kind: 'failure', reason: 'network', detail: huge },
    ];
    for (const answer of answers) expect(classify(ID, answer).error?.length).toBeLessThan(2_100);
  });

  it.each([
    ['an endless unknown field', { junk: 'x'.repeat(200_000) }],
    ['an endless error', { error: 'x'.repeat(200_000) }],
    ['an error of many parts', { error: Array.from({ length: 50_000 }, () => 'part') }],
    ['endless known fields', { data: { ...FINAL_DATA, user_id: 'x'.repeat(200_000) } }],
  ])('shortens a huge envelope: %s', (_name, fields) => {
    const answer = answerOf(JSON.stringify(finalEnvelope({}, fields)));
    expect(answer.length).toBeLessThanOrEqual(64 * 1024);
    expect(parseJson(answer)).toMatchObject({ id: ID, state: 'Finalized' });
    expect(dataOf(answer)).toMatchObject({ block_hash: '0xb1', fees: FINAL_DATA.fees });
  });

  it('survives an error nested deeper than any stack', () => {
    const nested = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    for (const status of [200, 401, 404, 406, 429, 500, 503])
      expect(() => classifyText(`{"state":"Error","error":${nested}}`, status), `HTTP ${status}`).not.toThrow();
  });

  it('survives data nested 100,000 deep, with and without integers that are looked into', () => {
    for (const inner of ['', '12345678901234567890']) {
      const nested = `${'[{"a":'.repeat(100_000)}[${inner}]${'}]'.repeat(100_000)}`;
      for (const field of ['data', 'extra', 'id', 'state'])
        expect(() => classifyText(`{"state":"Pending","${field}":${nested}}`), field).not.toThrow();
    }
  });

  it('gives only well-formed text: a database would store half a character as another one, and see a change each time', () => {
    const split = `${'x'.repeat(1_999)}${'\u{1f600}'.repeat(9)}`;
    expect(classifyText(JSON.stringify({ state: 'Error', error: split })).error?.isWellFormed()).toBe(true);
    expect(classifyText('{"state":"Error","error":"\\ud800 lost"}').error?.isWellFormed()).toBe(true);
  });
});

describe('any answer', () => {
  const kinds = ['pending', 'finalized', 'error', 'not_found', 'rejected', 'unauthorized', 'throttled', 'unavailable'];
  const state = fc.oneof(fc.constantFrom('Pending', 'Finalized', 'Error', 'ERROR', ''), fc.string(), fc.jsonValue());
  const envelopeLike = fc.record(
    {
      id: fc.oneof(fc.constantFrom(ID, OTHER_ID), fc.jsonValue()),
      state,
      error: fc.oneof(fc.constant(null), fc.constant('Record not found'), fc.jsonValue()),
      data: fc.oneof(fc.constantFrom(FINAL_DATA, null), fc.jsonValue(), fc.dictionary(fc.string(), fc.jsonValue())),
    },
    { requiredKeys: [] },
  );
  const body = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.uint8Array({ maxLength: 200 }).map((bytes) => new TextDecoder().decode(bytes)),
    fc.json(),
    envelopeLike.map((value) => JSON.stringify(value)),
  );
  const status = fc.oneof(
    fc.constantFrom(200, 400, 401, 403, 404, 406, 429, 500, 503),
    fc.integer({ min: 100, max: 999 }),
  );
  const header = fc.option(fc.string(), { nil: null });

  it('is one verdict, and never an exception', () => {
    fc.assert(
      fc.property(body, status, header, header, (text, httpStatus, retryAfter, date) => {
        const verdict = classify(ID, { kind: 'response', httpStatus, retryAfter, date, body: text });
        expect(kinds).toContain(verdict.kind);
        // Only a 200 that is a whole envelope with its block ends anything.
        if (verdict.kind !== 'finalized') return;
        const said = parseJson(text);
        expect(httpStatus).toBe(200);
        expect(isObject(said) && said.state).toBe('Finalized');
        expect(dataOf(text)?.block_hash).toEqual(expect.any(String));
      }),
      { numRuns: 2_000 },
    );
  });
});
