import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
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
import { addSecurityHeaders, SECURITY_HEADERS } from './access/security-headers.ts';
import { EventFeed } from './feed/event-feed.ts';
import { registerEvents } from './feed/events.ts';
import { lazyChild } from './lazy-log.ts';
import { Admission, type AdmissionDeps } from './load/admission.ts';
import { coalesceRequests, coalesceResponses } from './load/coalescing.ts';
import { limitPipelining, limitUnreadResponses } from './load/connection-limits.ts';
import { serializeExpensiveRoutes } from './load/expensive-routes.ts';
import { enforceResponseDeadline } from './load/response-deadline.ts';
import { dropStalledReaders, requestTimeouts, requireReceiveRate } from './load/slow-clients.ts';
import { handleUnroutedMethods } from './methods.ts';
import type { Metrics } from './metrics/metrics.ts';
import { countRequests } from './metrics/requests.ts';
import { registerMetrics } from './metrics/route.ts';
import { addDocumentation } from './openapi/documentation.ts';
import { registerOperations } from './openapi/operations.ts';
import type {
  Asset,
  Audit,
  Credentials,
  Deliveries,
  ErrorToProblem,
  EventLog,
  Health,
  Overview,
  SubmissionInfo,
  Submissions,
  TrackRequestResult,
  Users,
  Webhooks,
} from './ports.ts';
import { problemBody, registerProblems, sendProblem, sendUnroutable } from './problems.ts';
import { addRequestLog, logOf, REQUEST_ID_FIELD, REQUEST_ID_HEADER, requestIdOf } from './request-log.ts';
import { registerAudit } from './routes/audit.ts';
import { registerDashboard } from './routes/dashboard.ts';
import { registerDeliveries } from './routes/deliveries.ts';
import { registerOverview } from './routes/overview.ts';
import { registerPacing } from './routes/pacing.ts';
import type { Queues } from './routes/queues.ts';
import { registerSubmissionInfo } from './routes/submission-info.ts';
import { registerSubmissions } from './routes/submissions.ts';
import { registerUsers } from './routes/users.ts';
import { registerWebhooks } from './routes/webhooks.ts';
import { registerWhoami } from './routes/whoami.ts';
import { compileValidator } from './validation.ts';

export type HttpDeps = {
  submissions: Submissions;
  submissionInfo: SubmissionInfo;
  events: EventLog;
  clock: Clock;
  users: Users;
  audit: Audit;
  webhooks: Webhooks;
  deliveries: Deliveries;
  isOwnToken: (secret: string) => boolean;
  /** Whether a secret has the whole form of a token that dawatch makes: as random as those, also if it was never made here. */
  hasTokenForm: (secret: string) => boolean;
  health: () => Health;
  pacing: () => UpstreamPacing[];
  overview: () => Overview;
  metrics: Metrics;
  /** The size of the ledger's files. */
  ledgerBytes: () => { database: number; wal: number };
  /** Undefined: there are none. */
  queues?: Queues | undefined;
  dashboard: readonly Asset[];
  credentials: Credentials;
  errorToProblem: ErrorToProblem;
  onUnreadable: ReportUnreadable;
  log: FastifyBaseLogger;
  version: string;
  limits: LimitSettings &
    Pick<AdmissionDeps<TrackBody, TrackRequestResult>, 'maxWaitMs' | 'maxHeldOpen'> & { receiveBytesPerS: number };
  /** For a request to come whole, and for its answer to stand still. */
  timeoutMs: number;
  /** Longer than any handler takes by itself. */
  responseDeadlineMs: number;
  /** Pages of these may read the answers. */
  corsOrigins: readonly string[];
  /** Whose headers tell the address of a client. */
  trustedProxies: readonly string[];
};

const BODY_LIMIT_BYTES = 64 * 1024;
const HEADER_LIMIT_BYTES = 16 * 1024;
/** An id of 128 characters, each written as %XX. */
const MAX_PARAM_CHARS = 3 * 128;
const KEEP_ALIVE_MS = 72_000;
/** For the answer to what is no HTTP to arrive. */
const LINGER_MS = 500;

/**
 * In place of Fastify's own, which are not even loaded. Answers are built by typed functions; the schemas document them, and
 * tests hold the two together.
 */
const COMPILERS = {
  compilersFactory: {
    buildValidator: () => compileValidator as never,
    buildSerializer: () => () => (body: unknown) => JSON.stringify(body),
  },
};

