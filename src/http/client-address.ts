import type { IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';
import { canonicalAddress, type Hop, hopsOfForwarded, hopsOfXForwardedFor, withoutMapping } from './forwarded.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** For limits, logs and the audit. "unknown" if the connection is gone. */
    clientAddress: string;
  }
}

type Range = { address: string; bits: number };

const NAMED: Record<string, readonly string[]> = {
  loopback: ['127.0.0.0/8', '::1'],
  private: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
};

/** Why this is no entry of `server.trusted_proxies`; undefined: it is one. */
export function refusalOfProxy(entry: string): string | undefined {
  if (Object.hasOwn(NAMED, entry)) return undefined;
  const range = rangeOf(entry);
  if (!range) return 'must be an IP address, a range like 10.0.0.0/8 or fd00::/8, loopback, or private';
  // With everybody trusted, whoever calls chooses the address that is believed.
  return range.bits === 0 ? 'must be a range of some addresses: name the proxies, not everybody' : undefined;
}

/**
 * Reads the address of a request's client. Only a trusted peer is believed: its X-Forwarded-For or Forwarded is followed from
 * the nearest hop to the first that is not trusted. If it carries both and they disagree, one of them comes from the
 * client, as most proxies set one and pass on the other: then, as where a hop names no address, the last trusted address counts.
 */
export function clientAddressReader(trustedProxies: readonly string[]): (request: IncomingMessage) => string {
  const trusted = new BlockList();
  for (const entry of trustedProxies.flatMap((name) => NAMED[name] ?? [name])) {
    const range = rangeOf(entry);
    if (!range) throw new TypeError('a trusted proxy is neither an address nor a range');
    trusted.addSubnet(range.address, range.bits, familyOf(range.address));
  }
  const isTrusted = (address: string) => trusted.check(address, familyOf(address));

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
    const peer = withoutMapping(remoteAddress.replace(/%.*/, ''));
    if (trustedProxies.length === 0 || !isTrusted(peer)) return peer;
    const told: string[] = [];
    const { 'x-forwarded-for': xForwardedFor, forwarded } = headers;
    if (xForwardedFor !== undefined) told.push(follow(peer, hopsOfXForwardedFor(String(xForwardedFor))));
    if (forwarded !== undefined) told.push(follow(peer, hopsOfForwarded(forwarded)));
    const [first = peer, second = first] = told;
    return first === second ? first : peer;
  };
}

/** What one client has whole, and limits count as one: the /64 of a canonical IPv6 address, any other address as it is. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0');
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`;
}

function rangeOf(entry: string): Range | undefined {
  const [text = '', bits, ...rest] = entry.split('/');
  const address = canonicalAddress(text);
  if (address === null || rest.length > 0) return undefined;
  const all = address.includes(':') ? 128 : 32;
  if (bits === undefined) return { address, bits: all };
  // A range of IPv4-mapped addresses counts its bits otherwise.
  const isMapped = all === 32 && text.includes(':');
  return !isMapped && /^\d{1,3}$/.test(bits) && Number(bits) <= all ? { address, bits: Number(bits) } : undefined;
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return address.includes(':') ? 'ipv6' : 'ipv4';
}
