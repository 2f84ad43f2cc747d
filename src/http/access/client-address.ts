import type { IncomingMessage } from 'node:http';
import { proxyMatcher, unmapIpv4 } from '../../platform/addresses.ts';
import { type Hop, hopsOfForwarded, hopsOfXForwardedFor } from './forwarded.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** For limits, logs and the audit. "unknown" if the connection is gone. */
    clientAddress: string;
  }
}

/**
 * Reads the address of a request's client. Only a trusted peer is believed: its X-Forwarded-For or Forwarded is followed from
 * the nearest hop to the first that is not trusted. If it carries both and they disagree, one of them comes from the
 * client, as most proxies set one and pass on the other: then, as where a hop names no address, the last trusted address counts.
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
    const told: string[] = [];
    const { 'x-forwarded-for': xForwardedFor, forwarded } = headers;
    if (xForwardedFor !== undefined) told.push(follow(peer, hopsOfXForwardedFor(String(xForwardedFor))));
    if (forwarded !== undefined) told.push(follow(peer, hopsOfForwarded(forwarded)));
    const [first = peer, second = first] = told;
    return first === second ? first : peer;
  };
}
