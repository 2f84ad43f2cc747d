import type { LookupAddress, LookupAllOptions } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import buildConnector from 'undici/lib/core/connect.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Cidr = [Address, number];

export type AddressGuard = {
  /** Why an IP address may not be connected to, without the address; undefined: it may. */
  check(address: string): string | undefined;
};

/** Where the guard does not let a connection go. Its message says what kind of address it is, not which one. */
export class RefusedAddressError extends Error {
  override readonly name = 'RefusedAddressError';
  readonly reason: string;
  constructor(reason: string) {
    super(`refused: ${reason}`);
    this.reason = reason;
  }
}

/** Words for people, where the name that ipaddr.js has for a range is none. */
const KINDS: Record<string, string> = {
  linkLocal: 'link-local',
  carrierGradeNat: 'carrier-grade NAT',
  uniqueLocal: 'unique local',
  deprecatedSiteLocal: 'site-local',
  rfc6052: 'NAT64',
  rfc6145: 'NAT64',
  teredo: 'Teredo',
  segmentRouting: 'segment routing',
  deprecatedOrchid: 'ORCHID',
  orchid2: 'ORCHID',
  droneRemoteIdProtocolEntityTags: 'ORCHID',
};
const PUBLIC_V6 = ipaddr.parseCIDR('2000::/3');
/** Azure's virtual host answers its machines here; the other clouds' metadata addresses are link-local or private. */
const CLOUD_METADATA = ipaddr.parseCIDR('168.63.129.16/32');

export function isCidr(text: string): boolean {
  // The looser test for v4 reads 10.1/8 and 010.0.0.0/8, each of which somebody else reads otherwise.
  return (ipaddr.IPv6.isValidCIDR(text) && !text.includes('%')) || ipaddr.IPv4.isValidCIDRFourPartDecimal(text);
}

/** Only public unicast addresses pass, and those in `allow`, CIDRs of which each must be one by isCidr. */
export function createAddressGuard({ allow }: { allow: readonly string[] }): AddressGuard {
  const allowed = allow.map(parseCidr);
  return {
    check(text) {
      const address = parse(text);
      if (!address) return 'it is no IP address';
      if (allowed.some((cidr) => contains(cidr, address))) return undefined;
      const kind = kindOf(address);
      return kind && `its address is not public (${kind})`;
    },
  };
}

function parseCidr(text: string): Cidr {
  if (!isCidr(text)) throw new TypeError('an allowed range is no CIDR');
  const [address, bits] = ipaddr.parseCIDR(text);
  const isMapped = address.kind() === 'ipv6' && bits >= 96 && (address as ipaddr.IPv6).isIPv4MappedAddress();
  return isMapped ? [(address as ipaddr.IPv6).toIPv4Address(), bits - 96] : [address, bits];
}

/** A v4-mapped address is its v4 one: the system connects to that. */
function parse(text: string): Address | undefined {
  const plain = canonical(text);
  if (plain === undefined) return undefined;
  return ipaddr.process(plain);
}

/**
 * The one spelling of an address, by the parser that also reads the URLs we are given: 0x7f.1 is 127.0.0.1 to it.
 * ipaddr.js alone takes ::8.8.8.8 (v4-compatible) for ::ffff:8.8.8.8 (v4-mapped).
 */
function canonical(text: string): string | undefined {
  const bare = text.replace(/^\[(.*)\]$/, '$1').replace(/%[\w.:-]+$/, '');
  if (!/^[\da-fx.:]+$/i.test(bare)) return undefined;
  const url = URL.parse(bare.includes(':') ? `http://[${bare}]` : `http://${bare}`);
  const host = url?.hostname.replace(/^\[(.*)\]$/, '$1') ?? '';
  return isIP(host) ? host : undefined;
}

function contains(cidr: Cidr, address: Address): boolean {
  return cidr[0].kind() === address.kind() && address.match(cidr);
}

/** Undefined: public unicast. */
function kindOf(address: Address): string | undefined {
  const range = address.range();
  if (range !== 'unicast') return KINDS[range] ?? range;
  if (contains(CLOUD_METADATA, address)) return 'cloud metadata';
  return address.kind() === 'ipv4' || contains(PUBLIC_V6, address) ? undefined : 'reserved';
}

/** As dns.lookup with `all`. */
export type LookupAll = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export type GuardedConnectorOptions = {
  guard: AddressGuard;
  /** For one connection, names and TLS included. */
  timeoutMs: number;
  /** Ends every connection, those under way too. */
  signal?: AbortSignal;
  lookup: LookupAll;
};

/**
 * How undici connects, to nowhere but where the guard lets it. What is checked is the very address that is connected to:
 * a name that was public when it was checked and private a moment later gains nothing.
 */
export function guardedConnector(options: GuardedConnectorOptions): buildConnector.connector {
  const { guard, timeoutMs, signal, lookup } = options;
  const common = { timeout: timeoutMs, allowH2: false, lookup: guardedLookup(guard, lookup) };
  return (target, callback) => {
    // The system asks no lookup about an address.
    const reason = isIP(target.hostname) ? guard.check(target.hostname) : undefined;
    if (reason !== undefined) {
      process.nextTick(callback, new RefusedAddressError(reason), null);
      return;
    }
    const following = signal && follow(signal);
    const connect = buildConnector({ ...common, ...(following && { signal: following.signal }) });
    connect(target, (...outcome: Parameters<buildConnector.Callback>) => {
      const [, socket] = outcome;
      if (socket) socket.once('close', () => following?.leave());
      else following?.leave();
      callback(...outcome);
    });
  };
}

/** A signal for one connection: Node never lets go of a connection whose signal lives on. */
function follow(signal: AbortSignal): { signal: AbortSignal; leave: () => void } {
  const own = new AbortController();
  const abort = () => own.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  return { signal: own.signal, leave: () => signal.removeEventListener('abort', abort) };
}

function guardedLookup(guard: AddressGuard, lookup: LookupAll): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, '');
      const addresses = found.filter(({ address }) => isIP(address) && guard.check(address) === undefined);
      const [first] = addresses;
      if (first && options.all) return callback(null, addresses);
      if (first) return callback(null, first.address, first.family);
      const reason = found.map(({ address }) => guard.check(address)).find((one) => one !== undefined);
      return callback(new RefusedAddressError(reason ?? 'its name has no address'), '');
    });
  };
}
