import { execFileSync } from 'node:child_process';
import { freePort, type RedisServer, redisForTest } from './redis-server.ts';

/** A variable, because knip would report a literal as a missing package. */
const REDIS_CLI = 'redis-cli';

/** Starts a cluster of three primaries for the duration of a test. Returns one of them. */
export async function startCluster(): Promise<RedisServer> {
  const open = async () => {
    // The default is the port plus 10,000, which may be above 65,535.
    const settings = { 'cluster-enabled': 'yes', 'cluster-port': String(await freePort()) };
    return redisForTest({ settings });
  };
  const nodes = [await open(), await open(), await open()] as const;
  const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`);
  execFileSync(REDIS_CLI, ['--cluster', 'create', ...addresses, '--cluster-yes'], {
    stdio: 'ignore',
  });
  return nodes[0];
}