/** Builds the server; the caller listens and closes. */
export async function buildServer(deps: HttpDeps): Promise<FastifyInstance> {
  const app = fastify({
    loggerInstance: deps.log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: REQUEST_ID_FIELD }),
    childLoggerFactory: lazyChild,
    genReqId: requestIdOf,
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: Math.ceil(deps.timeoutMs),
    connectionTimeout: Math.ceil(deps.timeoutMs),
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: 'idle',
    // What comes over an open connection while the server closes is still answered: the ledger closes after it.
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
  handleNodeRefusals(app);
  dropStalledReaders(app);
  endConnectionsOnClose(app);
  rejectEncodedBodies(app);
  requireReceiveRate(app, { bytesPerS: deps.limits.receiveBytesPerS, timeoutMs: deps.timeoutMs });
  app.removeContentTypeParser('text/plain');
  registerProblems(app, deps.errorToProblem);
  addCors(app, deps.corsOrigins);
  const authenticator = new CredentialLock({ ...deps, maxFailures: deps.limits.failedAuthenticationsPerMinute });
  await addLimits(app, { limits: deps.limits, lock: authenticator });
  reportFailedAuthentications(app, (reason) => deps.metrics.counters.authenticationFailed(reason));
  handleUnroutedMethods(app);
  serializeExpensiveRoutes(app);
  limitUnreadResponses(app);
  coalesceResponses(app);

  const admission = new Admission({
    ...deps.limits,
    processBatch: (bodies: readonly TrackBody[]) => deps.submissions.trackBatch(bodies),
    onShed: (what) => deps.metrics.counters.shed(what),
  });
  const feed = new EventFeed({ ...deps, log: logOf(app) });
  const readers = () => feed.readers;
  const { document } = addDocumentation(app, deps.version);
  await app.register(async (open) => {
    registerOperations(open, { ...deps, authenticator, document });
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
    // What the board brings along would make every start slower, also where there is no Redis.
    const { registerQueues } = await import('./routes/queues.ts');
    await app.register(async (board) => registerQueues(board, { ...deps, authenticator, queues }));
  }
  return app;
}

/** Node refuses these two with a bare status: no Host in HTTP/1.1, and an expectation it doesn't know, which may be ignored. */
function handleNodeRefusals(app: FastifyInstance): void {
  app.server.on('checkExpectation', (request, response) => app.routing(request, response));
  app.addHook('onRequest', (request, reply, done) => {
    const hosts = request.raw.headersDistinct.host?.length ?? 0;
    if (hosts === 1 || (hosts === 0 && request.raw.httpVersion !== '1.1')) done();
    else
      sendProblem(reply.header('connection', 'close'), {
        status: 400,
        detail: hosts === 0 ? 'the Host header is missing' : 'there is more than one Host header',
      });
  });
}

/** Nothing here unpacks a body: one that says it is packed would be read otherwise by whoever stands in front of us. */
function rejectEncodedBodies(app: FastifyInstance): void {
  app.addHook('preParsing', ({ headers }, reply, _body, done) => {
    const { 'content-encoding': encoding = 'identity', 'transfer-encoding': transfer = 'chunked' } = headers;
    if (encoding.toLowerCase() === 'identity' && transfer.toLowerCase() === 'chunked') {
      done();
      return;
    }
    const detail = 'the body must come unpacked, without Content-Encoding';
    sendProblem(reply.header('connection', 'close'), { status: 415, detail });
  });
}

/** Closing would wait for connections that never sent a whole request, and for those kept alive by an answer that comes after it. */
function endConnectionsOnClose(app: FastifyInstance): void {
  const silent = new Set<Socket>();
  let closing = false;
  app.server.on('connection', (socket) => {
    silent.add(socket);
    socket.once('close', () => silent.delete(socket));
  });
  app.server.on('request', ({ socket }) => silent.delete(socket));
  app.addHook('preClose', async () => {
    closing = true;
    for (const socket of silent) socket.destroy();
  });
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (closing) reply.header('connection', 'close');
    done();
  });
}

/** A repeated parameter is an array, which no schema takes: nobody guesses which one was meant. */
function parseQuery(text: string): Record<string, string | string[]> {
  if (text === '') return {};
  const parameters = new URLSearchParams(text);
  const names = [...new Set(parameters.keys())];
  return Object.fromEntries(
    names.map((name) => {
      const values = parameters.getAll(name);
      return [name, values.length === 1 ? (values[0] ?? '') : values];
    }),
  );
}

/** What can't be read as HTTP has no request to answer: the problem document goes straight onto the socket. */
function sendUnreadable(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
  const id = randomUUID();
  const body = JSON.stringify(problemBody({ status, detail: 'the request could not be read as HTTP' }, id));
  const headers = {
    ...SECURITY_HEADERS,
    [REQUEST_ID_HEADER]: id,
    'content-type': 'application/problem+json',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} Error\r\n${lines.join('')}\r\n${body}`);
  // Whoever keeps sending would never close it. Not at once: what is unread then costs them the answer.
  const linger = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(linger));
}
