import { describe, expect, it } from 'vitest';
import type { HttpResult } from '../../src/lib/http-call.ts';
import { type Classification, classify } from '../../src/submissions/classify.ts';
import {
  envelope,
  FINAL_DATA,
  finalEnvelope,
  ID,
  PENDING_DATA,
  response,
} from '../support/ledger/domain.ts';

const html = '<html><head><title>Error</title></head><body><h1>nginx</h1></body></html>';
const pool = { state: 'ERROR', error: 'Database connection error' };
const wrongId = {
  error: 'invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-]',
};

type Row = [name: string, answer: HttpResult, verdict: Partial<Classification>];

describe('the states of a submission', () => {
  const rows: Row[] = [
    [
      'Pending',
      response(200, envelope()),
      { kind: 'pending', state: 'Pending', error: null, blockNumber: null },
    ],
    [
      'Finalized',
      response(200, finalEnvelope()),
      { kind: 'finalized', state: 'Finalized', error: null, blockNumber: 1_234_567 },
    ],
    [
      'Error',
      response(200, envelope({ state: 'Error', error: 'TIMEOUT', data: null })),
      { kind: 'error', state: 'Error', error: 'TIMEOUT' },
    ],
    [
      'Error of a submission that has a block',
      response(200, finalEnvelope({}, { state: 'Error', error: 'TIMEOUT' })),
      { kind: 'error', error: 'TIMEOUT' },
    ],
    [
      'FINALIZED, because the case of letters has no meaning',
      response(200, finalEnvelope({ block_number: '500027' }, { state: 'FINALIZED' })),
      { kind: 'finalized', state: 'FINALIZED', blockNumber: 500_027 },
    ],
    [
      'ERROR of a submission, unlike that of the service, which has no data',
      response(200, envelope({ state: 'ERROR', error: 'TIMEOUT', data: null })),
      { kind: 'error', state: 'ERROR', error: 'TIMEOUT' },
    ],
    [
      'Included, with a block',
      response(200, finalEnvelope({}, { state: 'Included' })),
      { kind: 'pending', state: 'Included' },
    ],
    [
      'an unknown state',
      response(200, envelope({ state: 'Queued' })),
      { kind: 'pending', state: 'Queued' },
    ],
  ];
  it.each(rows)('%s', (_name, response, verdict) => {
    expect(classify(ID, response)).toMatchObject(verdict);
  });

  it.each([
    ['without its data', { data: undefined }],
    ['with data null', { data: null }],
    ['without a block hash', { data: { ...FINAL_DATA, block_hash: undefined } }],
    ['with a block hash of null', { data: { ...FINAL_DATA, block_hash: null } }],
    ['with an empty block hash', { data: { ...FINAL_DATA, block_hash: '' } }],
    ['with the data of a pending submission', { data: PENDING_DATA }],
    ['with an error', { error: 'dispatch failed' }],
    ['with an error that is an object', { error: { code: 7 } }],
  ])('Finalized %s is not accepted', (_name, fields) => {
    expect(classify(ID, response(200, finalEnvelope({}, fields)))).toMatchObject({
      kind: 'pending',
      state: 'Finalized',
    });
  });

  it.each([
    [
      'a block hash that is a number',
      finalEnvelope({ block_hash: 12 }),
      /^data\.block_hash must be a string, not a/,
    ],
    [
      'data that are a list',
      envelope({ data: [FINAL_DATA] }),
      /^data must be an object, not a list$/,
    ],
  ])('names the type of %s, which is not absent', (_name, body, error) => {
    expect(classify(ID, response(200, body))).toMatchObject({
      kind: 'pending',
      error: expect.stringMatching(error),
    });
  });

  it('reports a reason for an Error without text: the JSON of its value, or that no reason is given', () => {
    const errorOf = (error: unknown) =>
      classify(ID, response(200, envelope({ state: 'Error', error, data: null })));
    expect(errorOf({ code: 7 })).toMatchObject({ kind: 'error', error: '{"code":7}' });
    expect(errorOf(null)).toMatchObject({ kind: 'error', error: 'no reason given' });
  });
});

