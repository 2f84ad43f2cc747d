import { isIP } from 'node:net';
import { canonicalAddress } from '../../platform/addresses.ts';

/** The address of one hop; null: it names none, because it is obfuscated, unknown or malformed. */
export type Hop = string | null;

/** The hops of an X-Forwarded-For, the nearest one last. */
export function hopsOfXForwardedFor(header: string): Hop[] {
  return header
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map(addressOfNode);
}

/** A parameter of a Forwarded header, and what ends it. */
const PARAMETER = /[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s",;=]+))[ \t]*)?([,;]|$)/y;

/** The hops of a Forwarded header (RFC 7239), the nearest one last; undefined: it is malformed, so that nothing in it is sure. */
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
    // An empty element of a list counts as absent.
    if (names.length > 0) hops.push(hop);
    if (end === '') return hops;
    names = [];
    hop = null;
  }
}

/** An address with or without a port: `192.0.2.1:80`, `[2001:db8::1]:80`, or IPv6 without brackets. */
function addressOfNode(node: string): Hop {
  const bracketed = /^\[([\da-f:.]+)\](?::[\w.-]+)?$/i.exec(node)?.[1];
  if (bracketed !== undefined) return isIP(bracketed) === 6 ? canonicalAddress(bracketed) : null;
  const withPort = /^([\d.]+):[\w.-]+$/.exec(node)?.[1];
  return canonicalAddress(withPort ?? node);
}
