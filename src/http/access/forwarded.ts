import { isIP } from 'node:net';
import { canonicalAddress } from '../../platform/addresses.ts';

/** The address of one hop; null if it is obfuscated, unknown or malformed. */
export type Hop = string | null;

/** Returns the hops of X-Forwarded-For, nearest last. */
export function hopsOfXForwardedFor(header: string): Hop[] {
  return header
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map(addressOfNode);
}

/** A parameter of a Forwarded header with its delimiter. */
const PARAMETER = /[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s",;=]+))[ \t]*)?([,;]|$)/y;

/** Returns the hops of Forwarded (RFC 7239), nearest last; undefined if the header is malformed. */
export function hopsOfForwarded(header: string): Hop[] | undefined {
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

/** Parses an address with or without a port: `192.0.2.1:80`, `[2001:db8::1]:80`, or IPv6 without brackets. */
function addressOfNode(node: string): Hop {
  const bracketed = /^\[([\da-f:.]+)\](?::[\w.-]+)?$/i.exec(node)?.[1];
  if (bracketed !== undefined) return isIP(bracketed) === 6 ? canonicalAddress(bracketed) : null;
  const withPort = /^([\d.]+):[\w.-]+$/.exec(node)?.[1];
  return canonicalAddress(withPort ?? node);
}
