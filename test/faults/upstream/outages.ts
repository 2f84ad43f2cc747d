import type { FaultyUpstream, ResponseFault } from '../support/faulty-upstream.ts';
import { fake, respondWith } from './content-faults.ts';

/** How a whole upstream fails, and the state that dawatch reports. */
export type Outage = {
  begin: (upstream: FaultyUpstream, dns: (code: string) => void) => void;
  reportedAs?: 'down' | 'unauthorized';
};

const toAll = (fault: ResponseFault, reportedAs?: Outage['reportedAs']): Outage => ({
  begin: (upstream) => {
    upstream.aboutAll = fault;
  },
  ...(reportedAs && { reportedAs }),
});
const atConnection = (act: NonNullable<FaultyUpstream['atConnection']>): Outage => ({
  begin: (upstream) => {
    upstream.atConnection = act;
    upstream.hangUp();
  },
  reportedAs: 'down',
});
const nameFails = (code: string): Outage => ({
  begin: (upstream, dns) => {
    dns(code);
    upstream.hangUp();
  },
  reportedAs: 'down',
});
const plain = { 'content-type': 'text/plain' };
const throttle = (retryAfter?: string, date?: string) =>
  toAll(
    respondWith(429, 'Too many requests', {
      ...plain,
      ...(retryAfter !== undefined && { 'retry-after': retryAfter }),
      ...(date && { date }),
    }),
  );
const inSeconds = (date: string, seconds: number) =>
  new Date(Date.parse(date) + seconds * 1_000).toUTCString();
const FAR = 'Fri, 31 Dec 2099 23:59:50 GMT';
const LONG_AGO = 'Thu, 01 Jan 1970 00:00:10 GMT';

export const OUTAGES: Record<string, Outage> = {
  'a name that does not exist': nameFails('ENOTFOUND'),
  'a failing nameserver': nameFails('EAI_AGAIN'),
  'a silent nameserver': nameFails('silent'),
  'connections that are reset': atConnection((socket) => socket.resetAndDestroy()),
  'a handshake that is reset': atConnection((socket) =>
    socket.once('data', () => socket.resetAndDestroy()),
  ),
  'a handshake that is silent': atConnection(() => undefined),
  'HTTP instead of TLS': atConnection((socket) =>
    socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
  ),
  '401 to every request': toAll(respondWith(401, 'Invalid API key', plain), 'unauthorized'),
  '403 to every request': toAll(respondWith(403, '{"error":"Forbidden"}'), 'unauthorized'),
  '429 without Retry-After': throttle(),
  '429 with zero seconds': throttle('0'),
  '429 with negative seconds': throttle('-5'),
  '429 with junk': throttle('soon, or later\u00e9'),
  '429 with more digits than a number can have': throttle('0.'.padEnd(300, '0')),
  '429 with a past date': throttle(inSeconds(LONG_AGO, -5), LONG_AGO),
  '503 with Retry-After': toAll(respondWith(503, '<html>', { 'retry-after': '1' }), 'down'),
  redirects: toAll(respondWith(302, '', { location: 'http://localhost:1/elsewhere' }), 'down'),
  'a response about another id to every request': toAll(
    respondWith(200, () => fake('0c9e2d7a-1111-4222-8333-444455556666')),
    'down',
  ),
  'Record not found to every request': toAll(respondWith(500, '{"error":"Record not found"}')),
};

/** Responses that request a delay of three seconds, each in another form. */
export const WAITS: Record<string, ResponseFault> = {
  seconds: respondWith(429, 'Too many requests', { ...plain, 'retry-after': '3' }),
  'a date by a clock far ahead': respondWith(429, '', {
    'retry-after': inSeconds(FAR, 3),
    date: FAR,
  }),
  'a date by a clock far behind': respondWith(429, '', {
    'retry-after': inSeconds(LONG_AGO, 3),
    date: LONG_AGO,
  }),
};
