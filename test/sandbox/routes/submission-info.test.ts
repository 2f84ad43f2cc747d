import { describe, expect, test } from 'vitest';
import { openSandbox } from '../open-sandbox.ts';

const UNKNOWN_ID = '3f0c2b1e-4f0a-4c7e-9a51-0d6b8f5c2a77';
const HASH = expect.stringMatching(/^0x[0-9a-f]{64}$/);
const INTEGER = expect.stringMatching(/^\d{1,39}$/);

const typeOf = (response: Response) => response.headers.get('content-type') ?? '';

describe('a lookup', () => {
  test('of a new submission is Pending, with unknown fields present and null', async () => {
    const sandbox = await openSandbox();
    const id = await sandbox.submit('four');
    const response = await sandbox.lookUp(id);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({
      id,
      state: 'Pending',
      error: null,
      data: {
        user_id: expect.any(String),
        amount_data: '4.00 B',
        created_at: '2025-10-09T08:53:20.000Z',
        fees: null,
        data_billed: null,
        block_number: null,
        block_hash: null,
        tx_hash: null,
        data_hash: null,
        tx_index: null,
      },
    });
  });

  test('of a final submission has every field', async () => {
    const sandbox = await openSandbox();
    const id = await sandbox.submit('four');
    sandbox.clock.ms += 60_000;
    expect(await (await sandbox.lookUp(id)).json()).toEqual({
      id,
      state: 'Finalized',
      error: null,
      data: {
        user_id: expect.any(String),
        amount_data: '4.00 B',
        created_at: '2025-10-09T08:53:20.000Z',
        fees: INTEGER,
        data_billed: INTEGER,
        block_number: expect.any(Number),
        block_hash: HASH,
        tx_hash: HASH,
        // Printed by `printf four | b2sum -l 256`.
        data_hash: '0x20493755a1c406889247aac1a1a8e519a45a68d401f9a49b9c700e1ebcf037b3',
        tx_index: expect.any(Number),
      },
    });
  });
});

describe('a lookup is refused', () => {
  test('with 401 in plain text if the key is missing or wrong', async () => {
    const sandbox = await openSandbox();
    const id = await sandbox.submit();
    const missing = await sandbox.lookUp(id, {});
    expect([missing.status, await missing.text()]).toEqual([401, 'Missing API key']);
    expect(typeOf(missing)).toContain('text/plain');
    const wrong = await sandbox.lookUp(id, { 'x-api-key': 'other' });
    expect([wrong.status, typeOf(wrong)]).toEqual([401, expect.stringContaining('text/plain')]);
  });
});

describe('submitting', () => {
  test.each(['{}', '{'])('is refused with 400 in plain text if the body is %s', async (body) => {
    const { url } = await openSandbox();
    const headers = { 'content-type': 'application/json', 'x-api-key': 'sandbox-key' };
    const response = await fetch(`${url}/v1/submit_data`, { method: 'POST', headers, body });
    expect([response.status, typeOf(response)]).toEqual([
      400,
      expect.stringContaining('text/plain'),
    ]);
  });
});

test('a latency delays the response, and closing does not wait for it', async () => {
  const sandbox = await openSandbox({ latencyMs: 3_600_000, latencyJitterMs: 10 });
  let isSettled = false;
  const settle = () => {
    isSettled = true;
  };
  const response = sandbox.lookUp(UNKNOWN_ID).then(settle, settle);
  await expect.poll(() => sandbox.stats().requests).toBe(1);
  // The node has no latency: complete responses arrive in the meantime.
  for (const _ of Array(5)) await (await fetch(sandbox.url, { method: 'POST', body: '[]' })).text();
  expect(isSettled).toBe(false);
  await Promise.all([sandbox.close(), sandbox.close()]);
  await response;
});
