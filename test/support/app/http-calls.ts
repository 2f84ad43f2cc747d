import { type Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'vitest';
import type { z } from 'zod';
import { problemSchema } from '../../../src/http/problems.ts';
import {
  submissionListSchema,
  submissionSchema,
  submissionWithHistorySchema,
  trackedSchema,
} from '../../../src/submissions/submission-body.ts';
import { API_KEY } from './running-app.ts';

export type HttpResponse = { status: number; headers: IncomingHttpHeaders; text: string };

type Call = {
  method?: string;
  headers?: OutgoingHttpHeaders;
  /** Sent unchanged if it is text or bytes, otherwise as JSON. */
  body?: unknown;
  signal?: AbortSignal;
  /** The local address of the connection. */
  localAddress?: string;
  /** Keeps the connection for the next request; by default each request has its own. */
  agent?: Agent;
};

/**
 * Sends one HTTP request with the service key. The path is sent as written: fetch would resolve
 * ".." in it.
 */
export function call(
  url: string,
  path: string,
  { method = 'GET', headers = {}, body, signal, localAddress, agent }: Call = {},
) {
  return new Promise<HttpResponse>((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const isJson = body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array);
    const sent = isJson ? JSON.stringify(body) : (body as string | Uint8Array | undefined);
    const outgoing = request({
      hostname,
      port,
      path,
      method,
      agent: agent ?? false,
      ...(signal && { signal }),
      ...(localAddress !== undefined && { localAddress }),
      headers: {
        'x-api-key': API_KEY,
        ...(sent !== undefined && {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(sent),
        }),
        ...headers,
      },
    });
    outgoing.on('error', reject);
    outgoing.on('response', async (response) => {
      const body = await text(response).catch(reject);
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text: body ?? '' });
    });
    outgoing.end(sent);
  });
}

export function post(
  url: string,
  body: unknown,
  headers: OutgoingHttpHeaders = {},
): Promise<HttpResponse> {
  return call(url, '/v1/submissions', { method: 'POST', body, headers });
}

export function pathOf(submissionId: string): string {
  return `/v1/submissions/${encodeURIComponent(submissionId)}`;
}

/**
 * Returns everything that a raw connection receives. Node drops the response to a client that ends
 * its side before.
 */
export function sendRaw(url: string, bytes: string | Uint8Array): Promise<string> {
  return new Promise((resolve) => {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    let received = '';
    socket.setEncoding('latin1').on('data', (chunk) => {
      received += chunk;
      if (isComplete(received)) socket.end();
    });
    // The server may close it while the client is still writing.
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(received));
    socket.write(bytes);
  });
}

function isComplete(response: string): boolean {
  const [head = '', ...body] = response.split('\r\n\r\n');
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  return body.length > 0 && length !== undefined && body.join('\r\n\r\n').length >= Number(length);
}

/** Made once, because the first use of a schema compiles it. */
const strict = {
  problem: problemSchema.strict(),
  tracked: trackedSchema.strict(),
  submission: submissionSchema.strict(),
  details: submissionWithHistorySchema.strict(),
  list: submissionListSchema.strict(),
};

/** Parses a problem document, field by field. */
export function problemOf({ status, headers, text }: HttpResponse): z.output<typeof problemSchema> {
  expect(headers['content-type']).toBe('application/problem+json');
  const problem = strict.problem.parse(JSON.parse(text));
  expect(problem.status).toBe(status);
  expect(text).not.toMatch(/\\n\s*at .+:\d+:\d+|node_modules/);
  return problem;
}

/**
 * Parse the responses of the routes, which must have the documented status and shape without
 * further fields.
 */
export const trackedOf = (response: HttpResponse) => parse(response, 202, strict.tracked);
export const submissionOf = (response: HttpResponse) => parse(response, 200, strict.submission);
export const detailsOf = (response: HttpResponse) => parse(response, 200, strict.details);
export const listOf = (response: HttpResponse) => parse(response, 200, strict.list);

export function parse<S extends z.ZodType>(
  response: HttpResponse,
  status: number,
  schema: S,
): z.output<S> {
  expect(response, response.text.slice(0, 500)).toMatchObject({ status });
  expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
  return schema.parse(JSON.parse(response.text));
}
