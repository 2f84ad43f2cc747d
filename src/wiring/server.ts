import type { IncomingMessage } from 'node:http';
import cookies from '@fastify/cookie';
import {
  type FastifyBaseLogger,
  type FastifyInstance,
  fastify,
  LogController,
  type onRequestHookHandler,
} from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import {
  allowEveryone,
  authorize,
  type Credentials,
  preferBearer,
  recheckBeforeHandlers,
} from '../access/access.ts';
import { registerAudit } from '../access/audit-routes.ts';
import {
  type AuthenticationFailure,
  addLimits,
  createAuthenticator,
  refusalRecorder,
} from '../access/authentication.ts';
import { registerCredentials, registerWhoami } from '../access/credentials-routes.ts';
import { registerOidc } from '../access/oidc-route.ts';
import { Provider } from '../access/provider.ts';
import { registerSession } from '../access/session-route.ts';
import { Sessions } from '../access/sessions.ts';
import type { Users } from '../access/users.ts';
import { registerUsers } from '../access/users-routes.ts';
import { registerDashboard } from '../dashboard/assets.ts';
import {
  acceptEmptyBodies,
  boundRequests,
  clientAddressReader,
  dropStalledReaders,
  endConnectionsOnClose,
  limitUnreadResponses,
  refuseAmbiguous,
  rejectEncodedBodies,
  requestTimeouts,
  sendUnreadable,
  serializeExpensiveRoutes,
} from '../http/connections.ts';
import { addDocumentation } from '../http/documentation.ts';
import { allowOrigins } from '../http/methods.ts';
import { registerProblems, SECURITY_HEADERS, sendUnroutable } from '../http/problems.ts';
import {
  addRequestLog,
  compileValidator,
  parseQuery,
  REQUEST_ID_HEADER,
  requestIdOf,
} from '../http/typed-server.ts';
import type { Clock } from '../lib/clock.ts';
import { type ChannelDescription, registerChannels } from '../notifications/channels-routes.ts';
import { registerDeliveries } from '../notifications/deliveries-routes.ts';
import { eventJsonSchema } from '../notifications/event-body.ts';
import { type EventFeed, registerEvents } from '../notifications/event-feed.ts';
import { registerWebhooks } from '../notifications/webhooks-routes.ts';
import type { ChainStatus } from '../polling/chain/port.ts';
import { registerProof } from '../polling/chain/proof-route.ts';
import type { CachedLookup } from '../polling/on-demand-polls.ts';
import { registerPacing } from '../polling/pacing-route.ts';
import { registerSubmissionInfo } from '../polling/submission-info-route.ts';
import type { Watcher } from '../polling/watcher.ts';
import { Admission, type Intake } from '../submissions/intake.ts';
import { registerSubmissions, submissionIdOf } from '../submissions/submissions-routes.ts';
import type { Feature } from './features.ts';
import { type Readiness, registerHealth } from './health-routes.ts';
import type { Ledger } from './ledger-stores.ts';
import { countRequests } from './metrics/counters.ts';
import { type Metrics, registerMetrics } from './metrics/metrics.ts';
import { registerOverview } from './overview-routes.ts';
import type { Config, Tuning } from './settings.ts';

type ServerDeps = {
  config: Config;
  clock: Clock;
  ledger: Ledger;
  watcher: Watcher;
  chainOf: (upstream: string) => ChainStatus | null;
  intake: Intake;
  lookup: CachedLookup;
  feed: EventFeed;
  /** Returns why a webhook URL is not allowed; undefined if it is. */
  refusalOf: (url: string) => string | undefined;
  channels: readonly ChannelDescription[];
  features: readonly Feature[];
  users: Users;
  credentials: Credentials;
  /** Whether the settings have a admin token. */
  hasConfiguredAdmin: boolean;
  health: () => Readiness;
  metrics: Metrics;
  log: FastifyBaseLogger;
  version: string;
  tuning: Tuning;
  /** Limit for a handler to respond; must exceed every handler's own time limits. */
  responseDeadlineMs: number;
};

const BODY_LIMIT_BYTES = 64 * 1024;
const HEADER_LIMIT_BYTES = 16 * 1024;
/** An id of 128 characters, each percent-encoded. */
const MAX_PARAM_CHARS = 3 * 128;
const KEEP_ALIVE_MS = 72_000;

/** Fastify's compilers are never loaded. Tests compare the responses with their schemas. */
const COMPILERS = {
  compilersFactory: {
    buildValidator: () => compileValidator as never,
    buildSerializer: () => () => (body: unknown) => JSON.stringify(body),
  },
};

/** The hooks of every request in their order, and why there. No route has further ones. */
export const REQUEST_HOOKS = [
  ['describe', 'every response has these headers, and later hooks use the address'],
  ['boundRequests', 'a flood must cost as little as possible, and the following hooks may wait'],
  ['refuseAmbiguous', 'a request that proxies read differently is not authenticated'],
  ['allowOrigins', 'pages may read refusals, too; preflights have no credential'],
  ['limitRate', 'requests that are refused or have no route are limited, too'],
  ['authorize', 'only a request with a route and within its limits is looked at'],
] as const;

