import http, { type Server } from 'node:http';
import net from 'node:net';
import { type Duplex, duplexPair } from 'node:stream';
import { Agent, type Dispatcher, Pool } from 'undici';
import type { Machine } from './machine.ts';
import type { Random } from './random.ts';

export type Sent = {
  url: URL;
  body: string;
  headers: Record<string, string>;
  /** Whether the sender has the response or has given up. */
  isOver: () => boolean;
};
/** What a host responds after `delayMs`. `hang`: nothing, ever; `reset`: the connection breaks. */
export type Reply =
  | {
      kind: 'response';
      status: number;
      body: string;
      headers?: Record<string, string>;
      delayMs?: number;
    }
  | { kind: 'hang' }
  | { kind: 'reset' };
export type Host = (sent: Sent) => Reply;
/** undefined: the connection broke, so that it is unknown whether the request was processed. */
export type Received = { status: number; body: string } | undefined;

/**
 * The network of the machine. Requests of the process reach the hosts through undici's own
 * interface, so that all code of dawatch runs; requests to the process reach its HTTP server
 * through streams. There are no sockets.
 */
export class Network {
  /** Servers of connections that the process opens, by host and port. */
  readonly servers = new Map<string, http.Server>();
  /** By origin. */
  readonly hosts = new Map<string, Host>();
  readonly #machine: Machine;
  readonly #random: Random;
  #server: Server | undefined;
  /** Ends the requests in flight, which a kill breaks off. */
  readonly #open = new Set<() => void>();

  constructor(machine: Machine, random: Random) {
    this.#machine = machine;
    this.#random = random;
    const network = this;
    const dispatch = function (
      this: Pool | Agent,
      options: Dispatcher.DispatchOptions,
      handler: Dispatcher.DispatchHandler,
    ) {
      const origin = String(options.origin ?? originOf(this));
      network.#send(new URL(options.path, origin), options, handler);
      return true;
    };
    Pool.prototype.dispatch = dispatch;
    Agent.prototype.dispatch = dispatch;
    Object.assign(net.Server.prototype, {
      listen(this: Server) {
        network.#server = this;
        process.nextTick(() => this.emit('listening'));
        return this;
      },
      address: () => ({ address: '127.0.0.1', port: 80, family: 'IPv4' }),
    });
    // Connectors of undici open connections with it.
    Object.assign(net, {
      connect: ({ host, port }: { host: string; port: number }) => this.#connect(`${host}:${port}`),
    });
    machine.onKilled(() => {
      for (const end of [...this.#open]) end();
      this.#server?.close();
      this.#server = undefined;
    });
  }

  #send(url: URL, options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    const machine = this.#machine;
    let isOver = false;
    const end = () => {
      isOver = true;
      this.#open.delete(end);
    };
    this.#open.add(end);
    const fail = (error: Error) => {
      if (isOver) return;
      end();
      handler.onResponseError?.(controller, error);
    };
    const controller = {
      abort: (error?: Error) => fail(error ?? new Error('aborted')),
      pause() {},
      resume() {},
      paused: false,
      aborted: false,
      reason: null,
      rawHeaders: [],
    } as unknown as Dispatcher.DispatchController;
    handler.onRequestStart?.(controller, {});
    if (!machine.survives()) return;
    const host = this.hosts.get(url.origin);
    const sent = {
      url,
      body: String(options.body ?? ''),
      headers: options.headers as Record<string, string>,
      isOver: () => isOver,
    };
    const reply: Reply = host?.(sent) ?? { kind: 'reset' };
    if (!machine.survives() || reply.kind === 'hang') return;
    const delayMs =
      (reply.kind === 'response' ? (reply.delayMs ?? 0) : 0) + this.#random.between(1, 80);
    machine.after(delayMs, () => {
      if (isOver || !machine.survives()) return;
      if (reply.kind !== 'response')
        return fail(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }));
      end();
      const headers = { date: new Date(machine.now).toUTCString(), ...reply.headers };
      handler.onResponseStart?.(controller, reply.status, headers);
      handler.onResponseData?.(controller, Buffer.from(reply.body));
      handler.onResponseEnd?.(controller, {});
    });
  }

  /** Opens a connection of the process. */
  #connect(address: string): net.Socket {
    const machine = this.#machine;
    const server = this.servers.get(address);
    const [near, far] = duplexPair().map(asSocket) as [net.Socket, net.Socket];
    const breakOff = () => {
      this.#open.delete(breakOff);
      near.destroy();
      far.destroy();
    };
    near.on('close', breakOff);
    far.on('close', breakOff);
    near.on('error', () => {});
    far.on('error', () => {});
    this.#open.add(breakOff);
    machine.after(this.#random.between(1, 80), () => {
      if (near.destroyed || !machine.survives()) return;
      if (server === undefined) near.destroy(new Error('connect ECONNREFUSED'));
      else {
        server.emit('connection', far);
        near.emit('connect');
      }
    });
    return near;
  }

  /** Sends a request to the server of the process. */
  call(method: string, path: string, token: string, body?: unknown): Promise<Received> {
    const server = this.#server;
    if (!server || !this.#machine.isAlive) return Promise.resolve(undefined);
    const [near, far] = duplexPair();
    const connection = {
      remoteAddress: '127.0.0.1',
      setTimeout: () => far,
      setNoDelay() {},
      setKeepAlive() {},
    };
    server.emit('connection', Object.assign(far, connection));
    return new Promise((resolve) => {
      const end = (received: Received) => {
        this.#open.delete(breakOff);
        resolve(received);
      };
      const breakOff = () => end(undefined);
      this.#open.add(breakOff);
      const text = body === undefined ? '' : JSON.stringify(body);
      const type = {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
      };
      const request = http.request({
        method,
        path,
        headers: {
          host: 'dawatch',
          authorization: `Bearer ${token}`,
          ...(body !== undefined && type),
        },
        createConnection: () => near as net.Socket,
      });
      request.on('error', breakOff);
      request.on('response', (response) => {
        let received = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          received += chunk;
        });
        response.on('end', () => {
          if (this.#machine.survives()) end({ status: response.statusCode ?? 0, body: received });
          near.destroy();
          far.destroy();
        });
      });
      request.end(text);
    });
  }
}

/** Adds what a stream lacks of the interface of a socket. */
function asSocket(stream: Duplex): net.Socket {
  const ignore = () => stream;
  const missing = { setTimeout: ignore, setNoDelay: ignore, setKeepAlive: ignore };
  return Object.assign(stream, missing) as unknown as net.Socket;
}

/** A pool has its origin under a symbol. */
function originOf(dispatcher: object): string {
  const symbol = Object.getOwnPropertySymbols(dispatcher).find(
    ({ description }) => description === 'url',
  );
  return String((dispatcher as Record<symbol, unknown>)[symbol as symbol]);
}
