import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import swagger from '@fastify/swagger';
import { type FastifyBaseLogger, type FastifyInstance, fastify } from 'fastify';
import { jsonSchemaTransform, validatorCompiler } from 'fastify-type-provider-zod';
import { requireCredential } from './access.ts';
import { registerOperations } from './operations.ts';
import type { Credentials, ErrorMeaning, Health, Submissions } from './ports.ts';
import { problemBody, registerProblems } from './problems.ts';
import { registerSubmissions } from './submissions.ts';

export type HttpDeps = {
  submissions: Submissions;
  health: () => Health;
  credentials: Credentials;
  meaningOf: ErrorMeaning;
  log: FastifyBaseLogger;
  version: string;
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
    disableRequestLogging: true,
    genReqId: () => randomUUID(),
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: MAX_PARAM_CHARS, querystringParser: parseQuery },
    http: { maxHeaderSize: HEADER_LIMIT_BYTES },
    clientErrorHandler: answerUnreadable,
  });
  app.setValidatorCompiler(validatorCompiler);
  // Answers are built by typed functions; the schemas document them, and tests hold the two together.
  app.setSerializerCompiler(() => (body) => JSON.stringify(body));
  registerProblems(app, deps.meaningOf);

  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'dawatch',
        version: deps.version,
        description: 'Watches data-availability submissions until they are final.',
      },
      components: {
        securitySchemes: {
          apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
          bearer: { type: 'http', scheme: 'bearer' },
        },
      },
      security: [{ apiKey: [] }, { bearer: [] }],
    },
    transform: jsonSchemaTransform,
  });
  await app.register(async (open) => registerOperations(open, deps));
  await app.register(async (guarded) => {
    guarded.addHook('onRequest', requireCredential(deps.credentials));
    registerSubmissions(guarded, deps);
  });
  return app;
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
  const head = `HTTP/1.1 ${status} Error\r\ncontent-type: application/problem+json\r\ncontent-length: ${Buffer.byteLength(body)}`;
  socket.end(`${head}\r\nconnection: close\r\n\r\n${body}`);
}
