import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Proof } from '../../src/client/index.ts';
import { InvalidProofError, verifyProof } from '../../src/client/proof.ts';
import type { UpstreamConfig } from '../../src/polling/settings.ts';
import { blake2b256 } from '../../src/sandbox/chain/extrinsics.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/server.ts';
import { openTimedSandbox } from '../sandbox/node/node-client.ts';
import { readEvents } from '../support/app/event-reader.ts';
import { API_KEY, appForTest } from '../support/app/running-app.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { eventually, until } from '../support/until.ts';

const ADMIN_TOKEN = 'an-admin-token-for-tests-0123456789';
const headers = { 'x-api-key': API_KEY, 'content-type': 'application/json' };

type Verified = { status: string; chain: string | null; chain_reason: string | null };
type Read = Verified & { polls: number; history: Verified[] };
type Event = { type: string; data: { alert?: { rule: string; summary: string } } };

async function openSandbox(): Promise<Sandbox> {
  const sandbox = await startSandbox({ options: { speed: 200 } });
  onTestFinished(() => sandbox.close());
  return sandbox;
}

/** An app whose upstream is `sandbox`, and the node of `node`. */
async function open({
  sandbox,
  node = sandbox,
  database = `${tempFolder()}/ledger.db`,
  ...chain
}: { sandbox: { url: string }; node?: { url: string }; database?: string } & Partial<
  UpstreamConfig['chain']
>) {
  const logged: Record<string, unknown>[] = [];
  const app = await appForTest({
    database,
    upstreamUrl: sandbox.url,
    adminToken: ADMIN_TOKEN,
    upstream: {
      chain: {
        urls: [node.url.replace('http', 'ws')],
        verify: 'report',
        verify_data: false,
        ...chain,
      },
    },
    onLog: (line) => logged.push(JSON.parse(line)),
  });
  const reader = await readEvents(app.url, '?after=0', { 'x-api-key': ADMIN_TOKEN });
  const get = async <T>(path: string) =>
    (await (await fetch(`${app.url}${path}`, { headers })).json()) as T;
  const read = (id: string) => get<Read>(`/v1/submissions/${id}`);
  return {
    app,
    database,
    logged,
    read,
    get,
    async connected(): Promise<void> {
      await expect.poll(() => logged.some(({ event }) => event === 'chain.connected')).toBe(true);
    },
    async track(options = {}): Promise<string> {
      const id = (sandbox as Sandbox).model.submit('some data', Date.now());
      const body = JSON.stringify({ submission_ids: [id], ...options });
      await fetch(`${app.url}/v1/submissions`, { method: 'POST', headers, body });
      return id;
    },
    /** Waits until the submission has these fields. */
    until: (id: string, fields: Partial<Verified>) =>
      eventually(async () => expect(await read(id)).toMatchObject(fields)),
    /** Waits for this number of events of a type. Returns all events so far. */
    async eventsUntil(type: string, count = 1): Promise<Event[]> {
      const events = () => reader.received.map(({ body }) => body as Event);
      await until(() => events().filter((event) => event.type === type).length >= count);
      return events();
    },
    metrics: async () => (await fetch(`${app.url}/metrics`, { headers })).text(),
  };
}

it('reports a contradiction once, with an event and an alert', async () => {
  const sandbox = await openSandbox();
  sandbox.setNodeFault({ kind: 'lying', seconds: 60 });
  const { connected, track, until, eventsUntil, logged } = await open({ sandbox });
  await connected();
  const id = await track();
  await until(id, {
    status: 'finalized',
    chain: 'contradicted',
    chain_reason: expect.stringMatching(
      /^block \d+ is 0x[0-9a-f]{64} on the chain, not 0x/,
    ) as never,
  });
  const events = await eventsUntil('alert.raised');
  expect(events.flatMap(({ data }) => data.alert ?? [])).toMatchObject([{ rule: 'contradicted' }]);
  const types = events.map(({ type }) => type);
  expect(types.filter((type) => type === 'submission.contradicted')).toHaveLength(1);
  expect(types).toContain('submission.finalized');
  expect(logged.filter(({ event }) => event === 'submission.contradicted')).toMatchObject([
    { submission_id: id, chain_reason: expect.stringContaining('on the chain, not') },
  ]);
});

it('keeps a submission pending until the chain confirms its block, if that is required, also after a restart', async () => {
  const sandbox = await openSandbox();
  const first = await open({ sandbox, verify: 'require' });
  await first.connected();
  const confirmed = await first.track();
  await first.until(confirmed, { status: 'finalized', chain: 'confirmed', chain_reason: null });
  expect((await first.read(confirmed)).history.at(-1)).toMatchObject({ chain: 'confirmed' });
  expect(await first.metrics()).toMatch(
    /dawatch_chain_verifications_total\{upstream="default",verdict="confirmed"\} [1-9]/,
  );
  sandbox.setNodeFault({ kind: 'lying', seconds: 60 });
  const contradicted = await first.track();
  await first.until(contradicted, { status: 'pending', chain: 'contradicted' });
  await first.app.close();
  const second = await open({ sandbox, verify: 'require', database: first.database });
  expect(await second.read(confirmed)).toMatchObject({ status: 'finalized', chain: 'confirmed' });
  expect(await second.read(contradicted)).toMatchObject({ chain: 'contradicted' });
  sandbox.setNodeFault({ kind: 'none', seconds: 60 });
  await second.until(contradicted, { status: 'finalized', chain: 'confirmed', chain_reason: null });
  const { history } = await second.read(contradicted);
  expect(history.filter(({ chain }) => chain === 'contradicted')).toHaveLength(1);
  const types = (await second.eventsUntil('submission.finalized', 2)).map(({ type }) => type);
  expect(types.filter((type) => type === 'submission.contradicted')).toHaveLength(1);
  expect(types.filter((type) => type === 'submission.finalized')).toHaveLength(2);
});

