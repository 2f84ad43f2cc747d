// A minimal upstream in its own process. Every submission is pending, or final at once or after a
// given number of polls.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const [state, pendingFor = 0] = JSON.parse(process.argv[2] ?? '[]') as [
  'Pending' | 'Finalized',
  number?,
];
const polls = new Map<string, number>();
const [rest, restBefore] = [restOf(state), restOf('Pending')];

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  const id = /submission_id=([^&]*)/.exec(request.url ?? '')?.[1] ?? '';
  const body = `{"id":"${id}${isBefore(id) ? restBefore : rest}`;
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}).listen(0, '127.0.0.1');
await once(server, 'listening');
console.log(JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }));

function isBefore(id: string): boolean {
  if (pendingFor === 0) return false;
  const times = polls.get(id) ?? 0;
  polls.set(id, times + 1);
  return times < pendingFor;
}

function restOf(state: 'Pending' | 'Finalized'): string {
  const data = {
    amount_data: '1048576',
    block_hash: state === 'Finalized' ? `0x${'ab'.repeat(32)}` : null,
    block_number: state === 'Finalized' ? 1_234_567 : null,
    created_at: '2026-01-01T00:00:00',
    data_billed: '1048576',
    data_hash: `0x${'cd'.repeat(32)}`,
    fees: '123456789012345678',
    tx_hash: state === 'Finalized' ? `0x${'ef'.repeat(32)}` : null,
    tx_index: state === 'Finalized' ? 1 : null,
    user_id: '4a1f2f0e-7c0b-4b53-9d34-1c2a5f6b7c8d',
  };
  return `","state":"${state}","error":null,"data":${JSON.stringify(data)}}`;
}
