import { randomUUID } from 'node:crypto';
import type { Load, LoadResult } from './load.ts';
import {
  type BenchServer,
  costsOf,
  runProgram,
  startProgram,
  startServer,
  temporaryFolder,
} from './processes.ts';

type Sent = { perSecond: number; cpuUs: number };

/** Starts the whole product with an upstream and the default budget of 50 polls per second. */
export async function startProduct() {
  const folder = temporaryFolder();
  const upstream = await startProgram<{ url: string }>('support/upstream.ts', ['Pending']);
  const server = await startServer(folder.path, {
    upstreams: { default: { url: upstream.hello.url, api_key: 'bench' } },
  });
  return {
    folder: folder.path,
    server,
    async close() {
      await server.stop();
      await upstream.stop();
      folder.remove();
    },
  };
}

/** Sends a load and returns the rate and the CPU per request of the serving process. */
export async function send(
  to: { url: string; pid: number },
  { apiKey }: BenchServer,
  load: Omit<Load, 'url' | 'apiKey'>,
): Promise<Sent> {
  const before = costsOf(to.pid).cpuS;
  const { perSecond, requests } = await runProgram<LoadResult>('support/load.ts', [
    { url: to.url, apiKey, ...load },
  ]);
  return { perSecond, cpuUs: ((costsOf(to.pid).cpuS - before) * 1e6) / requests };
}

/** Returns the server's response, so that a peer can send one of the same size. */
export async function responseOf(
  { url, apiKey }: BenchServer,
  path: string,
  body?: object,
): Promise<string> {
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
  const response = await fetch(
    url + path,
    body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers },
  );
  return response.text();
}

export function newIds(count: number): string[] {
  return Array.from({ length: count }, () => randomUUID());
}
