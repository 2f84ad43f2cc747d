import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from 'fastify';
import { validatorCompiler } from 'fastify-type-provider-zod';
import type { UpstreamPacing } from '../monitor/monitor.ts';
import type { Clock } from '../monitor/ports.ts';
import { requireRole } from './access.ts';
import { registerAudit } from './audit.ts';
import { addCors } from './cors.ts';
import { registerDeliveries } from './deliveries.ts';
import { registerEvents } from './events.ts';
import { addLimits, type LimitSettings } from './limits.ts';
import { registerMetrics } from './metrics.ts';
import { addOpenapi, registerDocs } from './openapi.ts';
import { registerOperations } from './operations.ts';
import { registerPacing } from './pacing.ts';
import type {
  Audit,
  Credentials,
  Deliveries,
  ErrorMeaning,
  EventLog,
  Health,
  SubmissionInfo,
  Submissions,
  Users,
  Webhooks,
} from './ports.ts';
import { answerUnroutable, problemBody, registerProblems, sendProblem } from './problems.ts';
import type { Queues } from './queues.ts';
import { addSecurityHeaders, SECURITY_HEADERS } from './security-headers.ts';
import { registerSubmissionInfo } from './submission-info.ts';
import { registerSubmissions } from './submissions.ts';
import { registerUsers } from './users.ts';
import { registerWebhooks } from './webhooks.ts';

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
  health: () => Health;
  pacing: () => UpstreamPacing[];
  /** Undefined: there are none. */
  queues?: Queues | undefined;
  credentials: Credentials;
  meaningOf: ErrorMeaning;
  log: FastifyBaseLogger;
  version: string;
  limits: LimitSettings;
  /** Pages of these may read the answers. */
  corsOrigins: readonly string[];
};

const BODY_LIMIT_BYTES = 64 * 1024;
const HEADER_LIMIT_BYTES = 16 * 1024;
/** An id of 128 characters, each written as %XX. */
const MAX_PARAM_CHARS = 3 * 128;
/** From the first byte of a request to its last; not the answer, which may wait for finality. */
const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_MS = 72_000;

/** Builds the server; the caller listens and closes. */
export async function buildServer(deps: HttpDeps): Promise<FastifyInstance> {
  const app = fastify({
    loggerInstance: deps.log,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: 'idle',
    // What comes over an open connection while the server closes is still answered: the ledger closes after it.
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAM_CHARS, querystringParser: parseQuery },
    http: { maxHeaderSize: HEADER_LIMIT_BYTES, requireHostHeader: false },
    clientErrorHandler: answerUnreadable,
    frameworkErrors: answerUnroutable,
  });
  addSecurityHeaders(app);
  answerWhatNodeWould(app);
  endConnectionsOnClose(app);
  app.removeContentTypeParser('text/plain');
  app.setValidatorCompiler(validatorCompiler);
  // Answers are built by typed functions; the schemas document them, and tests hold the two together.
  app.setSerializerCompiler(() => (body) => JSON.stringify(body));
  registerProblems(app, deps.meaningOf);
  addCors(app, deps.corsOrigins);
  await addLimits(app, deps);

  await addOpenapi(app, deps.version);
  await app.register(registerDocs);
  await app.register(async (open) => {
    registerOperations(open, deps);
    registerMetrics(open, deps);
  });
  await app.register(async (guarded) => {
    guarded.addHook('onRequest', requireRole(deps.credentials, ['service', 'admin']));
    registerSubmissions(guarded, deps);
    registerSubmissionInfo(guarded, deps);
    registerEvents(guarded, deps);
    registerPacing(guarded, deps);
  });
  await app.register(async (lookups) => registerUsers(lookups, deps));
  await app.register(async (guarded) => {
    guarded.addHook('onRequest', requireRole(deps.credentials, ['admin']));
    registerAudit(guarded, deps);
    registerWebhooks(guarded, deps);
    registerDeliveries(guarded, deps);
  });
  const { queues } = deps;
  if (queues) {
    // What the board brings along would make every start slower, also where there is no Redis.
    const { registerQueues } = await import('./queues.ts');
    await app.register(async (board) => registerQueues(board, { ...deps, queues }));
  }
  return app;
}

/** Node refuses these two with a bare status: no Host in HTTP/1.1, and an expectation it doesn't know, which may be ignored. */
function answerWhatNodeWould(app: FastifyInstance): void {
  app.server.on('checkExpectation', (request, response) => app.routing(request, response));
  app.addHook('onRequest', async (request, reply) => {
    if (request.headers.host !== undefined || request.raw.httpVersion !== '1.1') return undefined;
    return sendProblem(reply, { status: 400, detail: 'the Host header is missing' });
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
  app.addHook('onSend', async (_request, reply) => {
    if (closing) reply.header('connection', 'close');
  });
}

/** A repeated parameter is an array, which no schema takes: nobody guesses which one was meant. */
function parseQuery(text: string): Record<string, string | string[]> {
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
function answerUnreadable(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
  const body = JSON.stringify(problemBody({ status, detail: 'the request could not be read as HTTP' }, randomUUID()));
  const headers = {
    ...SECURITY_HEADERS,
    'content-type': 'application/problem+json',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} Error\r\n${lines.join('')}\r\n${body}`);
}
