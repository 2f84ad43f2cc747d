import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';

const HOUR_MS = 3_600_000;

export type Hostility = (exchange: {
  request: IncomingMessage;
  response: ServerResponse;
  socket: Socket;
  /** Epoch milliseconds of virtual time. */
  now: number;
  /** The number of earlier requests with this event. */
  before: number;
  /** Counts the event as received, whatever the response. */
  take: () => void;
  /** Counts the event as received, and sends this response. */
  accept: (response?: { headers?: Record<string, string>; body?: Uint8Array | string }) => void;
  /** Sends nothing more until the sender gives up. */
  park: () => void;
}) => void;

const isUp = (now: number) => Math.floor(now / HOUR_MS) % 2 === 0;
const bomb = gzipSync(Buffer.alloc(20_000_000));
const chunk = 'x'.repeat(65_536);
const httpDate = (ms: number) => new Date(ms).toUTCString();

/** The behavior of hostile receivers, by name. */
export const HOSTILITIES: Record<string, Hostility> = {
  hangs: ({ park }) => park(),
  drips: ({ socket, park }) => {
    socket.write('HTTP/1.1 200 OK\r\nx-drip: ');
    park();
  },
  resets: ({ socket }) => socket.resetAndDestroy(),
  disconnects: ({ socket }) => socket.destroy(),
  'does not speak HTTP': ({ socket }) => socket.end('220 mail ESMTP\r\n'),
  'fails with 500': ({ response }) => response.writeHead(500).end('fault'),
  'is gone': ({ response }) => response.writeHead(410).end(),
  'redirects inwards': ({ response }) =>
    response.writeHead(307, { location: 'http://127.0.0.2:1/admin' }).end(),
  'requests a pause in seconds': ({ response, before, accept }) =>
    before > 0 ? accept() : response.writeHead(429, { 'retry-after': '90' }).end(),
  'requests a pause by a date': ({ response, now, before, accept }) => {
    const headers = { date: httpDate(now), 'retry-after': httpDate(now + 120_000) };
    return before > 0 ? accept() : response.writeHead(503, headers).end();
  },
  'accepts with a response of 100 MB': ({ response, socket, take }) => {
    take();
    response.writeHead(200);
    let sent = 0;
    const more = () => {
      while (sent < 1e8 && !socket.destroyed && response.write(chunk)) sent += chunk.length;
    };
    response.on('drain', more);
    more();
  },
  'accepts with a gzip bomb': ({ accept }) =>
    accept({ headers: { 'content-encoding': 'gzip' }, body: bomb }),
  'works every other hour': ({ socket, now, accept }) =>
    isUp(now) ? accept() : socket.resetAndDestroy(),
};

/**
 * Its name resolves to a private address every other hour; a receiver listens on that address, too.
 */
export const TURNS_PRIVATE = 'turns private';
export const SELF_SIGNED = 'has an untrusted certificate';

export function addressOf(host: string, now: number): string {
  return host === 'turns-private.test' && !isUp(now) ? '127.0.0.2' : '127.0.0.1';
}
