import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { canonicalAddress, proxyMatcher, unmapIpv4 } from '../lib/addresses.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** For limits, logs and the audit. "unknown" if the connection is closed. */
    clientAddress: string;
  }
}

/**
 * Returns a function that determines the client address of a request. X-Forwarded-For and Forwarded
 * are used only from a trusted peer, and followed from the nearest hop to the first one that is not
 * trusted. If a hop has no address, the last trusted address counts. If the two headers disagree,
 * the peer's address counts: most proxies set one header and pass on the other, which the client
 * may have forged.
 */
export function clientAddressReader(
  trustedProxies: readonly string[],
): (request: IncomingMessage) => string {
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
    if (xForwardedFor !== undefined)
      claimed.push(follow(peer, hopsOfXForwardedFor(String(xForwardedFor))));
    if (forwarded !== undefined) claimed.push(follow(peer, hopsOfForwarded(forwarded)));
    const [first = peer, second = first] = claimed;
    return first === second ? first : peer;
  };
}

/** The address of one hop; null if it is obfuscated, unknown or malformed. */
type Hop = string | null;

/** Returns the hops of X-Forwarded-For, nearest last. */
function hopsOfXForwardedFor(header: string): Hop[] {
  return header
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map(addressOfNode);
}

/** A parameter of a Forwarded header with its delimiter. */
const PARAMETER =
  /[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s",;=]+))[ \t]*)?([,;]|$)/y;

/** Returns the hops of Forwarded (RFC 7239), nearest last; undefined if the header is malformed. */
function hopsOfForwarded(header: string): Hop[] | undefined {
  const hops: Hop[] = [];
  let names: string[] = [];
  let hop: Hop = null;
  PARAMETER.lastIndex = 0;
  for (;;) {
    const match = PARAMETER.exec(header);
    if (!match) return undefined;
    const [, name, quoted, token = '', end] = match;
    if (name !== undefined) {
      const lower = name.toLowerCase();
      if (names.includes(lower)) return undefined;
      names.push(lower);
      if (lower === 'for') hop = addressOfNode(quoted?.replace(/\\(.)/g, '$1') ?? token);
    }
    if (end === ';') continue;
    // An empty list element counts as absent.
    if (names.length > 0) hops.push(hop);
    if (end === '') return hops;
    names = [];
    hop = null;
  }
}

/**
 * Parses an address with or without a port: `192.0.2.1:80`, `[2001:db8::1]:80`, or IPv6 without
 * brackets.
 */
function addressOfNode(node: string): Hop {
  const bracketed = /^\[([\da-f:.]+)\](?::[\w.-]+)?$/i.exec(node)?.[1];
  if (bracketed !== undefined) return isIP(bracketed) === 6 ? canonicalAddress(bracketed) : null;
  const withPort = /^([\d.]+):[\w.-]+$/.exec(node)?.[1];
  return canonicalAddress(withPort ?? node);
}
