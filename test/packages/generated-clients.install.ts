import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { useAppWithSandbox } from '../support/app/running-app.ts';
import { removedAfterTests } from './support/folders.ts';

const ROOT = join(import.meta.dirname, '../..');
const MODULES = join(ROOT, 'node_modules');
const ADMIN_TOKEN = 'an-admin-token-for-tests-0123456789';
const STRICT = [
  '--strict',
  '--noUncheckedIndexedAccess',
  '--noImplicitOverride',
  '--verbatimModuleSyntax',
];
const OPTIONS = [
  '--target',
  'es2022',
  '--module',
  'nodenext',
  '--allowImportingTsExtensions',
  '--noEmit',
  ...STRICT,
];

const folder = removedAfterTests();
const app = useAppWithSandbox({ adminToken: ADMIN_TOKEN });
/**
 * Runs a program of Node without blocking the server in this process. Resolves with its output, or
 * rejects.
 */
const run = promisify(execFile);

/** Calls operations of the server through the generated types. */
const PROGRAM = `
import createClient from 'openapi-fetch';
import type { components, paths } from './client.ts';

const [url = '', token = '', finalId = '', cancelledId = ''] = process.argv.slice(2);
type Schemas = components['schemas'];
const client = createClient<paths>({ baseUrl: url, headers: { authorization: \`Bearer \${token}\` } });
const ok = async <T>(result: Promise<{ data?: T; error?: unknown }>): Promise<T> => {
  const { data, error } = await result;
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
};
const path = (id: string) => ({ path: { id } });
const track = (body: Schemas['TrackRequest']) => ok(client.POST('/v1/submissions', { body }));
const get = (id: string) => ok(client.GET('/v1/submissions/{id}', { params: path(id) }));
const list = (query: { status?: Schemas['SubmissionStatus']; limit?: number }) =>
  ok(client.GET('/v1/submissions', { params: { query } }));
const wait = (id: string, timeout_s: number) =>
  ok(client.GET('/v1/submissions/{id}/wait', { params: { ...path(id), query: { timeout_s } } }));
const cancel = (id: string) => ok(client.DELETE('/v1/submissions/{id}', { params: path(id) }));
const createWebhook = (body: Schemas['NewWebhook']) => ok(client.POST('/v1/webhooks', { body }));
const listWebhooks = (limit: number) => ok(client.GET('/v1/webhooks', { params: { query: { limit } } }));
const testWebhook = (id: string) => ok(client.POST('/v1/webhooks/{id}/test', { params: path(id) }));
const getDelivery = (id: number) => ok(client.GET('/v1/deliveries/{id}', { params: { path: { id } } }));
const problemOf = async (id: string): Promise<Schemas['Problem']> => {
  const { error } = await client.GET('/v1/submissions/{id}', { params: path(id) });
  if (!error) throw new Error('no problem');
  return error;
};

const tracked = await track({ submission_ids: [finalId, cancelledId], metadata: { order: 4711 } });
const accepted: number = tracked.accepted;
const page = await list({ limit: 1 });
const next: string | null = page.next_cursor;
const cancelled = await cancel(cancelledId);
const waited = await wait(finalId, 20);
const finalizedAt: string | null = waited.finalized_at;
const shown = await get(finalId);
const block: unknown = shown.data?.block_number;
const webhook = await createWebhook({ url: 'https://hooks.example.com/', types: ['submission.*'] });
const secret: string | null = webhook.secret;
const { webhooks } = await listWebhooks(10);
const delivery = await getDelivery((await testWebhook(webhook.id)).id);
const sent = delivery.event?.type === 'webhook.test' ? delivery.event.data.webhook_id : undefined;
const problem = await problemOf('never');
console.log(
  JSON.stringify({
    accepted,
    page: [page.submissions.length, typeof next],
    cancelled: cancelled.status,
    final: [waited.status, typeof finalizedAt, typeof block],
    history: shown.history.map(({ status }) => status).filter((status) => status === 'tracking' || status === 'finalized'),
    secret: secret?.startsWith('whsec_'),
    urls: webhooks.map(({ url }) => url),
    delivery: [delivery.event_type, sent === webhook.id],
    problem: [problem.status, problem.type],
  }),
);

// What the document does not allow is an error of the compiler.
export const refused = [
  // @ts-expect-error
  () => list({ limit: 'many' }),
  // @ts-expect-error
  () => list({ status: 'done' }),
  // @ts-expect-error
  () => track({ id: finalId }),
  // @ts-expect-error
  () => createWebhook({ types: ['submission.*'] }),
  // @ts-expect-error
  () => getDelivery('1'),
  // @ts-expect-error
  () => shown.unheard_of,
  // @ts-expect-error
  () => shown.data.block_number,
  // @ts-expect-error
  () => shown.finalized_at.length,
];
`;

it('a TypeScript client that openapi-typescript generates compiles in strict mode, works with the server, and refuses wrong requests', async () => {
  symlinkSync(MODULES, join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  const document = await fetch(`${app.url}/openapi.json`);
  writeFileSync(join(folder, 'openapi.json'), await document.text());
  const generator = 'pinned-openapi-generators/node_modules/openapi-typescript/bin/cli.js';
  const files = ['openapi.json', '--output', 'client.ts'];
  await run(
    process.execPath,
    [join(MODULES, generator), ...files, '--default-non-nullable=false'],
    { cwd: folder },
  );
  writeFileSync(join(folder, 'use.ts'), PROGRAM);
  const types = ['--types', 'node', '--typeRoots', join(MODULES, '@types')];
  const compiled = run(
    join(MODULES, '.bin/tsc'),
    ['--ignoreConfig', ...OPTIONS, ...types, 'use.ts'],
    { cwd: folder },
  );
  await compiled.catch(({ stdout }) => expect.fail(stdout));

  // The upstream does not know the second id, and rejects none of this form.
  const [finalId, cancelledId] = [app.submit(), randomUUID()];
  const { stdout } = await run(
    process.execPath,
    ['use.ts', app.url, ADMIN_TOKEN, finalId, cancelledId],
    { cwd: folder },
  );
  expect(JSON.parse(stdout)).toEqual({
    accepted: 2,
    page: [1, 'string'],
    cancelled: 'cancelled',
    final: ['finalized', 'string', 'number'],
    history: ['tracking', 'finalized'],
    secret: true,
    urls: expect.arrayContaining(['https://hooks.example.com/', null]),
    delivery: ['webhook.test', true],
    problem: [404, 'urn:dawatch:problem:not-found'],
  });
});
