import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { ConnectionError, DawatchClient } from '../../../src/client/index.ts';
import { killableProcess } from './killable-process.ts';
import { compile } from './main-file.ts';

export const CRASH_API_KEY = 'crash-test-key-0123456789';
export const CRASH_ADMIN_TOKEN = 'crash-test-admin-0123456789';

export type KillableServer = Awaited<ReturnType<typeof prepareServer>>;

/** A server in a process that can be killed and started again on the same port and ledger. */
export async function prepareServer(folder: string, settings: Record<string, unknown>) {
  const port = await freePort();
  const config = join(folder, 'dawatch.yaml');
  const own = {
    server: { port },
    auth: { api_key: CRASH_API_KEY, admin_token: CRASH_ADMIN_TOKEN },
    database: join(folder, 'ledger.db'),
    log: { level: 'error' },
  };
  const all = { ...own, ...settings, server: { port, ...(settings.server ?? {}) } };
  writeFileSync(config, JSON.stringify(all));
  compile('serve', folder);
  const url = `http://127.0.0.1:${port}`;
  const server = killableProcess(['serve', '--config', config]);
  return {
    ...server,
    folder,
    /** The ledger. */
    file: all.database,
    url,
    client: new DawatchClient({ url, apiKey: CRASH_API_KEY }),
    /** Rejects if the process ends instead. */
    async listening(): Promise<void> {
      while (
        !(await fetch(`${url}/livez`).then(
          (response) => response.ok,
          () => false,
        ))
      ) {
        if (server.isGone())
          throw new Error(`the server ended: ${server.lines.slice(-3).join('\n')}`);
        await sleep(20);
      }
    },
  };
}

/** Tracks like a careful backend: repeats the request until it is acknowledged. */
export async function trackUntilAcknowledged(
  client: DawatchClient,
  ids: readonly string[],
): Promise<void> {
  for (;;) {
    const isAcknowledged = await client.track(ids).then(
      () => true,
      (error) => {
        if (error instanceof ConnectionError) return false;
        throw error;
      },
    );
    if (isAcknowledged) return;
    await sleep(20);
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  return address.port;
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
