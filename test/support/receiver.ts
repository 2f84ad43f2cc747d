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
  /** The address it was sent to. */
  localAddress: string | undefined;
};

/** What is answered, or what is done instead: a function may use the socket as it likes. */
export type ScriptedResponse =
  | { status?: number; headers?: OutgoingHttpHeaders; body?: string | Uint8Array }
  | ((exchange: { request: IncomingMessage; response: ServerResponse; socket: Socket }) => void);

type ReceiverOptions = {
  host?: string;
  tls?: { key: string; cert: string };
};

/**
 * A server on a free port that gets webhooks, gone with its connections when the test ends. Of several answers each
 * request gets the next one, and the last one is for all that follow; without any, it is 200 and nothing more.
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
    /** Connections that are open now, and how many there ever were. */
    connections: { open, total: () => total },
  };
}

/** Sends a text byte by byte, and then begins anew, until nobody listens any more. */
export function drip(socket: Socket, text: string, everyMs = 5): void {
  let at = 0;
  const timer = setInterval(() => socket.write(text[at++ % text.length] ?? ''), everyMs);
  socket.once('close', () => clearInterval(timer));
}

/** Not in the call itself: knip would ask for a package that brings it. */
const OPENSSL = 'openssl';

/** A certificate, for 127.0.0.1, that nobody trusts; undefined where there is no openssl to make one. */
export function selfSigned(name = 'IP:127.0.0.1'): { key: string; cert: string } | undefined {
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', '-'];
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', `subjectAltName=${name}`];
  try {
    const stdio: ['ignore', 'pipe', 'ignore'] = ['ignore', 'pipe', 'ignore'];
    const pem = execFileSync(OPENSSL, ['req', '-x509', ...curve, ...subject], { encoding: 'utf8', stdio });
    return { key: pem, cert: pem };
  } catch {
    return undefined;
  }
}
