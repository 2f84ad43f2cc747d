import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  const id = /submission_id=([^&]*)/.exec(request.url ?? '')?.[1];
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ id, state: 'Pending', error: null, data: null }));
}).listen(0, '127.0.0.1');
await once(server, 'listening');
process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
