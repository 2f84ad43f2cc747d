import { randomUUID } from 'node:crypto';
import type { OutgoingHttpHeaders } from 'node:http';
import type { Exchange, ResponseFault } from '../support/faulty-upstream.ts';

type Fields = Record<string, unknown>;

/** A block hash that must never be accepted. */
const FAKE_HASH = '0xfa4e';
/** The greatest 128-bit number. */
export const DIGITS = '340282366920938463463374607431768211455';
/** A text that clears a screen, imitates a second line and rings the bell. */
export const HOSTILE_TEXT =
  'failed\n{"level":"info","msg":"all is well"}\r\n\u001b[2J\u001b]0;owned\u0007\u0000\u202e\ud800';
const FIELDS = [
  'amount_data',
  'block_number',
  'created_at',
  'data_billed',
  'data_hash',
  'fees',
  'tx_hash',
  'tx_index',
  'user_id',
];
/** Used in rotation, so that each field gets a value of another type at some time. */
const WRONG: readonly unknown[] = [true, [], {}, 'text', -1.5, null, [[{ a: 1 }]], '', 1e300];

const DATA = {
  amount_data: '4.00 B',
  block_hash: FAKE_HASH,
  block_number: 1,
  created_at: '2026-01-02T03:04:05',
  data_billed: '4',
  data_hash: '0xd1',
  fees: '1',
  tx_hash: '0xa1',
  tx_index: 3,
  user_id: 'user-1',
};

export function fake(submissionId: string, fields: Fields = {}): string {
  return JSON.stringify({
    id: submissionId,
    state: 'Finalized',
    error: null,
    data: DATA,
    ...fields,
  });
}

/** Responds with this status and body, or with a body derived from the id. */
export function respondWith(
  status: number,
  body: string | ((id: string) => string),
  headers: OutgoingHttpHeaders = {},
): ResponseFault {
  return ({ response, submissionId }) => {
    const text = typeof body === 'string' ? body : body(submissionId);
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
  };
}

const fakeWith = (fields: Fields) => respondWith(200, (id) => fake(id, fields));
const fakeData = (data: Fields) => fakeWith({ data: { ...DATA, ...data } });
const html = (status: number) =>
  respondWith(status, `<html><h1>${status}</h1>`, { 'content-type': 'text/html' });

/** The true response with a modified envelope. */
function modified(
  change: (envelope: Fields, exchange: Exchange) => Fields | string,
): ResponseFault {
  return async (exchange) => {
    const { status, text } = await exchange.trueResponse();
    const envelope = JSON.parse(text) as Fields;
    const changed = status === 200 ? change(envelope, exchange) : envelope;
    const body = typeof changed === 'string' ? changed : JSON.stringify(changed);
    exchange.response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  };
}

const inData = (change: (data: Fields, exchange: Exchange) => Fields) =>
  modified((envelope, exchange) =>
    envelope.data ? { ...envelope, data: change(envelope.data as Fields, exchange) } : envelope,
  );

