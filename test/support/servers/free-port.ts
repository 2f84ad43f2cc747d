import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** A program binds its port seconds later, when the tests beside it have theirs. */
const given = new Set<number>();

/**
 * Returns a port of this machine that nothing uses, each time another. It is below those that the
 * system gives to connections and to servers on port 0, so it stays free while its server is down.
 */
export async function freePort(): Promise<number> {
  const port = randomInt(20_000, 32_000);
  if (given.has(port)) return freePort();
  given.add(port);
  const server = createServer().listen(port, '127.0.0.1');
  const isFree = await once(server, 'listening').then(
    () => true,
    () => false,
  );
  if (!isFree) return freePort();
  server.close();
  await once(server, 'close');
  return port;
}
