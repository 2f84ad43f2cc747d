import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';

export const GENESIS = `0x${'9'.repeat(64)}`;
const METHOD_NOT_FOUND = { code: -32_601, message: 'Method not found' };

/** The result of a method, or an error; undefined: no response. */
type Respond = (method: string, params: unknown[]) => { result: unknown } | { error: unknown };
type NodeOptions = {
  /** Responds to methods instead of the usual node. */
  respond?: Respond | 'never';
  /** Number of the block that it announces at the beginning of a subscription; null: none. */
  head?: number | null;
  /** Called with each new connection. */
  onConnect?: (socket: WebSocket) => void;
  /** Called after the response to the subscription. */
  onSubscribe?: (socket: WebSocket) => void;
  tls?: { key: string; cert: string };
};

/** The responses of a node of a chain. */
export function usualNode(method: string): { result: unknown } | { error: unknown } {
  if (method === 'system_chain') return { result: 'Test Chain' };
  if (method === 'chain_getBlockHash') return { result: GENESIS };
  if (method === 'chain_subscribeFinalizedHeads') return { result: 'a-subscription' };
  return { error: METHOD_NOT_FOUND };
}

/** A header as Avail's nodes send it. `fork`: a digit for another block. */
export function header(number: unknown, fork = 'a') {
  const hash = `0x${fork.repeat(64)}`;
  const roots = { parentHash: hash, stateRoot: hash, extrinsicsRoot: hash };
  return { ...roots, number, digest: { logs: [] }, extension: { V3: { rows: 1 } } };
}

/** A node of a chain on a free port, until the test ends. */
export async function openNode({
  respond = usualNode,
  head = 1,
  onConnect,
  onSubscribe,
  tls,
}: NodeOptions = {}) {
  const http: Server = tls ? createTlsServer(tls) : createServer();
  const server = new WebSocketServer({ server: http });
  const requests: IncomingHttpHeaders[] = [];
  const methods: string[] = [];
  let subscriber: WebSocket | undefined;
  server.on('connection', (socket, { headers }) => {
    requests.push(headers);
    socket.on('error', () => undefined);
    onConnect?.(socket);
    socket.on('message', (data) => {
      const { id, method, params } = JSON.parse(String(data));
      methods.push(method);
      if (respond === 'never') return;
      socket.send(JSON.stringify({ jsonrpc: '2.0', id, ...respond(method, params) }));
      if (method !== 'chain_subscribeFinalizedHeads') return;
      subscriber = socket;
      if (head !== null) announce(socket, head);
      onSubscribe?.(socket);
    });
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  onTestFinished(async () => {
    for (const socket of server.clients) socket.terminate();
    http.closeAllConnections();
    http.close();
    await once(http, 'close');
  });
  const { port } = http.address() as AddressInfo;
  return {
    url: `${tls ? 'wss' : 'ws'}://127.0.0.1:${port}`,
    host: `127.0.0.1:${port}`,
    /** The headers of all connections. */
    requests,
    /** The methods of all calls. */
    methods,
    /** Announces a block to the newest subscription. */
    announce(number: unknown, fork?: string): void {
      announce(subscriber, number, fork);
    },
    disconnect(): void {
      subscriber?.terminate();
    },
  };
}

export function announce(socket: WebSocket | undefined, number: unknown, fork?: string): void {
  const params = { subscription: 'a-subscription', result: header(number, fork) };
  socket?.send(JSON.stringify({ jsonrpc: '2.0', method: 'chain_finalizedHead', params }));
}
