import { describe, expect, it } from 'vitest';
import type { HttpResult } from '../../src/lib/http-call.ts';
import { parseJson } from '../../src/lib/json.ts';
import { classify, dataOf } from '../../src/submissions/classify.ts';
import {
  envelope,
  FINAL_DATA,
  finalEnvelope,
  ID,
  OTHER_ID,
  response,
} from '../support/ledger/domain.ts';

function classifyText(text: string, status = 200) {
  return classify(ID, response(status, text));
}

function responseWith(text: string): string {
  const verdict = classifyText(text);
  if (!('envelope' in verdict)) throw new Error(`${verdict.kind} keeps no envelope`);
  return verdict.envelope;
}

describe('unknown content is no error', () => {
  it('keeps the response unchanged, with extra fields, the sibling `submission` and whitespace', () => {
    const text = JSON.stringify(
      {
        ...finalEnvelope({ retries: 3 }),
        submission: { block_hash: 'b1', extrinsic_index: 3, converted_fees: '1' },
      },
      null,
      3,
    );
    expect(classifyText(text)).toMatchObject({ kind: 'finalized', envelope: text });
  });

  it.each(Object.keys(FINAL_DATA).filter((name) => name !== 'block_hash'))(
    'accepts a wrong type in %s',
    (name) => {
      for (const wrong of [
        true,
        [],
        {},
        -1.5,
        name.endsWith('hash') ? 'C0de' : 'text',
        null,
        [['0x']],
      ])
        expect(classifyText(JSON.stringify(finalEnvelope({ [name]: wrong })))).toMatchObject({
          kind: 'finalized',
        });
    },
  );
});

describe('a response that is no submission changes nothing', () => {
  it.each([
    ['an empty body', ''],
    ['a truncated body', JSON.stringify(finalEnvelope()).slice(0, -9)],
    ['HTML', '<html>Welcome</html>'],
    ['text', 'OK'],
    ['null', 'null'],
    ['a number', '1'],
    ['an array', JSON.stringify([finalEnvelope()])],
    ['an object without a state', '{"id":"x","data":{}}'],
    ['a state of another type', JSON.stringify(finalEnvelope({}, { state: 7 }))],
    ['an empty state', JSON.stringify(finalEnvelope({}, { state: '' }))],
    ['a very long state', JSON.stringify(finalEnvelope({}, { state: 'x'.repeat(10_000) }))],
    [
      'a state with the name of an inherited property',
      '{"__proto__":{"state":"Finalized","data":{"block_hash":"0x1"}}}',
    ],
  ])('200 with %s', (_name, text) => {
    expect(classifyText(text)).toMatchObject({ kind: 'unavailable', reason: 'malformed' });
  });

  it('a response about another submission is not accepted; the case of letters makes no difference', () => {
    const about = (id: unknown) => classifyText(JSON.stringify(finalEnvelope({}, { id })));
    expect(about(OTHER_ID)).toMatchObject({ kind: 'unavailable', reason: 'malformed' });
    expect(about(ID.toUpperCase())).toMatchObject({ kind: 'finalized' });
    for (const id of ['internal-row-17', `${ID}0`, '', 17, true, { toString: null }, [ID]])
      expect(about(id), JSON.stringify(id)).toMatchObject({ reason: 'malformed' });
    for (const id of [null, undefined, `urn:uuid:${ID}`, `{${ID.toUpperCase()}}`])
      expect(about(id), JSON.stringify(id)).toMatchObject({ kind: 'finalized' });
  });

  it.each([
    ['ok-1', 'other-0', 'malformed'],
    ['ok-1', 'OK-1', 'malformed'],
    ['ok-1', 'ok-1', undefined],
    ['17', 17, undefined],
  ])('a response to %j about %j: %s', (polled, id, reason) => {
    const body = JSON.stringify(finalEnvelope({}, { id }));
    const result = classify(polled, response(200, body));
    expect('reason' in result ? result.reason : undefined).toBe(reason);
  });

  it('the row beside it may have an id of its own, of another form', () => {
    const text = JSON.stringify(finalEnvelope({}, { submission: { id: 17, submission_id: ID } }));
    expect(classifyText(text)).toMatchObject({ kind: 'finalized' });
  });

  it.each([
    ['in the data', { data: { ...FINAL_DATA, submission_id: OTHER_ID } }],
    ['in the row beside it', { submission: { id: OTHER_ID } }],
    ['under another name in the row beside it', { submission: { submission_id: OTHER_ID } }],
  ])('a response that names another submission in %s is not accepted', (_name, fields) => {
    const text = JSON.stringify(finalEnvelope({}, fields));
    expect(classifyText(text)).toMatchObject({ kind: 'unavailable', reason: 'malformed' });
    expect(classifyText(text.replaceAll(OTHER_ID, ID.toUpperCase()))).toMatchObject({
      kind: 'finalized',
    });
  });
});

