import type { ServerOptions } from 'node:http';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { sendProblem } from '../problems.ts';

/** Node looks for requests that take too long this many times within what they may take. */
const LOOKS = 6;
/** A stall of the network is shorter. */
const MAX_WINDOW_MS = 5_000;

/**
 * A request must have come whole within this time, counted from the first byte, on a new connection from connecting.
 * Node takes the time of the headers for that of the whole request where the latter is shorter, so both are given.
 */
export function requestTimeouts(timeoutMs: number): ServerOptions {
  const requestTimeout = Math.ceil(timeoutMs);
  return {
    requestTimeout,
    headersTimeout: requestTimeout,
    connectionsCheckingInterval: Math.max(1, Math.floor(timeoutMs / LOOKS)),
  };
}

/**
 * Hangs up on callers who take nothing of their answer for the time of `connectionTimeout`. An answer that is still to come, as that of a long poll
 * or of a quiet feed, may take any time.
 */
export function dropStalledReaders(app: FastifyInstance): void {
  app.server.on('request', (_request, response) => {
    response.on('timeout', () => {
      if (response.writableLength > 0 || (response.socket?.writableLength ?? 0) > 0) response.destroy();
    });
  });
}

/**
 * Refuses a body with 408 that comes slower than this, measured over windows of time: a client that sends a little now and
 * then would keep its place among those that are read. 0: no limit.
 */
export function requireReceiveRate(app: FastifyInstance, deps: { bytesPerS: number; timeoutMs: number }): void {
  const { bytesPerS } = deps;
  if (bytesPerS === 0) return;
  const windowMs = Math.min(MAX_WINDOW_MS, deps.timeoutMs / LOOKS);
  const least = (bytesPerS * windowMs) / 1_000;
  /** What has come in this window; null: the first one was not whole. */
  const receiving = new Map<FastifyReply, number | null>();
  let checkedAt = performance.now();
  const check = () => {
    const now = performance.now();
    // Whatever kept this waiting also kept what has come from being read.
    const isLate = now - checkedAt > 1.5 * windowMs;
    checkedAt = now;
    for (const [reply, received] of receiving) {
      receiving.set(reply, 0);
      if (isLate || received === null || received >= least) continue;
      receiving.delete(reply);
      if (reply.sent) continue;
      const detail = `the body came slower than ${bytesPerS} bytes a second`;
      sendProblem(reply.header('connection', 'close'), { status: 408, detail });
    }
  };
  // After what has come by then is read.
  const timer = setInterval(() => setImmediate(check), windowMs).unref();
  app.addHook('onClose', async () => clearInterval(timer));
  app.addHook('preParsing', ({ raw, headers }, reply, _body, done) => {
    if (Number(headers['content-length'] ?? 0) > 0 || headers['transfer-encoding'] !== undefined) {
      receiving.set(reply, null);
      raw.on('data', ({ length }: Buffer) => {
        const received = receiving.get(reply);
        if (typeof received === 'number') receiving.set(reply, received + length);
      });
      for (const ended of ['end', 'close']) raw.once(ended, () => receiving.delete(reply));
    }
    done();
  });
}
