import type { ServerOptions } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, onRequestHookHandler } from 'fastify';
import { sendProblem } from './problems.ts';
import { logOf } from './request-log.ts';

/** Pipelined requests per connection; clients that pipeline send a few at a time. */
const MAX_PIPELINED = 16;
/** Characters of unread responses over all connections. */
const MAX_UNREAD_CHARS = 64 * 1024 * 1024;
/** Shorter responses are not counted; other limits bound their number. */
const MIN_COUNTED_CHARS = 4 * 1024;

/**
 * Limits the unread responses in memory. Above the limit, the connection whose response has waited
 * longest is closed. Stored responses are shared and not counted. Must follow every other onSend
 * hook.
 */
export function limitUnreadResponses(app: FastifyInstance, maxChars = MAX_UNREAD_CHARS): void {
  /** Unread responses and their lengths, oldest first. */
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
    if (typeof payload === 'string' && payload.length >= MIN_COUNTED_CHARS) {
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

/** Checks per timeout. */
const CHECKS_PER_TIMEOUT = 6;

/**
 * Returns Node's options for the time to receive a complete request, counted from its first byte
 * or, for the first request, from connecting. Both limits are set, because the one for headers
 * would otherwise replace a shorter one.
 */
export function requestTimeouts(timeoutMs: number): ServerOptions {
  return {
    requestTimeout: timeoutMs,
    headersTimeout: timeoutMs,
    connectionsCheckingInterval: Math.max(1, Math.floor(timeoutMs / CHECKS_PER_TIMEOUT)),
  };
}

/**
 * Disconnects clients that read nothing of their response for `connectionTimeout`. A response
 * without data, such as a long poll or a quiet feed, may take any time.
 */
export function dropStalledReaders(app: FastifyInstance): void {
  app.server.on('request', (_request, response) => {
    response.on('timeout', () => {
      if (response.writableLength > 0 || (response.socket?.writableLength ?? 0) > 0)
        response.destroy();
    });
  });
}

/**
 * The items of the requests in progress, in no order. An item occupies a place until it is removed.
 *
 * A Map or Set of all requests in progress would cost a fifth of a status read (row status-reads):
 * each growth of its table leaves an old one behind, which keeps its requests from being collected
 * as young objects.
 */
class OpenItems<Item extends object> {
  readonly #places: (Item | undefined)[] = [];
  readonly #free: number[] = [];

  /** Returns a function that removes the item; a second call does nothing. */
  add(item: Item): () => void {
    const place = this.#free.pop() ?? this.#places.length;
    this.#places[place] = item;
    return () => {
      if (this.#places[place] !== item) return;
      this.#places[place] = undefined;
      this.#free.push(place);
    };
  }

  /** Items may be removed while they are yielded. */
  *[Symbol.iterator](): Generator<Item, void> {
    for (const item of this.#places) if (item) yield item;
  }
}

/** Checks per deadline. */
const CHECKS_PER_DEADLINE = 6;
const MAX_CHECK_MS = 60_000;

/**
 * Returns a hook that limits the requests of a connection and their time.
 *
 * A connection with more than MAX_PIPELINED requests without a response is destroyed: a packet can
 * carry thousands of requests, which cost memory and time even if they are refused.
 *
 * A request without a response after `deadlineMs` gets 503, so that a faulty handler cannot hold a
 * connection forever. Routes with `staysOpen` are exempt. A response that has begun is limited by
 * `dropStalledReaders`. One timer checks all requests: Fastify's handlerTimeout would create a
 * timer and an AbortController for each, and does not cover requests without a route.
 */
export function boundRequests(app: FastifyInstance, deadlineMs: number): onRequestHookHandler {
  const unanswered = new WeakMap<Socket, number>();
  /** Requests whose response has not ended, and their times of arrival. */
  const pending = new OpenItems<{ reply: FastifyReply; since: number }>();
  const check = () => {
    const overdue = performance.now() - deadlineMs;
    for (const { reply, since } of pending) {
      if (since > overdue || reply.sent || reply.raw.headersSent || reply.raw.destroyed) continue;
      const { method, routeOptions } = reply.request;
      logOf(reply.request).error({ method, route: routeOptions.url }, 'http.no_response');
      sendProblem(reply.header('connection', 'close'), {
        status: 503,
        detail: 'the request took too long',
      });
    }
  };
  const timer = setInterval(
    check,
    Math.min(MAX_CHECK_MS, deadlineMs / CHECKS_PER_DEADLINE),
  ).unref();
  app.addHook('onClose', async () => clearInterval(timer));
  return ({ raw: { socket }, routeOptions }, reply, done) => {
    const count = (unanswered.get(socket) ?? 0) + 1;
    if (count > MAX_PIPELINED || socket.destroyed) {
      reply.hijack();
      socket.destroy();
      return;
    }
    unanswered.set(socket, count);
    const answered = routeOptions.config?.staysOpen
      ? undefined
      : pending.add({ reply, since: performance.now() });
    // Emitted when the client disconnects first, too.
    reply.raw.once('close', () => {
      unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1);
      answered?.();
    });
    done();
  };
}