describe('the failures of a lookup', () => {
  const seconds = { retryAfter: '7' };
  const date = {
    retryAfter: 'Wed, 21 Oct 2026 07:28:30 GMT',
    date: 'Wed, 21 Oct 2026 07:28:00 GMT',
  };
  const rows: Row[] = [
    [
      'no key',
      response(401, 'Missing API key'),
      { kind: 'unauthorized', error: 'HTTP 401 Missing API key' },
    ],
    [
      '403',
      response(403, { error: 'Forbidden' }),
      { kind: 'unauthorized', error: 'HTTP 403 Forbidden' },
    ],
    [
      'parameter missing',
      response(400, 'Query deserialize error'),
      { kind: 'unavailable', reason: 'refused' },
    ],
    [
      'an id that is not a UUID',
      response(406, wrongId),
      { kind: 'rejected', error: wrongId.error },
    ],
    [
      'id unknown, or database error',
      response(500, { error: 'Record not found' }),
      { kind: 'not_found', error: 'Record not found', ambiguous: true },
    ],
    [
      'id unknown (older versions)',
      response(404, { error: 'Submission not found' }),
      { kind: 'not_found', error: 'Submission not found', ambiguous: false },
    ],
    [
      'pool trouble',
      response(500, pool),
      {
        kind: 'unavailable',
        reason: 'http_status',
        error: 'HTTP 500 Database connection error',
        retryAfterMs: null,
      },
    ],
    [
      'a fault of the database (versions 1 to 1.0.1)',
      response(500, { error: 'Database error' }),
      { kind: 'unavailable', reason: 'http_status', error: 'HTTP 500 Database error' },
    ],
    [
      'the key store is unreachable',
      response(500, 'Internal error. Contact admin'),
      {
        kind: 'unavailable',
        reason: 'http_status',
        error: 'HTTP 500 Internal error. Contact admin',
      },
    ],
    [
      'only a raw row (version 0.1)',
      response(200, { submission: { id: ID, state: 'Finalized', block_hash: 'fa4e' } }),
      { kind: 'unavailable', reason: 'malformed' },
    ],
    ...['block_hash', 'tx_hash', 'data_hash'].map(
      (name): Row => [
        `a ${name} that is not hexadecimal`,
        response(200, finalEnvelope({ [name]: '0x12g4' })),
        {
          kind: 'unavailable',
          reason: 'malformed',
          error: `HTTP 200 with a ${name} that is not hexadecimal`,
        },
      ],
    ),
    [
      '502 of a proxy',
      response(502, html),
      { kind: 'unavailable', reason: 'http_status', retryAfterMs: null },
    ],
    ['503 of a proxy', response(503, html, seconds), { kind: 'unavailable', retryAfterMs: 7_000 }],
    ['503 with a date', response(503, '', date), { kind: 'unavailable', retryAfterMs: 30_000 }],
    ['504 with an empty body', response(504, ''), { kind: 'unavailable', error: 'HTTP 504' }],
    ['429, seconds', response(429, html, seconds), { kind: 'throttled', retryAfterMs: 7_000 }],
    [
      '429, a date',
      response(429, 'slow down', date),
      { kind: 'throttled', error: 'HTTP 429 slow down', retryAfterMs: 30_000 },
    ],
    ['a redirect', response(302, ''), { kind: 'unavailable', reason: 'http_status' }],
    [
      'an envelope with an unsuccessful status',
      response(503, finalEnvelope()),
      { kind: 'unavailable' },
    ],
  ];
  it.each(rows)('%s', (_name, response, verdict) => {
    expect(classify(ID, response)).toMatchObject(verdict);
  });

  it.each(['timeout', 'network', 'too_large'] as const)('no response at all: %s', (reason) => {
    expect(classify(ID, { kind: 'failure', reason, detail: 'after 10 s' })).toEqual({
      kind: 'unavailable',
      reason,
      error: 'after 10 s',
      retryAfterMs: null,
    });
  });

  it.each([
    [401, html],
    [403, html],
    [401, ''],
    [403, ''],
    [403, 'error code: 1020'],
    [403, 'RBAC: access denied'],
    [403, { message: 'Forbidden' }],
    [401, { message: 'Unauthorized' }],
    [403, { error: null }],
  ])('a %i of a proxy or firewall is an outage, not a refused key: %j', (status, body) => {
    const verdict = classify(ID, response(status, body));
    expect(verdict).toMatchObject({
      kind: 'unavailable',
      reason: 'http_status',
      error: expect.stringContaining(`a proxy or firewall refused the request: HTTP ${status}`),
    });
  });

  it.each([400, 410, 413, 422])(
    'a %i of a proxy, such as one that expects https, is an outage, not a refusal of one request',
    (status) => {
      for (const body of [html, '', '\n<!doctype html>'])
        expect(classify(ID, response(status, body))).toMatchObject({ reason: 'http_status' });
      const error = response(status, { error: 'bad parameter' });
      expect(classify(ID, error)).toMatchObject({ reason: 'refused' });
      expect(classify(ID, response(414, html))).toMatchObject({ reason: 'refused' });
    },
  );

  it.each([404, 406])('a %i that does not come from the service changes nothing', (status) => {
    for (const body of [
      html,
      '',
      'Not Found',
      '[]',
      '"error"',
      '{}',
      '{"message":"no Route matched"}',
      '{"error":null}',
    ])
      expect(classify(ID, response(status, body)), body).toMatchObject({
        kind: 'unavailable',
        reason: 'http_status',
      });
  });

  it('a 500 that only mentions a record is not classified as "not found"', () => {
    for (const error of [
      'Record not found in cache, connection refused',
      'not found',
      { text: 'Record not found' },
    ])
      expect(classify(ID, response(500, { error }))).toMatchObject({ kind: 'unavailable' });
    expect(classify(ID, response(500, 'Record not found'))).toMatchObject({ kind: 'unavailable' });
  });
});
