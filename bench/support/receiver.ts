// A minimal receiver of webhooks in its own process. GET / returns the latency of each event
// received since the previous call, in milliseconds from the event's timestamp.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const [measures] = JSON.parse(process.argv[2] ?? '[]') as [boolean];
const RESPONSE_HEADERS = { 'content-type': 'application/json', 'content-length': 11 };
let latenciesMs: number[] = [];

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  if (request.method === 'GET') {
    response.end(JSON.stringify(latenciesMs));
    latenciesMs = [];
    return;
  }
  const at = performance.timeOrigin + performance.now();
  let body = '';
  request.setEncoding('utf8').on('data', (chunk) => {
    body += chunk;
  });
  request.on('end', () => {
    if (measures) latenciesMs.push(at - Date.parse(JSON.parse(body).timestamp));
    response.writeHead(200, RESPONSE_HEADERS).end('{"ok":true}');
  });
}).listen(0, '127.0.0.1');
await once(server, 'listening');
console.log(JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }));
