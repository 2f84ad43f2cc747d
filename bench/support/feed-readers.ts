// Readers of the live feed, in a process of their own. GET / gives how many events reached them since it was asked last,
// and how long after its own time the p50 and p99 of those arrived, in milliseconds.
import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { percentile } from './percentiles.ts';

const [url, apiKey, count] = JSON.parse(process.argv[2] ?? '[]') as [string, string, number];
const TIME = Buffer.from('"timestamp":"');
const TIME_CHARS = 24;
let latenciesMs: number[] = [];
/** All readers get the same times: each is read once. */
const times = new Map<string, number>();

function timeOf(text: string): number {
  let time = times.get(text);
  if (time === undefined) {
    if (times.size > 1_000) times.clear();
    time = Date.parse(text);
    times.set(text, time);
  }
  return time;
}

function take(chunk: Buffer): void {
  const now = performance.timeOrigin + performance.now();
  for (let at = chunk.indexOf(TIME); at >= 0; at = chunk.indexOf(TIME, at + TIME.length)) {
    const from = at + TIME.length;
    const time = timeOf(chunk.toString('latin1', from, from + TIME_CHARS));
    // One that was cut in two between chunks is not measured.
    if (!Number.isNaN(time)) latenciesMs.push(now - time);
  }
}

async function open(): Promise<void> {
  const request = get(`${url}/v1/events`, { agent: false, headers: { 'x-api-key': apiKey } });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.on('data', take);
}

await Promise.all(Array.from({ length: count }, open));
const server = createServer((_request, response) => {
  const [p50, p99] = [percentile(latenciesMs, 50), percentile(latenciesMs, 99)];
  response.end(JSON.stringify({ received: latenciesMs.length, p50, p99 }));
  latenciesMs = [];
}).listen(0, '127.0.0.1');
await once(server, 'listening');
console.log(JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }));
