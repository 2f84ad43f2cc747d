import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { Exchange, ResponseFault } from '../support/faulty-upstream.ts';
import { fake } from './content-faults.ts';

/** 100 MB that travel as 100 kB. */
const BOMB = gzipSync(Buffer.alloc(100 * 1024 * 1024, 0x20));
const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';

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

/** Sends as fast as the client reads, without end. */
function sendForever(socket: Socket, begin: string, chunk: Buffer): void {
  const more = () => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.write(begin);
  socket.on('drain', more);
  more();
}

const chunked = (text: string) =>
  `${HEAD}transfer-encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}`;
const withLength = (text: string) =>
  `${HEAD}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;

/** Faults in transit. A complete response among them must not be accepted. */
export const BROKEN_WAYS: Record<string, ResponseFault> = {
  'reset after the request': ({ socket }) => socket.resetAndDestroy(),
  'closed after the request': ({ socket }) => socket.destroy(),
  'reset in the status line': raw('HTTP/1.1 2', 'reset'),
  'reset in the headers': raw(`${HEAD}content-le`, 'reset'),
  'reset before the body': raw(`${HEAD}content-length: 300\r\n\r\n`, 'reset'),
  'reset in the body': raw((id) => withLength(fake(id)).slice(0, -10), 'reset'),
  'closed in the body': raw((id) => withLength(fake(id)).slice(0, -10), 'end'),
  'reset in a chunk': raw((id) => chunked(fake(id)).slice(0, -10), 'reset'),
  'closed before the last chunk': raw((id) => chunked(fake(id)), 'end'),
  'a chunk with an invalid length': raw(
    (id) => chunked(fake(id)).replace(/\r\n[0-9a-f]+\r\n/, '\r\nxyz\r\n'),
    'end',
  ),
  'two lengths': raw(
    (id) => `${HEAD}content-length: 2\r\ncontent-length: 3\r\n\r\n${fake(id)}`,
    'end',
  ),
  'another protocol': raw('SSH-2.0-OpenSSH_9.9\r\n', 'end'),
  'a header of 100 kB': raw(`${HEAD}x-long: ${'x'.repeat(100_000)}\r\n\r\n{}`, 'end'),
  '10,000 headers': raw(`${HEAD}${'x-more: 1\r\n'.repeat(10_000)}\r\n{}`, 'end'),
  'headers with bare line feeds': raw((id) => `HTTP/1.1 200 OK\nx: 1\n\n${fake(id)}`, 'end'),
  'an upgrade': raw(
    'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
    'stay',
  ),
  'endless early hints': drip('', 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n'),
  'two responses to one request': raw((id) => `${withLength('{}')}${withLength(fake(id))}`, 'stay'),
  silence: () => undefined,
  'slow headers': drip('HTTP/1.1 200 OK\r\nx-slow: ', 'x'),
  'slow body': drip(`${HEAD}\r\n{`, ' '),
  'an endless body': ({ socket }) =>
    sendForever(socket, `${HEAD}\r\n`, Buffer.alloc(64 * 1024, 0x20)),
  'an endless status line': ({ socket }) =>
    sendForever(socket, 'HTTP/1.1 200 ', Buffer.alloc(64 * 1024, 0x78)),
  '10 MB': ({ response, submissionId }) =>
    response.writeHead(200).end(fake(submissionId, { junk: 'x'.repeat(10 * 1024 * 1024) })),
  'a length of 10 GB': raw(`${HEAD}content-length: 10737418240\r\n\r\n{`, 'stay'),
  'a gzip bomb': ({ response }) =>
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(BOMB),
  'gzip without a request for it': ({ response, submissionId }) =>
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(fake(submissionId))),
  'a redirect': redirect(302),
  'a permanent redirect': redirect(308),
  'a redirect to another host': ({ response }) =>
    response.writeHead(301, { location: 'http://169.254.169.254/latest/meta-data' }).end(),
};

/** Redirects to this server under another name: a client that follows would send its key there. */
function redirect(status: number): ResponseFault {
  return ({ response, socket }: Exchange) =>
    response
      .writeHead(status, { location: `http://localhost:${socket.localPort}/elsewhere` })
      .end();
}
