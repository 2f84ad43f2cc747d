import { describe, expect, it } from 'vitest';
import { type EventReader, readEvents } from '../support/app/event-reader.ts';
import { API_KEY, useApp } from '../support/app/running-app.ts';
import { callWith, signInWith } from '../support/app/sessions.ts';
import { storeToken } from '../support/ledger/audit.ts';
import { eventually } from '../support/until.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const HEARTBEAT_MS = 15_000;
const HEARTBEATS = 3;
const ADMIN_TOKEN = 'an-admin-token-for-tests-0123456789';
const ROLES = ['service', 'admin', 'user'] as const;

type Show = [name: string, headers: (secret: string) => Record<string, string | string[]>];
const WAYS: Show[] = [
  ['x-api-key', (secret) => ({ 'x-api-key': secret })],
  ['a bearer', (secret) => ({ 'x-api-key': [], authorization: `Bearer ${secret}` })],
];

/**
 * In forward mode the upstream has no bearer of its own, so callers send theirs to the user
 * lookups.
 */
describe.each([
  ['with a bearer for the upstream', 'an-upstream-bearer'],
  ['in forward mode', undefined],
])('the live feed %s', (_, bearer) => {
  const clock = new HeldClock(HEARTBEAT_MS);
  const app = useApp({
    clock,
    adminToken: ADMIN_TOKEN,
    tuning: { alertCheckMs: 3_600_000 },
    upstream: { bearer },
  });

  const addToken = (role: (typeof ROLES)[number]) => storeToken(app.database, role);
  const beat = async () => {
    await eventually(() => expect(clock.held(HEARTBEAT_MS)).toBe(1));
    clock.fire(HEARTBEAT_MS);
  };
  const expectOpenAfter = async (reader: EventReader) => {
    for (let beats = 1; beats <= HEARTBEATS; beats++) {
      await beat();
      await eventually(() => expect(reader.heartbeats()).toBe(beats));
    }
    reader.cut();
    await reader.ended;
  };

  describe.each(WAYS)('opened with %s', (_name, headers) => {
    it.each([
      ['the configured service key', () => API_KEY],
      ['an admin token', () => addToken('admin').token],
    ])('stays open over three heartbeats with %s', async (_secret, secretOf) => {
      await expectOpenAfter(await readEvents(app.url, '', headers(secretOf())));
    });

    it('ends with the first heartbeat after the token is revoked', async () => {
      const { token, revoke } = addToken('service');
      const reader = await readEvents(app.url, '', headers(token));
      await beat();
      await eventually(() => expect(reader.heartbeats()).toBe(1));
      revoke();
      await beat();
      await reader.ended;
      expect(reader.heartbeats()).toBe(1);
    });
  });

  it('ends with the first heartbeat after its session has signed out', async () => {
    const { cookie } = await signInWith(app.url, addToken('service').token);
    const reader = await readEvents(app.url, '', { 'x-api-key': [], cookie });
    await beat();
    await eventually(() => expect(reader.heartbeats()).toBe(1));
    await callWith(app.url, cookie, '/v1/session', { method: 'DELETE' });
    await beat();
    await reader.ended;
    expect(reader.heartbeats()).toBe(1);
  });
});
