// What idle readers of the live feed cost: memory and CPU of the server without and with them, and how soon one event reaches all.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DawatchClient } from '../src/client/client.ts';

const READERS = Number(process.argv[2] ?? 5_000);
const IDLE_S = 30;
const KEY = 'bench-key-0123456789';

const folder = mkdtempSync(join(tmpdir(), 'dawatch-bench-'));
const probe = createServer().listen(0, '127.0.0.1');
await once(probe, 'listening');
const port = (probe.address() as { port: number }).port;
probe.close();
const url = `http://127.0.0.1:${port}`;
const server = spawn(process.execPath, ['src/cli/main.ts', 'serve'], {
  stdio: ['ignore', 'ignore', 'inherit'],
  env: {
    DAWATCH_UPSTREAM_URL: 'http://127.0.0.1:1',
    DAWATCH_DATABASE: join(folder, 'ledger.db'),
    DAWATCH_PORT: String(port),
    DAWATCH_API_KEY: KEY,
    DAWATCH_LOG_LEVEL: 'error',
  },
});
while (
  !(await fetch(`${url}/livez`).then(
    ({ ok }) => ok,
    () => false,
  ))
)
  await sleep(50);

/** Seconds of CPU and MiB of memory so far, as the system counts them. */
function costs({ pid }: ChildProcess): { cpuS: number; mib: number } {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  return { cpuS: (Number(stat[11]) + Number(stat[12])) / 100, mib: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024 };
}

async function idle(label: string): Promise<void> {
  const before = costs(server);
  await sleep(IDLE_S * 1_000);
  const after = costs(server);
  const share = ((after.cpuS - before.cpuS) / IDLE_S) * 100;
  console.log(`${label.padEnd(14)} ${after.mib.toFixed(0)} MiB, ${share.toFixed(1)} % of one core over ${IDLE_S} s`);
}

await idle('no readers');
let received = 0;
const readers: IncomingMessage[] = [];
const opened = Array.from({ length: READERS }, () => open());
await Promise.all(opened);
await idle(`${READERS} readers`);

const client = new DawatchClient({ url, apiKey: KEY });
const from = performance.now();
await client.track(['bench-1']);
await client.cancel('bench-1');
while (received < READERS) await sleep(1);
console.log(`one event reached all ${READERS} ${(performance.now() - from).toFixed(0)} ms after it was asked for`);

for (const reader of readers) reader.destroy();
server.kill();
await once(server, 'exit');
rmSync(folder, { recursive: true });

function open(): Promise<void> {
  return new Promise((resolve, reject) => {
    get(`${url}/v1/events`, { agent: false, headers: { 'x-api-key': KEY } }, (response) => {
      readers.push(response);
      response.on('data', (chunk: Buffer) => {
        if (chunk.includes('event: ')) received += 1;
      });
      response.on('error', () => undefined);
      resolve();
    }).on('error', reject);
  });
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
