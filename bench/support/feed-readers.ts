// Readers of the live feed in their own process with little CPU, so that the readers are not the
// limit. GET / returns the number of events received since the previous call, and the p50 and p99
// of their latency in milliseconds from the event's timestamp.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { percentile } from './percentiles.ts';

const [url, apiKey, count] = JSON.parse(process.argv[2] ?? '[]') as [string, string, number];
const { hostname, port } = new URL(url);
const REQUEST = `GET /v1/events HTTP/1.1\r\nhost: ${hostname}\r\nx-api-key: ${apiKey}\r\n\r\n`;
/**
 * The bytes before the timestamp of an event. The date is today's, so only the time of day,
 * `12:34:56.789`, is parsed.
 */
const TIME = Buffer.from('"timestamp":"');
const DATE_CHARS = '2026-01-02T'.length;
const TIME_CHARS = '12:34:56.789'.length;
const DAY_MS = 86_400_000;
let latenciesMs: number[] = [];

/** Returns the milliseconds of the day, parsed without creating a string. */
function timeAt(bytes: Buffer, from: number): number {
  const digits = (at: number, length: number) => {
    let value = 0;
    for (let index = at; index < at + length; index++)
      value = 10 * value + (bytes[index] ?? 0) - 48;
    return value;
  };
  const [hours, minutes, seconds, ms] = [
    digits(from, 2),
    digits(from + 3, 2),
    digits(from + 6, 2),
    digits(from + 9, 3),
  ];
  return ((hours * 60 + minutes) * 60 + seconds) * 1_000 + ms;
}

function take(bytes: Buffer): void {
  const now = (performance.timeOrigin + performance.now()) % DAY_MS;
  for (let at = bytes.indexOf(TIME); at >= 0; at = bytes.indexOf(TIME, at + TIME.length)) {
    const from = at + TIME.length + DATE_CHARS;
    // An event that is split between two chunks is not measured.
    if (from + TIME_CHARS > bytes.length) continue;
    const passed = now - timeAt(bytes, from);
    // Past midnight the difference is about minus one day. Slightly negative values are differences
    // between the clocks of two processes.
    latenciesMs.push(passed < -DAY_MS / 2 ? passed + DAY_MS : passed);
  }
}

/** Shared by all connections, because each chunk is processed before the next is read. */
const shared = Buffer.alloc(256 * 1_024);

async function open(): Promise<void> {
  const callback = (size: number) => {
    take(shared.subarray(0, size));
    return true;
  };
  const socket = connect({
    host: hostname,
    port: Number(port),
    onread: { buffer: shared, callback },
  });
  await once(socket, 'connect');
  socket.write(REQUEST);
}

await Promise.all(Array.from({ length: count }, open));
const server = createServer((_request, response) => {
  const [p50, p99] = [percentile(latenciesMs, 50), percentile(latenciesMs, 99)];
  response.end(JSON.stringify({ received: latenciesMs.length, p50, p99 }));
  latenciesMs = [];
}).listen(0, '127.0.0.1');
await once(server, 'listening');
console.log(JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }));
