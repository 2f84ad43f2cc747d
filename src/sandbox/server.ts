import { setMaxListeners } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import Fastify from 'fastify';
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import type { SandboxContext } from './context.ts';
import { createModel, type Model } from './model.ts';
import type { NodeFault } from './node/node-faults.ts';
import { addNode, createNodeServer } from './node/node-server.ts';
import { type SandboxOptions, type SandboxOptionsInput, sandboxOptionsSchema } from './options.ts';
import { createFaults, type FaultOrder } from './routes/faults.ts';
import { createRateLimit } from './routes/rate-limit.ts';
import { addSubmissionRoutes } from './routes/submission-routes.ts';
import { addUserRoutes } from './routes/user-routes.ts';
import { createUsers } from './users.ts';

/** A running sandbox. */
export type Sandbox = {
  /** Base address without a trailing slash. */
  url: string;
  model: Model;
  /** Numbers of lookups; `maxRequestsPerWindow`: the most with one key in a window of the limit. */
  stats(): SandboxContext['traffic'] & { maxRequestsPerWindow: number };
  /** Replaces the next responses by a fault. */
  injectFault(order: FaultOrder): void;
  /** Replaces the fault of the chain's node. */
  setNodeFault(fault: NodeFault): void;
  /** Closes all connections immediately. Idempotent. */
  close(): Promise<void>;
};

type SandboxSetting = {
  options: SandboxOptionsInput;
  host?: string | undefined;
  /** 0: any free port. */
  port?: number | undefined;
  /** Epoch milliseconds. */
  now?: (() => number) | undefined;
  /** Calls a function after milliseconds of `now`. Returns a function that cancels it. */
  after?: SandboxContext['after'] | undefined;
};

/**
 * Serves the upstream's interface over HTTP. Rejects if the port cannot be opened or an option is
 * invalid.
 */
export async function startSandbox({
  options: given,
  host = '127.0.0.1',
  port = 0,
  now = () => Date.now(),
  after = realTimer,
}: SandboxSetting): Promise<Sandbox> {
  const options = sandboxOptionsSchema.parse(given);
  const closing = new AbortController();
  const context: SandboxContext = {
    options,
    model: createModel(options),
    users: createUsers(options.seed),
    traffic: { requests: 0, throttled: 0 },
    rateLimit: createRateLimit(options),
    faults: createFaults(),
    now,
    after,
    delay: createLatency(options, closing.signal),
  };

  const { app, setNodeFault } = buildApp(context);
  const url = await app.listen({ host, port });

  let closed: Promise<void> | undefined;
  return {
    url,
    model: context.model,
    stats: () => ({
      ...context.traffic,
      maxRequestsPerWindow: context.rateLimit.maxPerWindow,
    }),
    injectFault: (order) => context.faults.inject(order),
    setNodeFault,
    close() {
      closing.abort();
      closed ??= app.close();
      return closed;
    },
  };
}

function buildApp(context: SandboxContext) {
  const app = Fastify({ logger: false, forceCloseConnections: true, exposeHeadRoutes: false });
  addSubmissionRoutes(app, context);
  addUserRoutes(app, context);
  const node = createNodeServer(context);
  addNode(app, node);
  app.setNotFoundHandler(async (_request, reply) =>
    reply.code(404).type('text/plain').send('Not Found'),
  );
  // The upstream's framework reports errors in plain text, Fastify would send JSON.
  app.setErrorHandler<Error & { statusCode?: number }>(async (error, _request, reply) =>
    reply
      .code(error.statusCode ?? 500)
      .type('text/plain')
      .send(error.message),
  );
  return { app, setNodeFault: node.setFault };
}

function realTimer(delayMs: number, run: () => void): () => void {
  const timer = setTimeout(run, Math.ceil(delayMs));
  return () => clearTimeout(timer);
}

/** Returns a function that waits for the simulated latency, or until `signal` aborts. */
function createLatency(options: SandboxOptions, signal: AbortSignal): () => Promise<void> {
  const { latencyMs, latencyJitterMs, speed } = options;
  const generator = xoroshiro128plus(options.seed);
  // Each waiting response has a listener; a large number is not a leak.
  setMaxListeners(0, signal);
  return async () => {
    const delayMs = (latencyMs + latencyJitterMs * uniformFloat64(generator)) / speed;
    if (delayMs > 0) await wait(delayMs, undefined, { signal }).catch(() => {});
  };
}
