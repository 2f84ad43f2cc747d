import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

type Received = {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  /** The local address of the connection. */
  localAddress: string | undefined;
};

/** A response, or an action instead of one: a function has access to the socket. */
export type ScriptedResponse =
  | { status?: number; headers?: OutgoingHttpHeaders; body?: string | Uint8Array }
  | ((exchange: { request: IncomingMessage; response: ServerResponse; socket: Socket }) => void);

type ReceiverOptions = {
  host?: string;
  tls?: { key: string; cert: string };
};

/**
 * A webhook receiver on a free port, closed with its connections when the test ends. Each request
 * gets the next of the given responses, and the last one repeats; without any, every response is an
 * empty 200.
 */
export async function openReceiver(
  script: ScriptedResponse | readonly ScriptedResponse[] = {},
  { host = '127.0.0.1', tls }: ReceiverOptions = {},
) {
  const responses = [script].flat();
  const requests: Received[] = [];
  const open = new Set<Socket>();
  let total = 0;
  const server = tls ? createTlsServer(tls) : createServer();
  // Its client closes idle connections: after a pause of this process, both would at once.
  server.keepAliveTimeout = 0;
  server.on('request', async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return;
    const { method = '', url = '', headers, socket } = request;
    requests.push({ method, path: url, headers, body, localAddress: socket.localAddress });
    const httpResponse = responses[Math.min(requests.length, responses.length) - 1] ?? {};
    if (typeof httpResponse === 'function') return httpResponse({ request, response, socket });
    response.writeHead(httpResponse.status ?? 200, httpResponse.headers).end(httpResponse.body);
  });
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    total += 1;
    socket.on('error', () => undefined).on('close', () => open.delete(socket));
  });
  server.listen(0, host);
  await once(server, 'listening');
  onTestFinished(async () => {
    for (const socket of open) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    port,
    requests,
    /** The number of open connections, and of all connections so far. */
    connections: { open, total: () => total },
  };
}

/** Sends a text byte by byte, repeatedly, until the client disconnects. */
export function drip(socket: Socket, text: string, everyMs = 5): void {
  let at = 0;
  const timer = setInterval(() => socket.write(text[at++ % text.length] ?? ''), everyMs);
  socket.once('close', () => clearInterval(timer));
}

/** A variable, because knip would report a literal as a missing package. */
const OPENSSL = 'openssl';

/** Returns an untrusted certificate for 127.0.0.1; undefined without openssl, but not in CI. */
export function selfSigned(name = 'IP:127.0.0.1'): { key: string; cert: string } | undefined {
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', '-'];
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', `subjectAltName=${name}`];
  try {
    const stdio: ['ignore', 'pipe', 'ignore'] = ['ignore', 'pipe', 'ignore'];
    const pem = execFileSync(OPENSSL, ['req', '-x509', ...curve, ...subject], {
      encoding: 'utf8',
      stdio,
    });
    return { key: pem, cert: pem };
  } catch (error) {
    if (process.env.CI) throw error;
    return undefined;
  }
}
