import { type LookupAddress, type LookupAllOptions, NODATA, NOTFOUND, Resolver } from 'node:dns';
import { readFileSync } from 'node:fs';
import { isIP, isIPv4, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { buildConnector } from 'undici';
import { type Address, contains, parseRange } from '../../lib/addresses.ts';
import { RefusedAddressError } from '../../lib/http-call.ts';

export type AddressGuard = {
  /** Returns why an address is refused, without the address; undefined if it is allowed. */
  check(address: string): string | undefined;
};

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
/** The metadata address of Azure; those of other clouds are link-local or private. */
const CLOUD_METADATA = ipaddr.parseCIDR('168.63.129.16/32');

/** Allows public unicast and `allow`. Throws TypeError if isAddressRange refuses one of these. */
export function createAddressGuard({ allow }: { allow: readonly string[] }): AddressGuard {
  const allowed = allow.map(parseRange);
  return {
    check(text) {
      const address = parse(text);
      if (!address) return 'it is not an IP address';
      if (allowed.some((range) => contains(range, address))) return undefined;
      const kind = kindOf(address);
      return kind && `its address is not public (${kind}), and not in webhooks.allow`;
    },
  };
}

function parse(text: string): Address | undefined {
  const plain = canonical(text);
  if (plain === undefined) return undefined;
  return ipaddr.process(plain);
}

/**
 * Reads 0x7f.1 as 127.0.0.1, as webhook URLs do. ipaddr.js alone reads ::8.8.8.8 as IPv4-mapped.
 */
function canonical(text: string): string | undefined {
  const bare = text.replace(/^\[(.*)\]$/, '$1').replace(/%[\w.:-]+$/, '');
  if (!/^[\da-fx.:]+$/i.test(bare)) return undefined;
  const url = URL.parse(bare.includes(':') ? `http://[${bare}]` : `http://${bare}`);
  const host = url?.hostname.replace(/^\[(.*)\]$/, '$1') ?? '';
  return isIP(host) ? host : undefined;
}

function kindOf(address: Address): string | undefined {
  const range = address.range();
  if (range !== 'unicast') return KINDS[range] ?? range;
  if (contains(CLOUD_METADATA, address)) return 'cloud metadata';
  return address.kind() === 'ipv4' || contains(PUBLIC_V6, address) ? undefined : 'reserved';
}

export type LookupAll = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export type GuardedConnectorOptions = {
  guard: AddressGuard | undefined;
  /** Limit for one connection, including name resolution and TLS. */
  timeoutMs: number;
  /** Closes all connections, including those being established. */
  signal?: AbortSignal;
  lookup: LookupAll;
};

/**
 * Checks the address at each connection, because a name may change to a private one after a check.
 */
export function guardedConnector(options: GuardedConnectorOptions): buildConnector.connector {
  const { guard, timeoutMs, signal, lookup } = options;
  const checked = guardedLookup(guard, lookup);
  const common = { timeout: timeoutMs, allowH2: false, lookup: checked };
  return (target, callback) => {
    // No lookup takes place for an IP address.
    const reason = isIP(target.hostname) ? guard?.check(target.hostname) : undefined;
    if (reason !== undefined) {
      process.nextTick(callback, new RefusedAddressError(reason), null);
      return;
    }
    const scoped = signal && scopedSignal(signal);
    const connect = buildConnector({ ...common, ...(scoped && { signal: scoped.signal }) });
    connect(target, (...result: Parameters<buildConnector.Callback>) => {
      const [, socket] = result;
      if (socket) socket.once('close', () => scoped?.release());
      else scoped?.release();
      callback(...result);
    });
  };
}

/** Returns a signal for one connection: Node retains a connection as long as its signal exists. */
function scopedSignal(signal: AbortSignal): { signal: AbortSignal; release: () => void } {
  const scoped = new AbortController();
  const abort = () => scoped.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  return { signal: scoped.signal, release: () => signal.removeEventListener('abort', abort) };
}

/** Rejects with RefusedAddressError if the guard refuses the addresses of a host. */
export function checkHost(hostname: string, guard: AddressGuard, lookup: LookupAll): Promise<void> {
  const address = hostname.replace(/^\[(.*)\]$/, '$1');
  const reason = isIP(address) ? guard.check(address) : undefined;
  if (reason !== undefined) return Promise.reject(new RefusedAddressError(reason));
  if (isIP(address)) return Promise.resolve();
  return new Promise((resolve, reject) =>
    guardedLookup(guard, lookup)(hostname, {}, (error) => (error ? reject(error) : resolve())),
  );
}

function guardedLookup(guard: AddressGuard | undefined, lookup: LookupAll): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, '');
      const addresses = found.filter(
        ({ address }) => isIP(address) && guard?.check(address) === undefined,
      );
      const [first] = addresses;
      if (first && options.all) return callback(null, addresses);
      if (first) return callback(null, first.address, first.family);
      const reason = found
        .map(({ address }) => guard?.check(address))
        .find((one) => one !== undefined);
      return callback(new RefusedAddressError(reason ?? 'the host name has no address'), '');
    });
  };
}

