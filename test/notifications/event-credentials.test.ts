import { expect, it } from 'vitest';
import { readEvents } from '../support/app/event-reader.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { API_KEY, useApp } from '../support/app/running-app.ts';
import { callWith, signInWith } from '../support/app/sessions.ts';
import { storeToken } from '../support/ledger/audit.ts';
import { eventually } from '../support/until.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const HEARTBEAT_MS = 15_000;
const clock = new HeldClock(HEARTBEAT_MS);
const app = useApp({ clock, adminToken: ADMIN_TOKEN, tuning: { alertCheckMs: 3_600_000 } });
const beat = async () => {
  await eventually(() => expect(clock.held(HEARTBEAT_MS)).toBe(1));
  clock.fire(HEARTBEAT_MS);
};
type Headers = Record<string, string | string[]>;
const bearer = (token: string): Headers => ({ 'x-api-key': [], authorization: `Bearer ${token}` });

it.each<[string, () => Headers]>([
  ['the configured service key', () => ({ 'x-api-key': API_KEY })],
  ['an admin token', () => bearer(storeToken(app.database, 'admin').token)],
])('the live feed stays open over three heartbeats with %s', async (_, headers) => {
  const reader = await readEvents(app.url, '', headers());
  for (let beats = 1; beats <= 3; beats++) {
    await beat();
    await eventually(() => expect(reader.heartbeats()).toBe(beats));
  }
  reader.cut();
  await reader.ended;
});

it.each<[string, () => Promise<{ headers: Headers; end: () => unknown }>]>([
  [
    'its token is revoked',
    async () => {
      const { token, revoke } = storeToken(app.database, 'service');
      return { headers: bearer(token), end: revoke };
    },
  ],
  [
    'its session has signed out',
    async () => {
      const { cookie } = await signInWith(app.url, storeToken(app.database, 'service').token);
      const end = () => callWith(app.url, cookie, '/v1/session', { method: 'DELETE' });
      return { headers: { 'x-api-key': [], cookie }, end };
    },
  ],
])('the live feed ends with the first heartbeat after %s', async (_, open) => {
  const { headers, end } = await open();
  const reader = await readEvents(app.url, '', headers);
  await beat();
  await eventually(() => expect(reader.heartbeats()).toBe(1));
  await end();
  await beat();
  await reader.ended;
  expect(reader.heartbeats()).toBe(1);
});
