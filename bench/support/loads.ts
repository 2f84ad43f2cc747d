import { randomUUID } from 'node:crypto';
import type { Load, LoadResult } from './load.ts';
import { type BenchServer, costsOf, runProgram, startProgram, startServer, temporaryFolder } from './processes.ts';

type Sent = { perSecond: number; cpuUs: number };

/** The whole product, with an upstream that its settings let it ask 50 times a second. */
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

/** Sends a load, and counts what each request costs the process that answers it. */
export async function send(
  to: { url: string; pid: number },
  { apiKey }: BenchServer,
  load: Omit<Load, 'url' | 'apiKey'>,
): Promise<Sent> {
  const before = costsOf(to.pid).cpuS;
  const { perSecond, requests } = await runProgram<LoadResult>('support/load.ts', [{ url: to.url, apiKey, ...load }]);
  return { perSecond, cpuUs: ((costsOf(to.pid).cpuS - before) * 1e6) / requests };
}

/** What it answers, for a peer to answer as many bytes. */
export async function answerOf({ url, apiKey }: BenchServer, path: string, body?: object): Promise<string> {
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
  const answer = await fetch(url + path, body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers });
  return answer.text();
}

export function newIds(count: number): string[] {
  return Array.from({ length: count }, () => randomUUID());
}