it('verifies nothing if it is off, and shows the link to the block explorer from finality on', async () => {
  const sandbox = await openSandbox();
  const explorer = 'https://explorer.example/{block_number}/{tx_index}';
  const { app, connected, track, until, get, metrics } = await open({
    ...{ sandbox, verify: 'off', explorer },
  });
  await connected();
  const id = await track();
  await until(id, { status: 'finalized', chain: null, chain_reason: null });
  expect(await metrics()).not.toMatch(/verifications_total\{/);
  type Shown = { data: { block_number: number; tx_index: number }; explorer_url?: string };
  const { data, explorer_url } = await get<Shown>(`/v1/submissions/${id}`);
  expect(explorer_url).toBe(`https://explorer.example/${data.block_number}/${data.tx_index}`);
  const { history } = await get<{ history: object[] }>(`/v1/submissions/${id}`);
  expect(history.some((entry) => 'explorer_url' in entry)).toBe(false);
  const body = JSON.stringify({ submission_ids: ['not-final'] });
  await fetch(`${app.url}/v1/submissions`, { method: 'POST', headers, body });
  expect(await get('/v1/submissions/not-final')).not.toHaveProperty('explorer_url');
});

describe('the data of a submission', () => {
  const hashOf = (data: string) => `0x${blake2b256(Buffer.from(data))}`;

  it('are contradicted without a node if the caller has submitted others', async () => {
    const sandbox = await openSandbox();
    const { app, track, until, read, get, eventsUntil } = await open({ sandbox, urls: [] });
    const wrong = await track({ data_hash: hashOf('other data') });
    const right = await track({ data_hash: hashOf('some data') });
    const chain_reason = `data_hash is ${hashOf('some data')}, not ${hashOf('other data')} that was expected`;
    await until(wrong, { status: 'finalized', chain: 'contradicted', chain_reason });
    await until(right, { status: 'finalized', chain: null });
    const types = (await eventsUntil('submission.contradicted')).map(({ type }) => type);
    expect(types.filter((type) => type === 'submission.contradicted')).toHaveLength(1);
    const contradicted = await get<{ submissions: { submission_id: string }[] }>(
      '/v1/submissions?chain=contradicted',
    );
    expect(contradicted.submissions.map(({ submission_id }) => submission_id)).toEqual([wrong]);
    // The verdict was about other data.
    const body = JSON.stringify({ data_hash: hashOf('some data') });
    await fetch(`${app.url}/v1/submissions/${wrong}`, { method: 'PATCH', headers, body });
    expect(await read(wrong)).toMatchObject({ status: 'finalized', chain: 'unavailable' });
  });

  it('stay pending, if a confirmation is required, until the hash is corrected', async () => {
    const sandbox = await openSandbox();
    const { app, connected, track, until } = await open({ sandbox, verify: 'require' });
    await connected();
    const id = await track({ data_hash: hashOf('other data') });
    await until(id, { status: 'pending', chain: 'contradicted' });
    const body = JSON.stringify({ data_hash: hashOf('some data') });
    await fetch(`${app.url}/v1/submissions/${id}`, { method: 'PATCH', headers, body });
    await until(id, { status: 'finalized', chain: 'confirmed' });
  });

  it('are proved for all 60 submissions of a block, which is fetched once', async () => {
    const sandbox = await openTimedSandbox();
    const fetched = vi.spyOn(sandbox.model, 'extrinsicsOf');
    const { app, connected, get } = await open({ sandbox, verify: 'require', verify_data: true });
    await connected();
    const list = Array.from({ length: 60 }, (_, index) => Buffer.from(`data ${index}`));
    const ids = list.map((data) => sandbox.model.submit(data, sandbox.clock.now()));
    const body = JSON.stringify({ submission_ids: ids });
    await fetch(`${app.url}/v1/submissions`, { method: 'POST', headers, body });
    // The block is produced after a slot, and final two slots later.
    await sandbox.clock.advance(60_000);
    for (const id of ids)
      expect(await get(`/v1/submissions/${id}/wait?timeout_s=240`)).toMatchObject({
        ...{ status: 'finalized', chain: 'confirmed', chain_reason: null },
      });
    expect(fetched).toHaveBeenCalledTimes(1);
    for (const index of [0, 1, 29, 58, 59]) {
      const proof = await get<Proof>(`/v1/submissions/${ids[index]}/proof`);
      const [own, other] = [list[index], list[(index + 1) % 60]] as [Buffer, Buffer];
      verifyProof(proof, own);
      expect(() => verifyProof(proof, other)).toThrow(InvalidProofError);
    }
  });
});
