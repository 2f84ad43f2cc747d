import { describe, expect, test } from 'vitest';
import { openSandbox } from '../open-sandbox.ts';

const ID = '3f0c2b1e-4f0a-4c7e-9a51-0d6b8f5c2a77';

describe('a fault', () => {
  test('replaces the requested number of responses, then responds normally', async () => {
    const sandbox = await openSandbox();
    const id = await sandbox.submit();
    sandbox.injectFault({ kind: 'html_502', count: 2 });
    const statuses = [];
    for (const _ of Array(3)) statuses.push((await sandbox.lookUp(id)).status);
    expect(statuses).toEqual([502, 502, 200]);
  });
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
});
