// Minimal fastify server: it stores posts and responds to reads from the ledger's tables, with one
// transaction per turn of the event loop. A post gets the given example as its response.
import type { AddressInfo } from 'node:net';
import { fastify } from 'fastify';
import { gathering, openBareLedger } from './bare-ledger.ts';

type Waiting = { id: string; send: (body?: object) => void };

const [example, file] = JSON.parse(process.argv[2] ?? '[]') as [string, string];
const response = JSON.parse(example);
const { insert, read } = openBareLedger(file);
const app = fastify();
const get = gathering<Waiting>((all) => {
  const found = read(all.map(({ id }) => id));
  for (const [index, { send }] of all.entries()) send(found[index]);
});
const post = gathering<Waiting>((all) => {
  insert(all.map(({ id }) => id));
  for (const { send } of all) send(response);
});
app.get<{ Params: { id: string } }>('/v1/submissions/:id', ({ params }, reply) => {
  get({ id: params.id, send: (body) => reply.send(body) });
});
app.post<{ Body: { submission_id: string } }>('/v1/submissions', ({ body }, reply) => {
  post({ id: body.submission_id, send: (sent) => reply.code(202).send(sent) });
});
await app.listen({ host: '127.0.0.1', port: 0 });
console.log(
  JSON.stringify({ url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}` }),
);
