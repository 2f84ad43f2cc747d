import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { UpstreamClient, type UpstreamClientOptions } from '../../../src/polling/upstreams.ts';
import { HeldClock } from '../virtual-time/virtual-clock.ts';
import { freePort } from './free-port.ts';

export const KEY = 'a-key-that-must-stay-secret';

type Served = {
  url: string;
  requests: IncomingMessage[];
  /** The number of open connections, of all connections so far, and of concurrent ones at most. */
  sockets: { open: Set<Socket>; total: number; maxOpen: number };
};

/** An HTTP server on a free port; closed with its connections when the test ends. */
export async function serve(respond: RequestListener): Promise<Served> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    respond(request, response);
  });
  return { requests, ...(await listening(server)) };
}

/** A TCP server without HTTP; the callback handles each connection. */
export async function serveRaw(
  connected: (socket: Socket) => void,
): Promise<Omit<Served, 'requests'>> {
  return listening(createTcpServer(connected));
}

/** Returns the URL of a closed port. */
export async function deadAddress(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`;
}

async function listening(
  server: ReturnType<typeof createTcpServer>,
): Promise<Omit<Served, 'requests'>> {
  const sockets = { open: new Set<Socket>(), total: 0, maxOpen: 0 };
  server.on('connection', (socket: Socket) => {
    sockets.open.add(socket);
    sockets.total += 1;
    sockets.maxOpen = Math.max(sockets.maxOpen, sockets.open.size);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.open.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    for (const socket of sockets.open) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets };
}

/** A client for this address; closed when the test ends. */
export function openClient(
  url: string,
  options: Partial<UpstreamClientOptions> = {},
): UpstreamClient {
  const client = new UpstreamClient({
    url,
    apiKey: KEY,
    version: '1.2.3',
    connections: 4,
    timeoutMs: 10_000,
    clock: new HeldClock(1_000),
    ...options,
  });
  onTestFinished(() => client.close());
  return client;
}
