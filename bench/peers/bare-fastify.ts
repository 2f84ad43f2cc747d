// Minimal fastify server that sends a given example as its response. With a ledger it responds from
// the ledger instead and stores posts: with `together` in one transaction per turn of the event
// loop, synced in another thread while the next requests are read, else each in its own
// transaction, which waits for its sync. A post is acknowledged when it is on the disk.
import type { AddressInfo } from 'node:net';
import { fastify } from 'fastify';
import { gathering, openBareLedger } from './bare-ledger.ts';

type Options = { example: string; ledger?: string; together?: boolean };
type Waiting = { id: string; send: (body?: object) => void };

const [{ example, ledger, together = false }] = JSON.parse(process.argv[2] ?? '[]') as [Options];
const response = JSON.parse(example);
const app = fastify();
if (ledger === undefined) sendExample();
else serveFrom(ledger);
await app.listen({ host: '127.0.0.1', port: 0 });
console.log(
  JSON.stringify({ url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}` }),
);

function sendExample(): void {
  app.get('/v1/submissions/:id', (_request, reply) => {
    reply.type('application/json').send(example);
  });
  app.post('/v1/submissions', (_request, reply) => {
    reply.code(202).send(response);
  });
}

function serveFrom(file: string): void {
  const { insert, read, whenDurable } = openBareLedger(file, {
    syncs: together ? 'apart' : 'each commit',
  });
  const later = together ? setImmediate : (run: () => void) => run();
  const get = gathering<Waiting>((all) => {
    const found = read(all.map(({ id }) => id));
    for (const [index, { send }] of all.entries()) send(found[index]);
  }, later);
  const post = gathering<Waiting>((all) => {
    insert(all.map(({ id }) => id));
    whenDurable(() => {
      for (const { send } of all) send(response);
    });
  }, later);
  app.get<{ Params: { id: string } }>('/v1/submissions/:id', ({ params }, reply) => {
    get({ id: params.id, send: (body) => reply.send(body) });
  });
  app.post<{ Body: { submission_id: string } }>('/v1/submissions', ({ body }, reply) => {
    post({ id: body.submission_id, send: (sent) => reply.code(202).send(sent) });
  });
}
