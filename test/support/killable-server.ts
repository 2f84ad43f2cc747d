import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { ConnectionError, DawatchClient } from '../../src/client/client.ts';

const CRASH_API_KEY = 'crash-test-key-0123456789';
export const CRASH_ADMIN_TOKEN = 'crash-test-admin-0123456789';

/** The server as its users start it, in a process that can be killed and started again on the same port and ledger. */
export async function prepareServer(folder: string, settings: Record<string, unknown>) {
  const port = await freePort();
  const file = join(folder, 'ledger.db');
  const config = join(folder, 'dawatch.yaml');
  const own = {
    server: { port },
    auth: { api_key: CRASH_API_KEY, admin_token: CRASH_ADMIN_TOKEN },
    database: file,
    log: { level: 'error' },
  };
  writeFileSync(config, JSON.stringify({ ...own, ...settings }));
  const url = `http://127.0.0.1:${port}`;
  let child: ChildProcess | undefined;
  const kill = async () => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  onTestFinished(kill);
  return {
    file,
    url,
    client: new DawatchClient({ url, apiKey: CRASH_API_KEY }),
    start(): void {
      child = spawn(process.execPath, ['src/cli/main.ts', 'serve', '--config', config], { stdio: 'inherit', env: {} });
    },
    async listening(): Promise<void> {
      while (
        !(await fetch(`${url}/livez`).then(
          (response) => response.ok,
          () => false,
        ))
      )
        await sleep(20);
    },
    kill,
  };
}

/** What a careful backend does: send until it is acknowledged, then forget. */
export async function trackForSure(client: DawatchClient, ids: readonly string[]): Promise<void> {
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
