import { type LookupAddress, NODATA, NOTFOUND, Resolver } from 'node:dns';
import { readFileSync } from 'node:fs';
import { isIP, isIPv4 } from 'node:net';
import type { LookupAll } from './address-guard.ts';

const HOSTS_FILE = '/etc/hosts';
/** Timeout per try; each nameserver is tried twice. */
const TIMEOUT_MS = 2_500;
/** Maximum wait for the second address family after the first one has addresses. */
const OTHER_FAMILY_MS = 300;

/**
 * Resolves names through the hosts file and DNS, without search domains. The system's resolver is
 * not used: it has four threads per process, which a few names with unresponsive nameservers would
 * block.
 */
export function createLookup({
  servers,
  hostsFile = HOSTS_FILE,
}: {
  servers?: string[];
  hostsFile?: string;
} = {}): LookupAll {
  return (hostname, _options, callback) => {
    const known = addressesOf(hostname, hostsFile);
    if (known.length > 0) return process.nextTick(callback, null, known.map(toLookupAddress));
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

/** Reads the hosts file on each call: it is short and may change. */
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
