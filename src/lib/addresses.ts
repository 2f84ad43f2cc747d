import { isIP, SocketAddress } from 'node:net';
import ipaddr from 'ipaddr.js';
import { decoded } from './request-headers.ts';

export type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type AddressRange = [Address, number];

/** Returns whether the text is an address, or a range of addresses such as 10.0.0.0/8. */
export function isAddressRange(text: string): boolean {
  // The strict tests for IPv4 refuse 10.1/8 and 010.0.0.0/8, which parsers interpret differently.
  return ipaddr.IPv4.isValidCIDRFourPartDecimal(withPrefix(text)) || isIpv6Range(text);
}

function isIpv6Range(text: string): boolean {
  return ipaddr.IPv6.isValidCIDR(withPrefix(text)) && !text.includes('%');
}

function withPrefix(text: string): string {
  return text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`;
}

/** An IPv4-mapped range becomes IPv4. Throws TypeError if isAddressRange refuses the text. */
export function parseRange(text: string): AddressRange {
  if (!isAddressRange(text)) throw new TypeError('neither an address nor a range of addresses');
  const [address, bits] = ipaddr.parseCIDR(withPrefix(text));
  const isMapped =
    address.kind() === 'ipv6' && bits >= 96 && (address as ipaddr.IPv6).isIPv4MappedAddress();
  return isMapped ? [(address as ipaddr.IPv6).toIPv4Address(), bits - 96] : [address, bits];
}

export function contains(range: AddressRange, address: Address): boolean {
  return range[0].kind() === address.kind() && address.match(range);
}

/** IPv4 for IPv4-mapped IPv6; null if invalid. */
export function canonicalAddress(text: string): string | null {
  const family = isIP(text);
  if (family !== 6) return family === 4 ? text : null;
  if (text.includes('%')) return null;
  return unmapIpv4(new SocketAddress({ address: text, family: 'ipv6' }).address);
}

export function unmapIpv4(address: string): string {
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1] ?? address;
}

export function isLoopback(host: string): boolean {
  return isIP(host) === 0 ? host === 'localhost' : ipaddr.process(host).range() === 'loopback';
}

/**
 * Returns why the address of a service is refused: libraries would read it differently than its
 * author. The reason contains no part of it.
 */
export function serviceAddressError(text: string, schemes: readonly string[]): string | undefined {
  const url = URL.parse(text);
  const [scheme = '', ...after] = text.split('://');
  const [authority = '', ...rest] = after.join('://').split(/[/?#\\]/);
  const isMisplaced = /@|:\d*$/.test(authority) && rest.some((part) => part.includes('@'));
  const login = `${url?.username}:${url?.password}`;
  if (isMisplaced || (login.includes('%') && decoded(login) === login))
    return `must be encoded: ${ENCODING}; after the host, @ as %40`;
  if (!url?.host || /[\s\p{Cc}]/u.test(text) || !schemes.includes(scheme.toLowerCase())) {
    const start = schemes.map((one) => `${one}://`).join(' or ');
    return `must be an address that begins with ${start}, without spaces or control characters${text.includes('@') ? `; ${ENCODING}` : ''}`;
  }
  return text.includes('#') ? `must be an address without a fragment (#); ${ENCODING}` : undefined;
}

const ENCODING = 'in a user or password, write % as %25, / as %2F, ? as %3F and # as %23';

/** The network of one client: the /64 of an IPv6 address, any other address unchanged. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const { parts } = ipaddr.IPv6.parse(address);
  return `${parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}

const NAMED: Record<string, readonly string[]> = {
  loopback: ['127.0.0.0/8', '::1'],
  private: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
};

/** Returns why an entry of `server.trusted_proxies` is invalid; undefined: it is valid. */
export function trustedProxyError(entry: string): string | undefined {
  if (Object.hasOwn(NAMED, entry)) return undefined;
  if (!isAddressRange(entry))
    return 'must be an IP address, a range like 10.0.0.0/8 or fd00::/8, loopback, or private';
  // If every address were trusted, a client could choose its own address.
  return parseRange(entry)[1] === 0
    ? 'must not contain every address: list the proxies'
    : undefined;
}

/** Tests for `server.trusted_proxies`. Throws TypeError for an invalid entry. */
export function proxyMatcher(entries: readonly string[]): (address: string) => boolean {
  const ranges = entries.flatMap((name) => NAMED[name] ?? [name]).map(parseRange);
  return (address) => {
    const parsed = ipaddr.process(address);
    return ranges.some((range) => contains(range, parsed));
  };
}