const HOSTS_FILE = '/etc/hosts';
/** Timeout per try; each nameserver is tried twice. */
const TIMEOUT_MS = 2_500;
/** Maximum wait for the second address family after the first one has addresses. */
const OTHER_FAMILY_MS = 300;

/**
 * Uses the hosts file and DNS. The system's resolver has four threads per process, which a few
 * names with unresponsive nameservers would block.
 */
export function createLookup({
  servers,
  hostsFile = HOSTS_FILE,
}: {
  servers?: string[];
  hostsFile?: string;
} = {}): LookupAll {
  return (hostname, _options, callback) => {
    const listed = addressesOf(hostname, hostsFile);
    if (listed.length > 0) return process.nextTick(callback, null, listed.map(toLookupAddress));
    // Created for each name, because it keeps the nameservers that were configured at its creation.
    const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: 2 });
    if (servers) resolver.setServers(servers);
    const resolve = (method: 'resolve4' | 'resolve6'): Promise<Resolution> =>
      new Promise((done) =>
        resolver[method](hostname, (error, addresses) => done(error ?? addresses)),
      );
    void bothFamilies(resolve('resolve4'), resolve('resolve6')).then((resolutions) => {
      const found = resolutions.flatMap((one) => (Array.isArray(one) ? one : []));
      const errors = resolutions.flatMap((one) => (Array.isArray(one) ? [] : [one]));
      const error = errors.find(({ code }) => code !== NODATA && code !== NOTFOUND) ?? errors[0];
      if (found.length === 0 && error) callback(error, []);
      else callback(null, found.map(toLookupAddress));
    });
  };
}

type Resolution = string[] | NodeJS.ErrnoException;

/** Returns both results, or only the first with addresses if the other does not follow in time. */
async function bothFamilies(a: Promise<Resolution>, b: Promise<Resolution>): Promise<Resolution[]> {
  const first = await Promise.race([a, b]);
  if (!Array.isArray(first)) return Promise.all([a, b]);
  let timer: NodeJS.Timeout | undefined;
  const soon = new Promise<Resolution[]>((done) => {
    timer = setTimeout(() => done([first]), OTHER_FAMILY_MS);
  });
  const resolutions = await Promise.race([Promise.all([a, b]), soon]);
  clearTimeout(timer);
  return resolutions;
}

function toLookupAddress(address: string): LookupAddress {
  return { address, family: isIPv4(address) ? 4 : 6 };
}

function addressesOf(hostname: string, file: string): string[] {
  return readHosts(file).flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    return isIP(address) && names.some((name) => name.toLowerCase() === hostname.toLowerCase())
      ? address
      : [];
  });
}

function readHosts(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n');
  } catch {
    return [];
  }
}
