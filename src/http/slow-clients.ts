import type { ServerOptions } from 'node:http';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { OpenItems } from './open-items.ts';
import { sendProblem } from './problems.ts';

/** Checks per timeout. */
const CHECKS = 6;
/** Longer than a stall of the network. */
const MAX_WINDOW_MS = 5_000;

/**
 * Returns Node's options for the time to receive a complete request, counted from its first byte or, for the first request, from
 * connecting. Both limits are set, because the one for headers would otherwise replace a shorter one.
 */
export function requestTimeouts(timeoutMs: number): ServerOptions {
  const requestTimeout = Math.ceil(timeoutMs);
  return {
    requestTimeout,
    headersTimeout: requestTimeout,
    connectionsCheckingInterval: Math.max(1, Math.floor(timeoutMs / CHECKS)),
  };
}

/**
 * Disconnects clients that read nothing of their response for `connectionTimeout`. A response without data, such as a long poll
 * or a quiet feed, may take any time.
 */
export function dropStalledReaders(app: FastifyInstance): void {
  app.server.on('request', (_request, response) => {
    response.on('timeout', () => {
      if (response.writableLength > 0 || (response.socket?.writableLength ?? 0) > 0) response.destroy();
    });
  });
}

/**
 * Refuses a body with 408 that is received more slowly than `bytesPerS`, measured in windows, so that slow clients cannot occupy
 * the body limits of others. 0: no limit.
 */
export function requireReceiveRate(app: FastifyInstance, deps: { bytesPerS: number; timeoutMs: number }): void {
  const { bytesPerS } = deps;
  if (bytesPerS === 0) return;
  const windowMs = Math.min(MAX_WINDOW_MS, deps.timeoutMs / CHECKS);
  const minBytes = (bytesPerS * windowMs) / 1_000;
  /** `bytes`: received in this window; null in the first one, which is incomplete. */
  const receiving = new OpenItems<{ reply: FastifyReply; bytes: number | null }>();
  let checkedAt = performance.now();
  const check = () => {
    const now = performance.now();
    // A delay of this check also delayed reading.
    const isLate = now - checkedAt > 1.5 * windowMs;
    checkedAt = now;
    for (const body of receiving) {
      const { reply, bytes } = body;
      body.bytes = 0;
      if (isLate || bytes === null || bytes >= minBytes || reply.sent) continue;
      const detail = `the body was received at less than ${bytesPerS} bytes a second`;
      sendProblem(reply.header('connection', 'close'), { status: 408, detail });
    }
  };
  // setImmediate lets pending input be read first.
  const timer = setInterval(() => setImmediate(check), windowMs).unref();
  app.addHook('onClose', async () => clearInterval(timer));
  app.addHook('preParsing', ({ raw, headers }, reply, _body, done) => {
    if (Number(headers['content-length'] ?? 0) > 0 || headers['transfer-encoding'] !== undefined) {
      const body = { reply, bytes: null as number | null };
      const remove = receiving.add(body);
      raw.on('data', ({ length }: Buffer) => {
        if (body.bytes !== null) body.bytes += length;
      });
      for (const ended of ['end', 'close']) raw.on(ended, remove);
    }
    done();
  });
}
