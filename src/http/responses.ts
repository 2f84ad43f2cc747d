import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest, preHandlerHookHandler } from 'fastify';
import { logOf } from './request-log.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A route whose response takes milliseconds to build. */
    isExpensive?: boolean;
    /** A route, or those of its requests, that work for long between other requests. */
    isLong?: boolean | ((request: FastifyRequest) => boolean);
  }
}

/** Requests that are served one at a time, with iterations of the event loop between them. */
class Turns {
  readonly #waiting: (() => void)[] = [];
  #isBusy = false;

  /** Calls `serve` when the turns before have ended. */
  take(serve: () => void): void {
    this.#waiting.push(serve);
    if (!this.#isBusy) this.#next();
  }

  end(): void {
    // Reading a request takes one iteration, and responding to it another.
    setImmediate(() => setImmediate(() => this.#next()));
  }

  #next(): void {
    const serve = this.#waiting.shift();
    this.#isBusy = serve !== undefined;
    serve?.();
  }
}

/** A client that reads slowly delays the next request of a long route by at most this time. */
const MAX_READ_MS = 10_000;

/**
 * Serves requests of expensive routes one at a time, from the beginning to the end of the handler.
 * Without it, a flood of lists exceeds the memory and delays that SECURITY.md promises. A long
 * route has turns of its own, so that the lists do not wait for it; its next request waits until
 * the response is sent, too. Pipelined requests wait until the response before them is sent: it
 * would be held in memory behind the one before, and built for nothing if the client disconnects.
 * Applies to routes registered later.
 */
export function serializeExpensiveRoutes(app: FastifyInstance, maxReadMs = MAX_READ_MS): void {
  const lists = new Turns();
  const ofRoutes = new Map<string, Turns>();
  const served = new WeakMap<FastifyRequest, Turns>();
  /** The newest response of these routes over each connection. */
  const newest = new WeakMap<Socket, ServerResponse>();

  const endAfterResponse = (turns: Turns, { raw }: FastifyReply) => {
    const end = () => {
      clearTimeout(timer);
      raw.off('close', end);
      turns.end();
    };
    const timer = setTimeout(end, raw.destroyed ? 0 : maxReadMs).unref();
    raw.once('close', end);
  };

  app.addHook('onRoute', (route) => {
    const { isExpensive, isLong = false } = route.config ?? {};
    if (!isExpensive && !isLong) return;
    const alone = ofRoutes.get(route.url) ?? new Turns();
    ofRoutes.set(route.url, alone);
    const wait: preHandlerHookHandler = (request, reply, done) => {
      const isAlone = typeof isLong === 'function' ? isLong(request) : isLong;
      const turns = isAlone ? alone : lists;
      const { socket } = request.raw;
      const serve = () => {
        // Node does not destroy a response that is behind another one when the connection closes.
        if (reply.sent || reply.raw.destroyed || socket.destroyed) return turns.end();
        served.set(request, turns);
        done();
        // A later hook has refused it.
        if (served.delete(request)) turns.end();
      };
      const before = newest.get(socket);
      newest.set(socket, reply.raw);
      if (!before || before.closed) turns.take(serve);
      else before.once('close', () => turns.take(serve));
    };
    route.preHandler = [route.preHandler ?? [], wait].flat();
    const { handler } = route;
    route.handler = async function (request, reply) {
      const turns = served.get(request);
      served.delete(request);
      // A handler that returns the reply would otherwise last until the client has read all of it.
      Object.defineProperty(reply, 'then', { value: undefined, configurable: true });
      try {
        return await handler.call(this, request, reply);
      } finally {
        Reflect.deleteProperty(reply, 'then');
        if (turns === alone) endAfterResponse(turns, reply);
        else turns?.end();
      }
    };
  });
}

/** Characters of unread responses over all connections. */
const MAX_UNREAD_CHARS = 32 * 1024 * 1024;
/** Shorter responses are not counted; other limits bound their number. */
const MIN_COUNTED_CHARS = 4 * 1024;

/**
 * Limits the unread responses in memory. Above the limit, the connection whose response has waited
 * longest is closed. Bytes are shared by responses, and not counted. Must follow every other onSend
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
