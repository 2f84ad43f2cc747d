import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, preHandlerHookHandler } from 'fastify';
import { logOf } from './request-log.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A route whose response takes milliseconds to build. */
    isExpensive?: boolean;
  }
}

/**
 * Serves requests of expensive routes one at a time, from the beginning to the end of the handler,
 * with iterations of the event loop between them: a flood of lists would exceed the memory and
 * delays that SECURITY.md promises. A pipelined request waits until the response before it is sent,
 * because it would be held in memory behind that one. Applies to routes registered later.
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
  /** The newest response of these routes over each connection. */
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
