import type { IncomingMessage } from 'node:http';
import { proxyMatcher, unmapIpv4 } from '../../platform/addresses.ts';
import { type Hop, hopsOfForwarded, hopsOfXForwardedFor } from './forwarded.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** For limits, logs and the audit. "unknown" if the connection is closed. */
    clientAddress: string;
  }
}

/**
 * Returns a function that determines the client address of a request. X-Forwarded-For and Forwarded are used only from a trusted
 * peer, and followed from the nearest hop to the first one that is not trusted. If a hop has no address, the last trusted
 * address counts. If the two headers disagree, the peer's address counts: most proxies set one header and pass on the other,
 * which the client may have forged.
 */
export function clientAddressReader(trustedProxies: readonly string[]): (request: IncomingMessage) => string {
  const isTrusted = proxyMatcher(trustedProxies);

  function follow(peer: string, hops: readonly Hop[] | undefined): string {
    let client = peer;
    for (const hop of hops?.toReversed() ?? []) {
      if (hop === null) return client;
      client = hop;
      if (!isTrusted(hop)) return client;
    }
    return client;
  }

  return ({ socket, headers }) => {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) return 'unknown';
    const peer = unmapIpv4(remoteAddress.replace(/%.*/, ''));
    if (trustedProxies.length === 0 || !isTrusted(peer)) return peer;
    const claimed: string[] = [];
    const { 'x-forwarded-for': xForwardedFor, forwarded } = headers;
    if (xForwardedFor !== undefined) claimed.push(follow(peer, hopsOfXForwardedFor(String(xForwardedFor))));
    if (forwarded !== undefined) claimed.push(follow(peer, hopsOfForwarded(forwarded)));
    const [first = peer, second = first] = claimed;
    return first === second ? first : peer;
  };
}