describe('hostile responses', () => {
  it('keeps 39 digits as digits, in a string or as a bare number', () => {
    const digits = '340282366920938463463374607431768211455';
    const asText = JSON.stringify(finalEnvelope({ fees: digits, data_billed: digits }));
    const bare = asText.replaceAll(`"${digits}"`, digits);
    for (const text of [asText, bare, bare.replaceAll(':', ': ')]) {
      expect(classifyText(text)).toMatchObject({ kind: 'finalized', envelope: text });
      expect(dataOf(responseWith(text))).toMatchObject({ fees: digits, data_billed: digits });
    }
    expect(parseJson(`[-${digits},9007199254740993,9007199254740991,1.5]`)).toEqual([
      `-${digits}`,
      '9007199254740993',
      9007199254740991,
      1.5,
    ]);
  });

  it('adds no field and modifies no other object for __proto__ keys', () => {
    const hash = '"block_hash":"0xb1"';
    const text = JSON.stringify(finalEnvelope()).replace(hash, `"__proto__":{${hash}}`);
    expect(text).toContain('__proto__');
    expect(classifyText(text)).toMatchObject({ kind: 'pending', state: 'Finalized' });
    expect(classifyText('{"__proto__":{"error":"Record not found"}}', 500)).toMatchObject({
      kind: 'unavailable',
    });
    expect(Object.hasOwn(Object.prototype, 'block_hash')).toBe(false);
  });

  it('truncates huge error texts from every source', () => {
    const huge = 'x'.repeat(1_000_000);
    const responses: HttpResult[] = [
      response(200, envelope({ state: 'Error', error: huge, data: null })),
      response(200, huge),
      ...[400, 401, 404, 406, 429, 500, 503].flatMap((status) => [
        response(status, huge),
        response(status, { error: huge }),
        response(status, { error: [huge] }),
      ]),
      { kind: 'failure', reason: 'network', detail: huge },
    ];
    for (const response of responses)
      expect(classify(ID, response).error?.length).toBeLessThan(2_100);
  });

  it.each([
    ['a very long unknown field', { junk: 'x'.repeat(200_000) }],
    ['a very long error', { error: 'x'.repeat(200_000) }],
    ['an error with many parts', { error: Array.from({ length: 50_000 }, () => 'part') }],
    ['very long known fields', { data: { ...FINAL_DATA, user_id: 'x'.repeat(200_000) } }],
  ])('shortens a huge envelope: %s', (_name, fields) => {
    const response = responseWith(JSON.stringify(finalEnvelope({}, fields)));
    expect(response.length).toBeLessThanOrEqual(64 * 1024);
    expect(parseJson(response)).toMatchObject({ id: ID, state: 'Finalized' });
    expect(dataOf(response)).toMatchObject({ block_hash: '0xb1', fees: FINAL_DATA.fees });
  });

  it('accepts data nested 100,000 levels deep, with and without integers that must be preserved', () => {
    for (const inner of ['', '12345678901234567890']) {
      const nested = `${'[{"a":'.repeat(100_000)}[${inner}]${'}]'.repeat(100_000)}`;
      for (const field of ['data', 'extra', 'id', 'state'])
        expect(() => classifyText(`{"state":"Pending","${field}":${nested}}`), field).not.toThrow();
    }
  });

  it('returns only well-formed text, because a database would replace half a character and report a change each time', () => {
    const split = `${'x'.repeat(1_999)}${'\u{1f600}'.repeat(9)}`;
    expect(
      classifyText(JSON.stringify({ state: 'Error', error: split })).error?.isWellFormed(),
    ).toBe(true);
    expect(classifyText('{"state":"Error","error":"\\ud800 lost"}').error?.isWellFormed()).toBe(
      true,
    );
  });
});
