import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, onRequestHookHandler } from 'fastify';
import { logOf } from '../request-log.ts';

/** Pipelined requests per connection; clients that pipeline send a few at a time. */
const MAX_PIPELINED = 16;
/** Characters of unread responses over all connections. */
const MAX_UNREAD_CHARS = 64 * 1024 * 1024;
/** Shorter responses are not counted; other limits bound their number. */
const MIN_COUNTED_CHARS = 4 * 1024;

/**
 * Destroys a connection with more requests than that without a response. A packet can carry thousands of requests, which cost
 * memory and time even if they are refused.
 */
export function limitPipelining(): onRequestHookHandler {
  const pending = new WeakMap<Socket, number>();
  return ({ raw: { socket } }, reply, done) => {
    const count = (pending.get(socket) ?? 0) + 1;
    if (count > MAX_PIPELINED || socket.destroyed) {
      reply.hijack();
      socket.destroy();
      return;
    }
    pending.set(socket, count);
    reply.raw.once('close', () => pending.set(socket, (pending.get(socket) ?? 1) - 1));
    done();
  };
}

/**
 * Limits the unread responses in memory. Above the limit, the connection whose response has waited longest is closed. Stored
 * responses are shared and not counted. Must follow every other onSend hook.
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
