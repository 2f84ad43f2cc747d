import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from 'fastify';
import type { Clock } from '../domain/clock.ts';
import type { ReportUnreadable } from '../domain/stored.ts';
import type { TrackBody } from '../domain/track-request.ts';
import type { UpstreamPacing } from '../watch/watcher.ts';
import { preferBearer, requireRole } from './access/access.ts';
import { clientAddressReader } from './access/client-address.ts';
import { addCors } from './access/cors.ts';
import { CredentialLock } from './access/credential-lock.ts';
import { reportFailedAuthentications } from './access/failed-authentications.ts';
import { addLimits, type LimitSettings } from './access/limits.ts';
import { addSecurityHeaders } from './access/security-headers.ts';
import { EventFeed } from './feed/event-feed.ts';
import { registerEvents } from './feed/events.ts';
import { Admission, type AdmissionDeps } from './load/admission.ts';
import { coalesceRequests, coalesceResponses } from './load/coalescing.ts';
import { limitPipelining, limitUnreadResponses } from './load/connection-limits.ts';
import { serializeExpensiveRoutes } from './load/expensive-routes.ts';
import { enforceResponseDeadline } from './load/response-deadline.ts';
import { dropStalledReaders, requestTimeouts, requireReceiveRate } from './load/slow-clients.ts';
import { handleUnroutedMethods } from './methods.ts';
import type { Metrics } from './metrics/metrics.ts';
import { countRequests, registerMetrics } from './metrics/route.ts';
import { addDocumentation } from './openapi/documentation.ts';
import type {
  Asset,
  Audit,
  Credentials,
  DeliveryService,
  ErrorToProblem,
  EventLog,
  Overview,
  Readiness,
  SubmissionInfo,
  Submissions,
  TrackRequestResult,
  Users,
  WebhookService,
} from './ports.ts';
import { registerProblems, sendUnroutable } from './problems.ts';
import { endConnectionsOnClose, rejectEncodedBodies, requireOneHost, sendUnreadable } from './protocol.ts';
import { parseQuery } from './query.ts';
import { addRequestLog, logOf, requestIdOf } from './request-log.ts';
import { registerAudit } from './routes/audit.ts';
import { registerDeliveries } from './routes/deliveries.ts';
import { registerHealth } from './routes/health.ts';
import { registerOverview } from './routes/overview.ts';
import { registerPacing } from './routes/pacing.ts';
import type { Queues } from './routes/queues.ts';
import { registerSubmissionInfo } from './routes/submission-info.ts';
import { registerSubmissions } from './routes/submissions.ts';
import { registerUsers } from './routes/users.ts';
import { registerWebhooks } from './routes/webhooks.ts';
import { registerWhoami } from './routes/whoami.ts';
import { registerDashboard } from './static-files.ts';
import { compileValidator } from './validation.ts';

export type HttpDeps = {
  submissions: Submissions;
  submissionInfo: SubmissionInfo;
  events: EventLog;
  clock: Clock;
  users: Users;
  audit: Audit;
  webhooks: WebhookService;
  deliveries: DeliveryService;
  isOwnToken: (secret: string) => boolean;
  /** Whether a secret has the complete form of a dawatch token and is therefore too random to guess. */
  hasTokenForm: (secret: string) => boolean;
  health: () => Readiness;
  pacing: () => UpstreamPacing[];
  overview: () => Overview;
  metrics: Metrics;
  /** Sizes of the ledger's files. */
  ledgerBytes: () => { database: number; wal: number };
  /** Undefined without Redis. */
  queues?: Queues | undefined;
  dashboard: readonly Asset[];
  credentials: Credentials;
  errorToProblem: ErrorToProblem;
  onUnreadable: ReportUnreadable;
  log: FastifyBaseLogger;
  version: string;
  limits: LimitSettings &
    Pick<AdmissionDeps<TrackBody, TrackRequestResult>, 'maxWaitMs' | 'maxHeldOpen'> & { receiveBytesPerS: number };
  /** Limit for receiving a complete request, and for a client that reads nothing of its response. */
  timeoutMs: number;
  /** Limit for a handler to respond; must exceed every handler's own time limits. */
  responseDeadlineMs: number;
  /** Origins whose pages may read responses. */
  corsOrigins: readonly string[];
  /** Proxies whose headers are trusted for the address of a client. */
  trustedProxies: readonly string[];
};

const BODY_LIMIT_BYTES = 64 * 1024;
const HEADER_LIMIT_BYTES = 16 * 1024;
/** An id of 128 characters, each percent-encoded. */
const MAX_PARAM_CHARS = 3 * 128;
const KEEP_ALIVE_MS = 72_000;

