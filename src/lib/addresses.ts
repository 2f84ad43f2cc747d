import { BlockList, isIP, SocketAddress } from 'node:net';

/**
 * Returns the canonical spelling of an IP address, IPv4 for IPv4-mapped IPv6; null if it is
 * invalid.
 */
export function canonicalAddress(text: string): string | null {
  const family = isIP(text);
  if (family !== 6) return family === 4 ? text : null;
  if (text.includes('%')) return null;
  return unmapIpv4(new SocketAddress({ address: text, family: 'ipv6' }).address);
}

/** Converts an IPv4-mapped IPv6 address of the operating system to IPv4. */
export function unmapIpv4(address: string): string {
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1] ?? address;
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8);
loopback.addAddress('::1', 'ipv6');

export function isLoopback(host: string): boolean {
  const family = isIP(host);
  return family === 0 ? host === 'localhost' : loopback.check(host, family === 6 ? 'ipv6' : 'ipv4');
}

/**
 * Returns the network that one client usually owns: the /64 of a canonical IPv6 address, any other
 * address unchanged.
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0');
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`;
}

type Range = { address: string; bits: number };

const NAMED: Record<string, readonly string[]> = {
  loopback: ['127.0.0.0/8', '::1'],
  private: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
};

/** Returns why an entry of `server.trusted_proxies` is invalid; undefined: it is valid. */
export function trustedProxyError(entry: string): string | undefined {
  if (Object.hasOwn(NAMED, entry)) return undefined;
  const range = rangeOf(entry);
  if (!range)
    return 'must be an IP address, a range like 10.0.0.0/8 or fd00::/8, loopback, or private';
  // If every address were trusted, a client could choose its own address.
  return range.bits === 0 ? 'must not contain every address: list the proxies' : undefined;
}

/**
 * Returns a function that tests whether an address is in `server.trusted_proxies`. Throws TypeError
 * for an invalid entry.
 */
export function proxyMatcher(entries: readonly string[]): (address: string) => boolean {
  const proxies = new BlockList();
  for (const entry of entries.flatMap((name) => NAMED[name] ?? [name])) {
    const range = rangeOf(entry);
    if (!range) throw new TypeError('a trusted proxy is neither an address nor a range');
    proxies.addSubnet(range.address, range.bits, familyOf(range.address));
  }
  return (address) => proxies.check(address, familyOf(address));
}

function rangeOf(entry: string): Range | undefined {
  const [text = '', bits, ...rest] = entry.split('/');
  const address = canonicalAddress(text);
  if (address === null || rest.length > 0) return undefined;
  const all = address.includes(':') ? 128 : 32;
  if (bits === undefined) return { address, bits: all };
  // The prefix length of an IPv4-mapped range is relative to IPv6.
  const isMapped = all === 32 && text.includes(':');
  return !isMapped && /^\d{1,3}$/.test(bits) && Number(bits) <= all
    ? { address, bits: Number(bits) }
    : undefined;
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return address.includes(':') ? 'ipv6' : 'ipv4';
}
