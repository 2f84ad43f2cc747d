import { isIP } from 'node:net';
import { type ConnectionCause, causeOf } from '../../lib/connection-error.ts';
import {
  type AddressGuard,
  createLookup,
  guardedConnector,
  type LookupAll,
} from '../../notifications/transport/address-guard.ts';

export type ConnectionCheck =
  | { kind: 'reached' }
  /** `error`: one sentence without the URL or an address. */
  | { kind: 'not_reached'; cause: ConnectionCause; error: string };

/** Connector protocol and default port by URL protocol. */
const PROTOCOLS: Record<string, { connectAs: 'http:' | 'https:'; port: string } | undefined> = {
  'http:': { connectAs: 'http:', port: '80' },
  'https:': { connectAs: 'https:', port: '443' },
  'smtp:': { connectAs: 'http:', port: '587' },
  'smtps:': { connectAs: 'https:', port: '465' },
};

/**
 * Establishes a connection to a URL, including TLS, and closes it without sending anything. Never
 * rejects.
 */
export async function reach(
  url: string,
  options: {
    guard: AddressGuard;
    timeoutMs: number;
    signal: AbortSignal;
    /** Default: the hosts file and DNS. */
    lookup?: LookupAll;
  },
): Promise<ConnectionCheck> {
  const { guard, timeoutMs, signal, lookup = createLookup() } = options;
  const target = URL.parse(url);
  const protocol = target && PROTOCOLS[target.protocol];
  if (!target || !protocol)
    return { kind: 'not_reached', cause: 'other', error: 'the URL is invalid' };
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const connect = guardedConnector({ guard, timeoutMs, signal: limit, lookup });
  const hostname = target.hostname.replace(/^\[(.*)\]$/, '$1');
  const { connectAs, port } = protocol;
  try {
    await new Promise<void>((resolve, reject) => {
      const late = () => reject(Object.assign(new Error('late'), { code: 'ETIMEDOUT' }));
      limit.addEventListener('abort', late, { once: true });
      if (limit.aborted) late();
      const to = { hostname, host: target.host, protocol: connectAs, port: target.port || port };
      connect(isIP(hostname) ? to : { ...to, servername: hostname }, (error, socket) => {
        limit.removeEventListener('abort', late);
        socket?.destroy();
        if (error) reject(error);
        else resolve();
      });
    });
    return { kind: 'reached' };
  } catch (error) {
    const { cause, sentence } = causeOf(error);
    return { kind: 'not_reached', cause, error: sentence };
  }
}
