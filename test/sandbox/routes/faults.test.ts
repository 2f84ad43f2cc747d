import { describe, expect, test } from 'vitest';
import { FAULT_KINDS } from '../../../src/sandbox/routes/fault-responses.ts';
import { openSandbox } from '../open-sandbox.ts';

const ID = '3f0c2b1e-4f0a-4c7e-9a51-0d6b8f5c2a77';

/** Reads a body until it has received enough, then disconnects. */
async function readAtLeast(response: Response, bytes: number): Promise<number> {
  let received = 0;
  for await (const chunk of response.body ?? []) {
    received += chunk.length;
    if (received >= bytes) break;
  }
  return received;
}

describe('a fault', () => {
  test('replaces the requested number of responses, then responds normally', async () => {
    const sandbox = await openSandbox();
    const id = await sandbox.submit();
    expect((await sandbox.order({ kind: 'html_502', count: 2 })).status).toBe(204);
    const statuses = [];
    for (const _ of Array(3)) statuses.push((await sandbox.lookUp(id)).status);
    expect(statuses).toEqual([502, 502, 200]);
  });

  test('can be requested for the users route instead', async () => {
    const sandbox = await openSandbox({ userParams: 'ignored' });
    const id = await sandbox.submit();
    sandbox.injectFault({ kind: 'html_503', target: 'users', count: 1 });
    const headers = { authorization: 'Bearer sandbox-user-token' };
    expect((await sandbox.lookUp(id)).status).toBe(200);
    expect((await sandbox.get('/users/get_user', headers)).status).toBe(503);
    expect((await sandbox.get('/users/get_user', headers)).status).toBe(200);
  });

  test.each([{ kind: 'unheard_of' }, { kind: 'hang', count: 0 }, {}])(
    'is refused when it is %j',
    async (order) => {
      expect((await (await openSandbox()).order(order)).status).toBe(400);
    },
  );
});

describe('the fault', () => {
  test.each([
    ['html_502', 502, 'text/html', expect.stringContaining('502 Bad Gateway')],
    ['html_503', 503, 'text/html', expect.stringContaining('503 Service')],
    ['html_504', 504, 'text/html', expect.stringContaining('504 Gateway')],
    ['empty_502', 502, '', ''],
    ['throttle', 429, 'text/plain', 'Too many requests'],
    ['unauthorized', 401, 'text/plain', 'Invalid API key'],
    ['key_store', 500, 'text/plain', 'Internal error. Contact admin'],
    ['firewall', 403, 'text/html', expect.stringContaining('403 Forbidden')],
    ['database', 500, 'application/json', '{"state":"ERROR","error":"Database connection error"}'],
    ['truncated', 200, 'application/json', expect.stringMatching(/^\{"id".*[^}]$/)],
    ['not_json', 200, 'application/json', expect.stringMatching(/^</)],
    ['empty_200', 200, 'application/json', ''],
  ] as const)('%s returns %i', async (kind, status, type, body) => {
    const sandbox = await openSandbox();
    sandbox.injectFault({ kind, count: 1 });
    const response = await sandbox.lookUp(ID);
    expect([response.status, await response.text()]).toEqual([status, body]);
    expect(response.headers.get('content-type') ?? '').toContain(type);
  });

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

  test('cut ends the connection in the middle of the body', async () => {
    const sandbox = await openSandbox();
    sandbox.injectFault({ kind: 'cut', count: 1 });
    const response = await sandbox.lookUp(ID);
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
  });

  test('drip sends its body byte by byte', async () => {
    const sandbox = await openSandbox();
    sandbox.injectFault({ kind: 'drip', count: 1 });
    const response = await sandbox.lookUp(ID);
    expect(response.status).toBe(200);
    expect(await readAtLeast(response, 2)).toBe(2);
  });

  test('endless sends a body without end', async () => {
    const sandbox = await openSandbox();
    sandbox.injectFault({ kind: 'endless', count: 1 });
    const response = await sandbox.lookUp(ID);
    expect(await readAtLeast(response, 30_000_000)).toBeGreaterThanOrEqual(30_000_000);
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
