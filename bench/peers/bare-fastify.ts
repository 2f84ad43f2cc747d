// A server as small as fastify makes it: answers what it was given as an example, and keeps what is posted only at /durable.
import type { AddressInfo } from 'node:net';
import { fastify } from 'fastify';
import { openBareLedger } from './bare-ledger.ts';

const [{ example, ledger }] = JSON.parse(process.argv[2] ?? '[]') as [{ example: string; ledger?: string }];
const answer = JSON.parse(example);
const app = fastify();

app.get('/v1/submissions/:id', (_request, reply) => {
  reply.type('application/json').send(example);
});
if (ledger === undefined) {
  app.post('/v1/submissions', (_request, reply) => {
    reply.code(202).send(answer);
  });
} else {
  const { insert } = openBareLedger(ledger);
  app.post<{ Body: { submission_id: string } }>('/v1/submissions', (request, reply) => {
    insert([request.body.submission_id]);
    reply.code(202).send(answer);
  });
}
await app.listen({ host: '127.0.0.1', port: 0 });
console.log(JSON.stringify({ url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}` }));
