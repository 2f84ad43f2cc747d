import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import { problemBody, sendProblem } from './problems.ts';
import { REQUEST_ID_HEADER } from './request-log.ts';
import { SECURITY_HEADERS } from './security-headers.ts';

/** Time for a response to unreadable input to arrive before the socket is destroyed. */
const LINGER_MS = 500;

/**
 * Returns a hook that sends problem documents for two requests that Node refuses with a bare
 * status: without a Host, or with several.
 */
export function requireOneHost(app: FastifyInstance): onRequestHookHandler {
  // An unknown expectation may be ignored; Node alone would respond 417.
  app.server.on('checkExpectation', (request, response) => app.routing(request, response));
  return (request, reply, done) => {
    const hosts = request.raw.headersDistinct.host?.length ?? 0;
    if (hosts === 1 || (hosts === 0 && request.raw.httpVersion !== '1.1')) done();
    else
      sendProblem(reply.header('connection', 'close'), {
        status: 400,
        detail: hosts === 0 ? 'the Host header is missing' : 'there is more than one Host header',
      });
  };
}

/**
 * Refuses encoded bodies with 415. dawatch would read them differently than a proxy that decodes
 * them.
 */
export function rejectEncodedBodies(app: FastifyInstance): void {
  app.addHook('preParsing', ({ headers }, reply, _body, done) => {
    const { 'content-encoding': encoding = 'identity', 'transfer-encoding': transfer = 'chunked' } =
      headers;
    if (encoding.toLowerCase() === 'identity' && transfer.toLowerCase() === 'chunked') {
      done();
      return;
    }
    const detail = 'the body must be sent without Content-Encoding';
    sendProblem(reply.header('connection', 'close'), { status: 415, detail });
  });
}

/**
 * Closes, when the server does, connections without a complete request and those kept alive by a
 * later response.
 */
export function endConnectionsOnClose(app: FastifyInstance): void {
  const silent = new Set<Socket>();
  let closing = false;
  app.server.on('connection', (socket) => {
    silent.add(socket);
    socket.once('close', () => silent.delete(socket));
  });
  app.server.on('request', ({ socket }) => silent.delete(socket));
  app.addHook('preClose', async () => {
    closing = true;
    for (const socket of silent) socket.destroy();
  });
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (closing) reply.header('connection', 'close');
    done();
  });
}

/**
 * Writes a problem document to the socket of input that is not HTTP, for which Fastify has no
 * request.
 */
export function sendUnreadable(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const status =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? 431
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? 408
        : 400;
  const id = randomUUID();
  const body = JSON.stringify(
    problemBody({ status, detail: 'the request could not be read as HTTP' }, id),
  );
  const headers = {
    ...SECURITY_HEADERS,
    [REQUEST_ID_HEADER]: id,
    'content-type': 'application/problem+json',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} Error\r\n${lines.join('')}\r\n${body}`);
  // Destroying the socket at once would discard the response while input is unread; waiting without
  // limit would let a client that keeps sending hold it open.
  const linger = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(linger));
}
