import { randomUUID } from 'node:crypto';
import type { OutgoingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { ResponseFault } from '../support/faulty-upstream.ts';

type Fields = Record<string, unknown>;

/** The greatest 128-bit number. */
export const DIGITS = '340282366920938463463374607431768211455';
/** A text that clears a screen, imitates a second line and rings the bell. */
const HOSTILE_TEXT =
  'failed\n{"level":"info","msg":"all is well"}\r\n\u001b[2J\u001b]0;owned\u0007\u0000\u202e\ud800';

/** Its block hash must never be accepted. */
const DATA = {
  amount_data: '4.00 B',
  block_hash: '0xfa4e',
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
  const envelope = { id: submissionId, state: 'Finalized', error: null, data: DATA };
  return JSON.stringify({ ...envelope, ...fields });
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
const html = (status: number) =>
  respondWith(status, `<html><h1>${status}</h1>`, { 'content-type': 'text/html' });

/** Responses that must not finalize a submission. `test/submissions` has every classification. */
const FALSE_CONTENT: Record<string, ResponseFault> = {
  'HTML 502': html(502),
  'HTML 200': html(200),
  'the true response with 500': respondWith(500, (id) => fake(id)),
  '204': respondWith(204, ''),
  '401 about one id': respondWith(401, 'Invalid API key', { 'content-type': 'text/plain' }),
  'truncated 200': respondWith(200, (id) => fake(id).slice(0, -20)),
  'empty 200': respondWith(200, ''),
  '200 with a list': respondWith(200, (id) => `[${fake(id)}]`),
  'data null': fakeWith({ data: null }),
  'no block_hash': fakeWith({ data: { ...DATA, block_hash: undefined } }),
  'an unknown state': fakeWith({ state: 'Quantum' }),
  'Finalized with an error': fakeWith({ error: 'not really' }),
  'duplicate keys': respondWith(200, (id) => `${fake(id).slice(0, -1)},"state":"Pending"}`),
  '__proto__ of the envelope': respondWith(200, (id) => `{"id":"${id}","__proto__":${fake(id)}}`),
  'another id': respondWith(200, () => fake(randomUUID())),
  'nested 100,000 deep': respondWith(200, (id) =>
    fake(id, { error: 'x' }).replace('"x"', '['.repeat(1e5) + ']'.repeat(1e5)),
  ),
  'hostile text as an error': fakeWith({ state: 'Error', error: HOSTILE_TEXT, data: null }),
  'hostile text with 500': respondWith(500, JSON.stringify({ error: HOSTILE_TEXT })),
  'an error of 1 MB': fakeWith({ state: 'Error', error: 'e'.repeat(1e6), data: null }),
};

/** 100 MB that travel as 100 kB. */
const BOMB = gzipSync(Buffer.alloc(100 * 1024 * 1024, 0x20));
const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';
const withLength = (text: string) =>
  `${HEAD}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;

/** Sends this on the bare connection, and then resets it, closes it, or keeps it open. */
function raw(
  text: string | ((id: string) => string),
  then: 'reset' | 'end' | 'stay',
): ResponseFault {
  return ({ socket, submissionId }) => {
    const finish = () => {
      if (then === 'reset') socket.resetAndDestroy();
      if (then === 'end') socket.end();
    };
    socket.write(typeof text === 'string' ? text : text(submissionId), () => setTimeout(finish, 5));
  };
}

/** Sends a piece at intervals, without end. */
function drip(begin: string, piece: string): ResponseFault {
  return ({ socket }) => {
    socket.write(begin);
    const timer = setInterval(() => socket.write(piece), 50);
    socket.once('close', () => clearInterval(timer));
  };
}

/** Sends spaces as fast as the client reads, without end. */
function sendForever(socket: Socket, begin: string): void {
  const chunk = Buffer.alloc(64 * 1024, 0x20);
  const more = () => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.write(begin);
  socket.on('drain', more);
  more();
}

/** Faults in transit. A complete response among them must not be accepted. */
const BROKEN_WAYS: Record<string, ResponseFault> = {
  'reset after the request': ({ socket }) => socket.resetAndDestroy(),
  'reset in the headers': raw(`${HEAD}content-le`, 'reset'),
  'closed in the body': raw((id) => withLength(fake(id)).slice(0, -10), 'end'),
  'closed before the last chunk': raw((id) => {
    const text = fake(id);
    return `${HEAD}transfer-encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}`;
  }, 'end'),
  'two lengths': raw(
    (id) => `${HEAD}content-length: 2\r\ncontent-length: 3\r\n\r\n${fake(id)}`,
    'end',
  ),
  'another protocol': raw('SSH-2.0-OpenSSH_9.9\r\n', 'end'),
  '10,000 headers': raw(`${HEAD}${'x-more: 1\r\n'.repeat(10_000)}\r\n{}`, 'end'),
  'headers with bare line feeds': raw((id) => `HTTP/1.1 200 OK\nx: 1\n\n${fake(id)}`, 'end'),
  'endless early hints': drip('', 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n'),
  'two responses to one request': raw((id) => `${withLength('{}')}${withLength(fake(id))}`, 'stay'),
  silence: () => undefined,
  'slow headers': drip('HTTP/1.1 200 OK\r\nx-slow: ', 'x'),
  'slow body': drip(`${HEAD}\r\n{`, ' '),
  'an endless body': ({ socket }) => sendForever(socket, `${HEAD}\r\n`),
  '10 MB': ({ response, submissionId }) =>
    response.writeHead(200).end(fake(submissionId, { junk: 'x'.repeat(10 * 1024 * 1024) })),
  'a length of 10 GB': raw(`${HEAD}content-length: 10737418240\r\n\r\n{`, 'stay'),
  'a gzip bomb': ({ response }) =>
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(BOMB),
  // A client that follows it would send its key there.
  'a redirect': ({ response, socket }) =>
    response.writeHead(308, { location: `http://localhost:${socket.localPort}/elsewhere` }).end(),
};

export const INVALID_RESPONSES = { ...FALSE_CONTENT, ...BROKEN_WAYS };

/** The true response with other data. */
function withData(change: (data: Fields) => Fields): ResponseFault {
  return async ({ trueResponse, response }) => {
    const { status, text } = await trueResponse();
    const envelope = JSON.parse(text) as Fields;
    if (envelope.data) envelope.data = change(envelope.data as Fields);
    response.writeHead(status).end(JSON.stringify(envelope));
  };
}

/** Unusual but true responses: they finalize the submission with its own block. */
export const UNUSUAL_RESPONSES: Record<string, ResponseFault> = {
  'fields of wrong types': withData((data) => ({
    ...data,
    amount_data: true,
    block_number: [],
    created_at: {},
    data_billed: -1.5,
    tx_hash: null,
  })),
  'only a block': withData(({ block_hash }) => ({ block_hash })),
  'unknown fields': withData((data) => ({ ...data, ['x'.repeat(300)]: HOSTILE_TEXT })),
  '39 digits': withData((data) => ({ ...data, fees: DIGITS, data_billed: DIGITS })),
  'an invalid date': async ({ trueResponse, response }) => {
    const { status, text } = await trueResponse();
    response.writeHead(status, { date: 'yesterday' }).end(text);
  },
};
