import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerOptions, ServerResponse } from 'node:http';
import { isIP, type Socket } from 'node:net';
import type {
  FastifyInstance,
  FastifyReply,
  onRequestHookHandler,
  preHandlerHookHandler,
} from 'fastify';
import { canonicalAddress, proxyMatcher, unmapIpv4 } from '../lib/addresses.ts';
import { problemBody, SECURITY_HEADERS, sendProblem } from './problems.ts';
import { logOf, REQUEST_ID_HEADER } from './typed-server.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** For limits, logs and the audit. "unknown" if the connection is closed. */
    clientAddress: string;
  }
}

/**
 * Returns a function that determines the client address of a request. X-Forwarded-For is used only
 * from a trusted peer, and followed from the nearest hop to the first one that is not trusted. If a
 * hop has no address, the last trusted address counts.
 */
export function clientAddressReader(
  trustedProxies: readonly string[],
): (request: IncomingMessage) => string {
  const isTrusted = proxyMatcher(trustedProxies);
  return ({ socket, headers }) => {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) return 'unknown';
    let client = unmapIpv4(remoteAddress.replace(/%.*/, ''));
    if (trustedProxies.length === 0 || !isTrusted(client)) return client;
    const hops = String(headers['x-forwarded-for'] ?? '').split(',');
    for (const hop of hops.reverse()) {
      if (hop.trim() === '') continue;
      const address = addressOfHop(hop.trim());
      if (address === null) return client;
      client = address;
      if (!isTrusted(client)) return client;
    }
    return client;
  };
}

/** Accepts a port: `192.0.2.1:80`, `[2001:db8::1]:80`, or plain IPv6. null for anything else. */
function addressOfHop(hop: string): string | null {
  const bracketed = /^\[([\da-f:.]+)\](?::[\w.-]+)?$/i.exec(hop)?.[1];
  if (bracketed !== undefined) return isIP(bracketed) === 6 ? canonicalAddress(bracketed) : null;
  const withPort = /^([\d.]+):[\w.-]+$/.exec(hop)?.[1];
  return canonicalAddress(withPort ?? hop);
}

const CHECKS_PER_TIMEOUT = 6;

/** Both limits are set, because the one for headers would replace a shorter one. */
export function requestTimeouts(timeoutMs: number): ServerOptions {
  return {
    requestTimeout: timeoutMs,
    headersTimeout: timeoutMs,
    connectionsCheckingInterval: Math.max(1, Math.floor(timeoutMs / CHECKS_PER_TIMEOUT)),
  };
}

/** Disconnects clients that read nothing of their response for `connectionTimeout`. */
export function dropStalledReaders(app: FastifyInstance): void {
  app.server.on('request', (_request, response) => {
    response.on('timeout', () => {
      if (response.writableLength > 0 || (response.socket?.writableLength ?? 0) > 0)
        response.destroy();
    });
  });
}

/** Pipelined requests per connection; clients that pipeline send a few at a time. */
const MAX_PIPELINED = 16;

/**
 * Limits the requests of a connection and their time. More than MAX_PIPELINED requests without a
 * response destroy it: a packet can carry thousands. A request without a response after
 * `deadlineMs` gets 503, except on `staysOpen` routes. Fastify's handlerTimeout does not cover
 * unrouted requests.
 */
export function boundRequests(deadlineMs: number): onRequestHookHandler {
  const unanswered = new WeakMap<Socket, number>();
  return ({ raw: { socket }, routeOptions }, reply, done) => {
    const count = (unanswered.get(socket) ?? 0) + 1;
    if (count > MAX_PIPELINED || socket.destroyed) {
      reply.hijack();
      socket.destroy();
      return;
    }
    unanswered.set(socket, count);
    const timer = routeOptions.config?.staysOpen
      ? undefined
      : setTimeout(() => refuseOverdue(reply), deadlineMs).unref();
    // Emitted when the client disconnects first, too.
    reply.raw.once('close', () => {
      unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1);
      clearTimeout(timer);
    });
    done();
  };
}

function refuseOverdue(reply: FastifyReply): void {
  if (reply.sent || reply.raw.headersSent || reply.raw.destroyed) return;
  const { method, routeOptions } = reply.request;
  logOf(reply.request).error({ method, route: routeOptions.url }, 'http.no_response');
  sendProblem(reply.header('connection', 'close'), 503, 'the request took too long');
}

/** Refuses what a proxy may read differently: without a Host, with several, or with a fragment. */
export function refuseAmbiguous(app: FastifyInstance): onRequestHookHandler {
  // An unknown expectation may be ignored; Node alone would respond 417.
  app.server.on('checkExpectation', (request, response) => app.routing(request, response));
  return (request, reply, done) => {
    const { url = '', headersDistinct, httpVersion } = request.raw;
    const hosts = headersDistinct.host?.length ?? 0;
    const detail = url.includes('#')
      ? 'the address has a fragment; write # as %23'
      : hosts === 0 && httpVersion === '1.1'
        ? 'the Host header is missing'
        : hosts > 1
          ? 'there is more than one Host header'
          : undefined;
    if (detail === undefined) done();
    else sendProblem(reply.header('connection', 'close'), 400, detail);
  };
}