/** Responses that must not finalize a submission. */
export const INVALID_RESPONSES: Record<string, ResponseFault> = {
  'HTML 502': html(502),
  'HTML 503': html(503),
  'HTML 504': html(504),
  'empty 502': respondWith(502, ''),
  'HTML 404': html(404),
  'HTML 406': html(406),
  'HTML 200': html(200),
  'the true response with 201': respondWith(201, (id) => fake(id)),
  'the true response with 500': respondWith(500, (id) => fake(id)),
  'status 999': respondWith(999, (id) => fake(id)),
  '204': respondWith(204, ''),
  '400': respondWith(400, 'Query deserialize error', { 'content-type': 'text/plain' }),
  '401 about one id': respondWith(401, 'Invalid API key', { 'content-type': 'text/plain' }),
  'truncated 200': respondWith(200, (id) => fake(id).slice(0, -20)),
  'half a character': ({ response, submissionId }) =>
    response.end(Buffer.from(`${fake(submissionId)}é`).subarray(0, -1)),
  'not JSON': respondWith(200, 'OK'),
  'empty 200': respondWith(200, ''),
  '200 null': respondWith(200, 'null'),
  '200 with a list': respondWith(200, (id) => `[${fake(id)}]`),
  'database error with 200': respondWith(
    200,
    '{"state":"ERROR","error":"Database connection error"}',
  ),
  'data null': fakeWith({ data: null }),
  'data missing': fakeWith({ data: undefined }),
  'data as a list': fakeWith({ data: [DATA] }),
  'data as text': fakeWith({ data: JSON.stringify(DATA) }),
  'no block_hash': fakeData({ block_hash: undefined }),
  'block_hash null': fakeData({ block_hash: null }),
  'block_hash empty': fakeData({ block_hash: '' }),
  'block_hash blank': fakeData({ block_hash: ' \n' }),
  'block_hash of wrong types': ({ submissionId, response, requestCount }) =>
    response.end(
      fake(submissionId, {
        data: { ...DATA, block_hash: [7, true, [FAKE_HASH], {}][requestCount % 4] },
      }),
    ),
  'unknown state': fakeWith({ state: 'Quantum' }),
  'state in upper case': fakeWith({ state: 'FINALIZED' }),
  'state with a line feed': fakeWith({ state: 'Finalized\n' }),
  'state of 10,000 letters': fakeWith({ state: 'Finalized'.repeat(1_000) }),
  'state of wrong types': ({ submissionId, response, requestCount }) =>
    response.end(
      fake(submissionId, {
        state: [7, null, ['Finalized'], { Finalized: 1 }, true, undefined][requestCount % 6],
      }),
    ),
  'Finalized with an error': fakeWith({ error: 'not really' }),
  'error of wrong types': ({ submissionId, response, requestCount }) =>
    response.end(fake(submissionId, { error: [7, true, [{}], { a: 1 }][requestCount % 4] })),
  'duplicate keys': respondWith(200, (id) => `${fake(id).slice(0, -1)},"state":"Pending"}`),
  '__proto__ of the envelope': respondWith(200, (id) => `{"id":"${id}","__proto__":${fake(id)}}`),
  '__proto__ in the data': respondWith(200, (id) =>
    fake(id, { data: { user_id: 'x' } }).replace(
      '{"user_id"',
      `{"__proto__":${JSON.stringify(DATA)},"user_id"`,
    ),
  ),
  'constructor and prototype': respondWith(
    200,
    `{"constructor":{"prototype":{"state":"Finalized","block_hash":"${FAKE_HASH}"}}}`,
  ),
  'another id': respondWith(200, () => fake(randomUUID())),
  'another id in the data': fakeData({ submission_id: randomUUID() }),
  'another id in the raw row': fakeWith({ submission: { id: randomUUID(), block_hash: 'fa4e' } }),
  'nested 100,000 deep': respondWith(200, (id) =>
    fake(id, { error: 'x' }).replace('"x"', '['.repeat(1e5) + ']'.repeat(1e5)),
  ),
  'hostile text as an error': respondWith(200, (id) =>
    fake(id, { state: 'Error', error: HOSTILE_TEXT, data: null }),
  ),
  'hostile text with 500': respondWith(500, JSON.stringify({ error: HOSTILE_TEXT })),
  'hostile text as a state': fakeWith({ state: HOSTILE_TEXT }),
  'hostile text as a body': respondWith(200, HOSTILE_TEXT),
  'an error of 1 MB': respondWith(200, (id) =>
    fake(id, { state: 'Error', error: 'e'.repeat(1e6), data: null }),
  ),
  'an error of 1 MB with 500': respondWith(500, JSON.stringify({ error: 'e'.repeat(1e6) })),
};

/** Unusual but true responses: they finalize the submission with its own block. */
export const UNUSUAL_RESPONSES: Record<string, ResponseFault> = {
  ...Object.fromEntries(
    FIELDS.map((name) => [
      `${name} of wrong types`,
      inData((data, { requestCount }) => ({ ...data, [name]: WRONG[requestCount % WRONG.length] })),
    ]),
  ),
  ...Object.fromEntries(
    FIELDS.map((name) => [`without ${name}`, inData((data) => ({ ...data, [name]: undefined }))]),
  ),
  'id of wrong types': modified((envelope, { requestCount }) => ({
    ...envelope,
    id: WRONG[requestCount % WRONG.length],
  })),
  'unknown fields': inData((data) => ({
    ...data,
    ['x'.repeat(300)]: HOSTILE_TEXT,
    nested: [[[]]],
  })),
  '39 digits': inData((data) => ({ ...data, fees: DIGITS, data_billed: DIGITS })),
  '39 digits without quotes': modified((envelope) =>
    JSON.stringify({
      ...envelope,
      ...(envelope.data ? { data: { ...envelope.data, fees: 'fees' } } : {}),
    }).replace('"fees":"fees"', `"fees":${DIGITS}`),
  ),
  'every key twice': modified(
    (envelope) =>
      `${JSON.stringify({ state: 'Error', error: 'first' }).slice(0, -1)},${JSON.stringify(envelope).slice(1)}`,
  ),
  'created in 1970, Date in 2099': async ({ trueResponse, response }) => {
    const { status, text } = await trueResponse();
    const body = text.replace(/"created_at":"[^"]*"/, '"created_at":"1970-01-01T00:00:00"');
    response.writeHead(status, { date: 'Fri, 31 Dec 2099 23:59:59 GMT' }).end(body);
  },
  'an invalid date': async ({ trueResponse, response }) => {
    const { status, text } = await trueResponse();
    response.writeHead(status, { date: 'yesterday' }).end(text);
  },
};
