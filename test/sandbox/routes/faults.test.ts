import { describe, expect, test } from 'vitest';
import { FAULT_KINDS } from '../../../src/sandbox/routes/fault-responses.ts';
import { openSandbox } from '../open-sandbox.ts';

const ID = '3f0c2b1e-4f0a-4c7e-9a51-0d6b8f5c2a77';

describe('a fault', () => {
  test('replaces the requested number of responses, then responds normally', async () => {
    const sandbox = await openSandbox();
    const id = await sandbox.submit();
    expect((await sandbox.order({ kind: 'html_502', count: 2 })).status).toBe(204);
    const statuses = [];
    for (const _ of Array(3)) statuses.push((await sandbox.lookUp(id)).status);
    expect(statuses).toEqual([502, 502, 200]);
  });

  test.each([{ kind: 'unheard_of' }, { kind: 'hang', count: 0 }, {}])(
    'is refused when it is %j',
    async (order) => {
      expect((await (await openSandbox()).order(order)).status).toBe(400);
    },
  );
});

describe('the fault', () => {
  test('hang sends no response until the sandbox is closed', async () => {
    const sandbox = await openSandbox();
    sandbox.injectFault({ kind: 'hang', count: 1 });
    let isSettled = false;
    const hanging = expect(sandbox.lookUp(ID).finally(() => (isSettled = true))).rejects.toThrow();
    await expect.poll(() => sandbox.stats().requests).toBe(1);
    // Another complete response arrives in the meantime.
    expect((await sandbox.lookUp(ID)).status).toBe(500);
    expect(isSettled).toBe(false);
    await sandbox.close();
    await hanging;
  });

  test('redirect leads to another host and counts the clients that follow it', async () => {
    const sandbox = await openSandbox();
    sandbox.injectFault({ kind: 'redirect', count: 1 });
    const response = await sandbox.lookUp(ID);
    expect(response.status).toBe(302);
    const location = response.headers.get('location') ?? '';
    expect(new URL(location).hostname).not.toBe(new URL(sandbox.url).hostname);
    expect(sandbox.stats().redirectsFollowed).toBe(0);
    await (await fetch(location)).text();
    expect(sandbox.stats().redirectsFollowed).toBe(1);
  });

  test.each(FAULT_KINDS)('%s does not prevent the sandbox from closing', async (kind) => {
    const sandbox = await openSandbox();
    sandbox.injectFault({ kind, count: 1 });
    const response = sandbox.lookUp(ID).catch(() => undefined);
    await expect.poll(() => sandbox.stats().requests).toBe(1);
    await sandbox.close();
    await (await response)?.text().catch(() => '');
    await expect(sandbox.lookUp(ID)).rejects.toThrow();
  });
});