/** Refuses encoded bodies with 415: a proxy that decodes them would read another request. */
export function rejectEncodedBodies(app: FastifyInstance): void {
  app.addHook('preParsing', ({ headers }, reply, _body, done) => {
    const { 'content-encoding': encoding = 'identity', 'transfer-encoding': transfer = 'chunked' } =
      headers;
    if (encoding.toLowerCase() === 'identity' && transfer.toLowerCase() === 'chunked') {
      done();
      return;
    }
    const detail = 'the body must be sent without Content-Encoding';
    sendProblem(reply.header('connection', 'close'), 415, detail);
  });
}

/** Accepts JSON only. An empty body counts as absent: many clients always send the content type. */
export function acceptEmptyBodies(app: FastifyInstance): void {
  const parseJson = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>(
    'application/json',
    { parseAs: 'string' },
    (request, body, done) => {
      if (body === '') done(null);
      else void parseJson(request, body, done);
    },
  );
}

/** Closes connections without a complete request, and those kept alive, when the server closes. */
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

/** Time for a response to unreadable input to arrive before the socket is destroyed. */
const LINGER_MS = 500;

/** Writes a problem document for input that is not HTTP, for which Fastify has no request. */
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
  const body = JSON.stringify(problemBody(id, status, 'the request could not be read as HTTP'));
  const headers = {
    ...SECURITY_HEADERS,
    [REQUEST_ID_HEADER]: id,
    'content-type': 'application/problem+json',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} Error\r\n${lines.join('')}\r\n${body}`);
  // Closing the socket at once would discard the response while input is unread. Without a limit, a
  // client that keeps sending would hold it open.
  const linger = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(linger));
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A route whose response takes milliseconds to build. */
    isExpensive?: boolean;
  }
}

/**
 * Serves expensive routes registered later one at a time, so that a flood of lists stays within the
 * limits of SECURITY.md. A pipelined request waits, or it would be held in memory.
 */
export function serializeExpensiveRoutes(app: FastifyInstance): void {
  const waiting: (() => void)[] = [];
  let isBusy = false;
  const next = () => {
    const serve = waiting.shift();
    isBusy = serve !== undefined;
    serve?.();
  };
  const take = (serve: () => void) => {
    waiting.push(serve);
    if (!isBusy) next();
  };
  // Reading a request takes one iteration, and responding to it another.
  const end = (): void => void setImmediate(() => setImmediate(next));
  const served = new WeakSet<object>();
  const newest = new WeakMap<Socket, ServerResponse>();

  const wait: preHandlerHookHandler = (request, reply, done) => {
    const { socket } = request.raw;
    const serve = () => {
      // Node does not destroy a response that is behind another one when the connection closes.
      if (reply.sent || reply.raw.destroyed || socket.destroyed) return end();
      served.add(request);
      done();
      // A later hook has refused it.
      if (served.delete(request)) end();
    };
    const before = newest.get(socket);
    newest.set(socket, reply.raw);
    if (!before || before.closed) take(serve);
    else before.once('close', () => take(serve));
  };
  app.addHook('onRoute', (route) => {
    if (!route.config?.isExpensive) return;
    route.preHandler = [route.preHandler ?? [], wait].flat();
    const { handler } = route;
    route.handler = async function (request, reply) {
      const isServed = served.delete(request);
      // A handler that returns the reply would otherwise last until the client has read all of it.
      Object.defineProperty(reply, 'then', { value: undefined, configurable: true });
      try {
        return await handler.call(this, request, reply);
      } finally {
        Reflect.deleteProperty(reply, 'then');
        if (isServed) end();
      }
    };
  });
}

/** Characters of unread responses over all connections. */
const MAX_UNREAD_CHARS = 32 * 1024 * 1024;
/** Shorter responses are not counted; other limits bound their number. */
const MIN_COUNTED_CHARS = 4 * 1024;

/** Above the limit, closes the longest-waiting connection. Must be the last onSend hook. */
export function limitUnreadResponses(app: FastifyInstance, maxChars = MAX_UNREAD_CHARS): void {
  const unread = new Map<FastifyReply, number>();
  let total = 0;
  const remove = (reply: FastifyReply) => {
    total -= unread.get(reply) ?? 0;
    unread.delete(reply);
  };
  const cutOff = (slowest: FastifyReply) => {
    const { socket } = slowest.request.raw;
    logOf(slowest.request).warn({ waiting_bytes: total }, 'http.slow_client_closed');
    socket.destroy();
    for (const reply of unread.keys()) if (reply.request.raw.socket === socket) remove(reply);
  };
  app.addHook('onSend', (_request, reply, payload, done) => {
    const isWhole = typeof payload === 'string' || Buffer.isBuffer(payload);
    if (isWhole && payload.length >= MIN_COUNTED_CHARS) {
      unread.set(reply, payload.length);
      total += payload.length;
      reply.raw.once('close', () => remove(reply));
      for (const slowest of unread.keys()) {
        if (total <= maxChars || slowest === reply) break;
        cutOff(slowest);
      }
    }
    done();
  });
}