/**
 * Replaces Fastify's own compilers, which are then never loaded. Responses are built by typed functions and not validated; tests
 * compare them with their schemas.
 */
const COMPILERS = {
  compilersFactory: {
    buildValidator: () => compileValidator as never,
    buildSerializer: () => () => (body: unknown) => JSON.stringify(body),
  },
};

/** Builds the server. The caller starts and closes it. Hooks run in the order of the calls below. */
export async function buildServer(deps: HttpDeps): Promise<FastifyInstance> {
  const app = fastify({
    loggerInstance: deps.log,
    logController: new LogController({ disableRequestLogging: true }),
    // No child log for each request; see logOf.
    childLoggerFactory: (log) => log,
    genReqId: requestIdOf,
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: Math.ceil(deps.timeoutMs),
    connectionTimeout: Math.ceil(deps.timeoutMs),
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: 'idle',
    // Requests on open connections are served while the server closes; the ledger closes after it.
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAM_CHARS, querystringParser: parseQuery },
    http: { maxHeaderSize: HEADER_LIMIT_BYTES, requireHostHeader: false, ...requestTimeouts(deps.timeoutMs) },
    clientErrorHandler: sendUnreadable,
    frameworkErrors: sendUnroutable,
    schemaController: COMPILERS,
  });
  const clientAddressOf = clientAddressReader(deps.trustedProxies);
  app.decorateRequest('clientAddress', '');
  app.addHook('onRequest', (request, _reply, done) => {
    request.clientAddress = clientAddressOf(request.raw);
    done();
  });
  countRequests(app, deps.metrics.counters);
  addSecurityHeaders(app);
  addRequestLog(app);
  limitPipelining(app);
  coalesceRequests(app);
  enforceResponseDeadline(app, deps.responseDeadlineMs);
  requireOneHost(app);
  dropStalledReaders(app);
  endConnectionsOnClose(app);
  rejectEncodedBodies(app);
  requireReceiveRate(app, { bytesPerS: deps.limits.receiveBytesPerS, timeoutMs: deps.timeoutMs });
  app.removeContentTypeParser('text/plain');
  registerProblems(app, deps.errorToProblem);
  addCors(app, deps.corsOrigins);
  const authenticator = new CredentialLock({ ...deps, maxFailures: deps.limits.failedAuthenticationsPerMinute });
  await addLimits(app, { limits: deps.limits, lock: authenticator });
  reportFailedAuthentications(app, deps.metrics.counters.authenticationFailed);
  handleUnroutedMethods(app);
  serializeExpensiveRoutes(app);
  limitUnreadResponses(app);
  coalesceResponses(app);

  const admission = new Admission({
    ...deps.limits,
    processBatch: (bodies: readonly TrackBody[]) => deps.submissions.trackBatch(bodies),
    onShed: deps.metrics.counters.shed,
  });
  const feed = new EventFeed({ ...deps, log: logOf(app) });
  const readers = () => feed.readers;
  addDocumentation(app, deps.version);
  await app.register(async (open) => {
    registerHealth(open, { ...deps, authenticator });
    registerMetrics(open, { ...deps, readers, waitingIds: () => admission.waitingIds });
    registerDashboard(open, deps.dashboard);
  });
  await app.register(async (guarded) => {
    guarded.addHook('onRequest', requireRole(authenticator, ['service', 'admin']));
    admission.boundHeldOpen(guarded);
    registerSubmissions(guarded, { ...deps, admission });
    registerSubmissionInfo(guarded, deps);
    registerEvents(guarded, { ...deps, feed });
    registerPacing(guarded, deps);
    registerOverview(guarded, { ...deps, readers });
  });
  await app.register(async (open) => registerWhoami(open, { ...deps, authenticator }));
  await app.register(async (lookups) => registerUsers(lookups, { ...deps, authenticator }));
  await app.register(async (guarded) => {
    preferBearer(guarded);
    guarded.addHook('onRequest', requireRole(authenticator, ['admin']));
    registerAudit(guarded, deps);
    registerWebhooks(guarded, deps);
    registerDeliveries(guarded, deps);
  });
  const { queues } = deps;
  if (queues) {
    // Loaded only with Redis: the board's dependencies slow every start.
    const { registerQueues } = await import('./routes/queues.ts');
    await app.register(async (board) => registerQueues(board, { ...deps, authenticator, queues }));
  }
  return app;
}