type RequestHooks = Record<(typeof REQUEST_HOOKS)[number][0], onRequestHookHandler>;

function describe(clientAddressOf: (request: IncomingMessage) => string): onRequestHookHandler {
  return (request, reply, done) => {
    request.clientAddress = clientAddressOf(request.raw);
    reply.headers(SECURITY_HEADERS).header(REQUEST_ID_HEADER, request.id);
    done();
  };
}

/** The caller starts and closes it. Hooks of one kind run in the order in which they are added. */
export async function buildServer(deps: ServerDeps): Promise<FastifyInstance> {
  const { metrics, ledger, features } = deps;
  const { server, limits } = deps.config;
  const { requestTimeoutMs, maxHeldOpen } = deps.tuning;
  const app = fastify({
    loggerInstance: deps.log,
    logController: new LogController({ disableRequestLogging: true }),
    // No child log for each request; see logOf.
    childLoggerFactory: (log) => log,
    genReqId: requestIdOf,
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: requestTimeoutMs,
    connectionTimeout: requestTimeoutMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: 'idle',
    // Requests on open connections are served while the server closes; the ledger closes after it.
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAM_CHARS, querystringParser: parseQuery },
    http: {
      maxHeaderSize: HEADER_LIMIT_BYTES,
      requireHostHeader: false,
      ...requestTimeouts(requestTimeoutMs),
    },
    clientErrorHandler: sendUnreadable,
    frameworkErrors: sendUnroutable,
    schemaController: COMPILERS,
  }).withTypeProvider<ZodTypeProvider>();
  const clientAddressOf = clientAddressReader(server.trusted_proxies);
  app.decorateRequest('clientAddress', '');
  countRequests(app, metrics.counters);
  addRequestLog(app, submissionIdOf);
  dropStalledReaders(app);
  endConnectionsOnClose(app);
  rejectEncodedBodies(app);
  acceptEmptyBodies(app);
  registerProblems(app);
  // The cookie is parsed only where a session may authenticate the request.
  await app.register(cookies, { hook: false });
  const sessions = new Sessions({ ...deps, store: ledger.sessions });
  const authenticator = createAuthenticator(deps.credentials, sessions);
  const recordRefusal = refusalRecorder({ audit: ledger.audit, clock: deps.clock });
  const onRefused = (reason: AuthenticationFailure, address: string) => {
    metrics.counters.authenticationFailed(reason);
    recordRefusal(reason, address);
  };
  const hooks: RequestHooks = {
    describe: describe(clientAddressOf),
    boundRequests: boundRequests(deps.responseDeadlineMs),
    refuseAmbiguous: refuseAmbiguous(app),
    allowOrigins: allowOrigins(server.cors_origins),
    limitRate: await addLimits(app, { limits, authenticator, onRefused }),
    authorize: authorize(authenticator),
  };
  for (const [name] of REQUEST_HOOKS) app.addHook('onRequest', hooks[name]);
  serializeExpensiveRoutes(app);
  recheckBeforeHandlers(app, authenticator);
  limitUnreadResponses(app);

  const admission = new Admission({
    intake: deps.intake,
    maxHeldOpen,
    onShed: metrics.counters.shed,
  });
  addDocumentation(app, { version: deps.version, eventJsonSchema });
  await app.register(async (open) => {
    allowEveryone(open);
    registerHealth(open, { ...deps, authenticator });
    registerMetrics(open, deps);
    registerDashboard(open);
  });
  await app.register(async (guarded) => {
    admission.boundHeldOpen(guarded);
    const explorerOf = (name: string) => deps.config.upstreams[name]?.chain.explorer;
    registerSubmissions(guarded, { ...deps, authenticator, admission, explorerOf });
    registerProof(guarded, deps);
    registerSubmissionInfo(guarded, deps);
    registerEvents(guarded, { ...deps, authenticator, events: ledger.events });
    registerPacing(guarded, deps);
    registerOverview(guarded, deps);
    for (const feature of features) feature.addReadRoutes?.(guarded);
    registerWhoami(guarded, deps);
  });
  await app.register(async (open) => {
    allowEveryone(open);
    const provider = new Provider(deps.config.oidc);
    registerSession(open, { ...deps, authenticator, sessions });
    registerOidc(open, { ...deps, provider, onRefused: (address) => onRefused('oidc', address) });
  });
  await app.register(async (lookups) => registerUsers(lookups, { ...deps, authenticator }));
  await app.register(async (guarded) => {
    preferBearer(guarded);
    registerAudit(guarded, { ...deps, authenticator });
    registerCredentials(guarded, deps);
    registerWebhooks(guarded, deps);
    registerDeliveries(guarded, deps);
    for (const feature of features) feature.addChangeRoutes?.(guarded);
    registerChannels(guarded, deps);
  });
  return app;
}
