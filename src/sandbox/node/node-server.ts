import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { type WebSocket, WebSocketServer } from 'ws';
import { createClock } from '../clock.ts';
import type { SandboxContext } from '../context.ts';
import { createChainNode } from './chain-node.ts';
import { type Methods, respond } from './json-rpc.ts';
import type { NodeFault } from './node-faults.ts';

const MAX_MESSAGE_BYTES = 1024 * 1024;
/** Most heads that a subscription receives at once. */
const MAX_HEADS = 1_000;
/** Longest time without reading the clock again. */
const MAX_WAIT_MS = 60_000;
/** Code with which a server that goes away closes a connection. */
const GOING_AWAY = 1001;

/** `number`: of the newest head that was sent; `held`: of one that will be sent after the next. */
type Subscription = { number: number; held: number | undefined };
type Connection = {
  socket: WebSocket;
  subscriptions: Map<string, Subscription>;
  cancelClosing: () => void;
};

export type NodeServer = ReturnType<typeof createNodeServer>;

/**
 * Returns the interface of a node of the chain: JSON-RPC 2.0 over WebSocket, and without
 * subscriptions over HTTP.
 */
export function createNodeServer({
  options,
  model,
  now,
  after,
}: Pick<SandboxContext, 'options' | 'model' | 'now' | 'after'>) {
  const clock = createClock(options);
  let fault: NodeFault = { kind: options.nodeFault, seconds: options.nodeFaultS };
  const node = createChainNode({ seed: options.seed, model, clock, now, fault: () => fault });
  const server = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE_BYTES });
  const connections = new Set<Connection>();
  let cancelTimer: (() => void) | undefined;

  function open(socket: WebSocket): void {
    const connection: Connection = {
      socket,
      subscriptions: new Map(),
      cancelClosing: () => {},
    };
    connections.add(connection);
    closeIfFaulty(connection);
    const methods = listed({ ...node.methods, ...subscriptionMethods(connection) });
    socket.on('message', (data) => {
      const response = respond(String(data), methods);
      if (response !== undefined) socket.send(response);
      announce();
    });
    // A connection with an error is closed next.
    socket.on('error', () => {});
    socket.on('close', () => {
      connection.cancelClosing();
      connections.delete(connection);
      announce();
    });
  }

  function subscriptionMethods({ subscriptions }: Connection): Methods {
    return {
      chain_subscribeFinalizedHeads() {
        const id = randomBytes(8).toString('hex');
        subscriptions.set(id, { number: node.heights().final - 1, held: undefined });
        return id;
      },
      chain_unsubscribeFinalizedHeads: ([id]) => subscriptions.delete(String(id)),
    };
  }

  /** Sends the heads that are due, and waits for the next if there is a subscription. */
  function announce(): void {
    cancelTimer?.();
    cancelTimer = undefined;
    const isFollowed = [...connections].some(({ subscriptions }) => subscriptions.size > 0);
    if (!isFollowed || fault.kind === 'silent') return;
    const { final, nextFinalMs } = node.heights();
    for (const { socket, subscriptions } of connections)
      for (const [id, subscription] of subscriptions)
        for (const number of takeDue(subscription, final)) send(socket, id, number);
    cancelTimer = after(Math.min(MAX_WAIT_MS, Math.max(0, nextFinalMs - now())), announce);
  }

  /** Returns the numbers of the heads to send now, in order. */
  function takeDue(subscription: Subscription, final: number): number[] {
    const from = Math.max(subscription.number, final - MAX_HEADS) + 1;
    const due = Array.from({ length: Math.max(0, final + 1 - from) }, (_, index) => from + index);
    subscription.number = Math.max(subscription.number, final);
    if (fault.kind === 'duplicate') return due.flatMap((number) => [number, number]);
    if (fault.kind === 'skipping') return due.filter((number) => number % 3 === 0);
    return fault.kind === 'disordered' ? swapped(subscription, due) : due;
  }

  function send(socket: WebSocket, subscription: string, number: number): void {
    const params = { subscription, result: node.headerOf(number) };
    socket.send(JSON.stringify({ jsonrpc: '2.0', method: 'chain_finalizedHead', params }));
  }

  function closeIfFaulty(connection: Connection): void {
    connection.cancelClosing();
    if (fault.kind !== 'closing') return;
    connection.cancelClosing = after(clock.seconds(fault.seconds), () =>
      connection.socket.close(GOING_AWAY),
    );
  }

  return {
    /** Answers a request for a WebSocket. */
    upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
      if (request.url === '/') server.handleUpgrade(request, socket, head, open);
      else socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
    },
    /** Returns the response to a message without a connection. */
    respond: (text: string) => respond(text, listed(node.methods)),
    setFault(ordered: NodeFault): void {
      fault = ordered;
      for (const connection of connections) closeIfFaulty(connection);
      announce();
    },
    /** Ends all connections. */
    close(): void {
      cancelTimer?.();
      for (const { socket, cancelClosing } of connections) {
        cancelClosing();
        socket.terminate();
      }
    },
  };
}

/** Serves the node at `/`: WebSocket and POST. */
export function addNode(app: FastifyInstance, node: NodeServer): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) =>
      done(null, body),
    );
    scope.post('/', async (request, reply) =>
      reply.type('application/json').send(node.respond(String(request.body ?? '')) ?? ''),
    );
  });
  app.server.on('upgrade', (request, socket, head) => node.upgrade(request, socket, head));
  app.addHook('preClose', async () => node.close());
}

/** Sends each second head before the one that precedes it. */
function swapped(subscription: Subscription, due: readonly number[]): number[] {
  return due.flatMap((number) => {
    const { held } = subscription;
    subscription.held = held === undefined ? number : undefined;
    return held === undefined ? [] : [number, held];
  });
}

/** Adds the method that lists the methods. */
function listed(methods: Methods): Methods {
  return { ...methods, rpc_methods: () => ({ methods: [...Object.keys(methods), 'rpc_methods'] }) };
}
