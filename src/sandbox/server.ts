import Fastify, { type FastifyInstance } from 'fastify';
import type { SandboxContext } from './context.ts';
import { createModel, type Model } from './model.ts';
import { type SandboxOptionsInput, sandboxOptionsSchema } from './options.ts';
import { createFaults, type FaultOrder } from './routes/faults.ts';
import { createLatency } from './routes/latency.ts';
import { addOperatorRoutes, REDIRECT_PATH, statsOf } from './routes/operator-routes.ts';
import { createRateLimit } from './routes/rate-limit.ts';
import { addSubmissionRoutes } from './routes/submission-routes.ts';
import { addUserRoutes } from './routes/user-routes.ts';
import { createTraffic, type SandboxStats } from './traffic.ts';
import { createUsers } from './users.ts';

/** A running sandbox. */
export type Sandbox = {
  /** Base address without a trailing slash. */
  url: string;
  model: Model;
  stats(): SandboxStats;
  /** Makes the next answers a fault, see FaultOrder. */
  injectFault(order: FaultOrder): void;
  /** Ends every connection at once, also those that hang. Idempotent. */
  close(): Promise<void>;
};

type SandboxSetting = {
  options: SandboxOptionsInput;
  host?: string | undefined;
  /** 0: any free port. */
  port?: number | undefined;
  /** Epoch milliseconds. */
  now?: (() => number) | undefined;
};

/** Serves the upstream's interface over HTTP. Fails when the port cannot be opened or an option is out of range. */
export async function startSandbox({
  options: given,
  host = '127.0.0.1',
  port = 0,
  now = () => Date.now(),
}: SandboxSetting): Promise<Sandbox> {
  const options = sandboxOptionsSchema.parse(given);
  const closing = new AbortController();
  let redirectTo = REDIRECT_PATH;
  const context: SandboxContext = {
    options,
    model: createModel(options),
    users: createUsers(options),
    traffic: createTraffic(),
    rateLimit: createRateLimit(options),
    faults: createFaults(),
    now,
    delay: createLatency(options, closing.signal),
    faultContext: () => ({ nowMs: now(), retryAfterForm: options.retryAfterForm, redirectTo }),
  };

  const app = buildApp(context);
  const url = await app.listen({ host, port });
  redirectTo = elsewhere(url);

  let closed: Promise<void> | undefined;
  return {
    url,
    model: context.model,
    stats: () => statsOf(context),
    injectFault: (order) => context.faults.inject(order),
    close() {
      closing.abort();
      closed ??= app.close();
      return closed;
    },
  };
}

function buildApp(context: SandboxContext): FastifyInstance {
  const app = Fastify({ logger: false, forceCloseConnections: true, exposeHeadRoutes: false });
  addSubmissionRoutes(app, context);
  addUserRoutes(app, context);
  addOperatorRoutes(app, context);
  app.setNotFoundHandler(async (_request, reply) => reply.code(404).type('text/plain').send('Not Found'));
  // The upstream answers what its framework refuses in plain text, where Fastify would send JSON of its own.
  app.setErrorHandler<Error & { statusCode?: number }>(async (error, _request, reply) =>
    reply
      .code(error.statusCode ?? 500)
      .type('text/plain')
      .send(error.message),
  );
  return app;
}

/** The same port under the machine's other name, i.e. a host that a key was not meant for. */
function elsewhere(url: string): string {
  const { hostname, port } = new URL(url);
  const otherName = hostname === 'localhost' ? '127.0.0.1' : 'localhost';
  return `http://${otherName}:${port}${REDIRECT_PATH}`;
}
