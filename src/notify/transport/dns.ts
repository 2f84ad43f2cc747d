import { type LookupAddress, NODATA, NOTFOUND, Resolver } from 'node:dns';
import { readFileSync } from 'node:fs';
import { isIP, isIPv4 } from 'node:net';
import type { LookupAll } from './address-guard.ts';

const HOSTS_FILE = '/etc/hosts';
/** Per try of one nameserver; there are two. */
const TIMEOUT_MS = 2_500;
const RENEW_MS = 30_000;
/** Once one family has addresses, the other one is waited for no longer than this. */
const OTHER_FAMILY_MS = 300;

/**
 * Looks names up in the hosts file, then in DNS as they are written, without search domains. Not through the system's own
 * lookup: that has four threads for the whole process, and a few names whose nameserver is silent would hold all of them.
 */
export function createLookup({
  servers,
  hostsFile = HOSTS_FILE,
}: {
  servers?: string[];
  hostsFile?: string;
} = {}): LookupAll {
  let resolver: Resolver | undefined;
  let madeAt = 0;
  /** A resolver knows the nameservers of the moment at which it was made; what it is asking already it goes on asking. */
  const current = () => {
    if (resolver && performance.now() - madeAt < RENEW_MS) return resolver;
    resolver = new Resolver({ timeout: TIMEOUT_MS, tries: 2 });
    if (servers) resolver.setServers(servers);
    madeAt = performance.now();
    return resolver;
  };
  const resolve = (method: 'resolve4' | 'resolve6', hostname: string): Promise<Resolution> =>
    new Promise((done) => current()[method](hostname, (error, addresses) => done(error ?? addresses)));
  return (hostname, _options, callback) => {
    const known = addressesOf(hostname, hostsFile);
    if (known.length > 0) return process.nextTick(callback, null, known.map(toLookupAddress));
    void bothOrSoon(resolve('resolve4', hostname), resolve('resolve6', hostname)).then((answers) => {
      const found = answers.flatMap((answer) => (Array.isArray(answer) ? answer : []));
      const errors = answers.flatMap((answer) => (Array.isArray(answer) ? [] : [answer]));
      const error = errors.find(({ code }) => code !== NODATA && code !== NOTFOUND) ?? errors[0];
      if (found.length === 0 && error) callback(error, []);
      else callback(null, found.map(toLookupAddress));
    });
  };
}

type Resolution = string[] | NodeJS.ErrnoException;

/** Both answers; of one whose nameserver is silent nothing, once the other has addresses. */
async function bothOrSoon(a: Promise<Resolution>, b: Promise<Resolution>): Promise<Resolution[]> {
  const first = await Promise.race([a, b]);
  if (!Array.isArray(first)) return Promise.all([a, b]);
  let timer: NodeJS.Timeout | undefined;
  const soon = new Promise<Resolution[]>((done) => {
    timer = setTimeout(() => done([first]), OTHER_FAMILY_MS);
  });
  const answers = await Promise.race([Promise.all([a, b]), soon]);
  clearTimeout(timer);
  return answers;
}

function toLookupAddress(address: string): LookupAddress {
  return { address, family: isIPv4(address) ? 4 : 6 };
}

/** It is short, and may change while the process runs. */
function addressesOf(hostname: string, file: string): string[] {
  return readHosts(file).flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    return isIP(address) && names.some((name) => name.toLowerCase() === hostname.toLowerCase()) ? address : [];
  });
}

function readHosts(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n');
  } catch {
    return [];
  }
}
