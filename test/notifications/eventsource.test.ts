import { EventSource } from 'eventsource';
import { expect, it, onTestFinished, vi } from 'vitest';
import { EVENT_TYPES } from '../../src/submissions/event-types.ts';
import { call, pathOf, post } from '../support/app/http-calls.ts';
import { API_KEY, useApp } from '../support/app/running-app.ts';
import { startCuttingProxy } from '../support/servers/cutting-proxy.ts';

const app = useApp();
const EVENTS = 40;

it('a public EventSource client reads through a cut connection without gap or repeat', async () => {
  const proxy = await startCuttingProxy(app.url);
  const source = new EventSource(`${proxy.url}/v1/events?after=0&type=submission.*`, {
    fetch: (input, init) =>
      fetch(input, { ...init, headers: { ...init.headers, 'x-api-key': API_KEY } }),
  });
  onTestFinished(() => source.close());
  const received: { seq: number; id: string }[] = [];
  let errors = 0;
  source.addEventListener('error', () => {
    errors += 1;
  });
  for (const type of EVENT_TYPES)
    source.addEventListener(type, ({ data, lastEventId }) => {
      const event = JSON.parse(data);
      received.push({ seq: Number(lastEventId), id: event.data.submission.submission_id });
    });
  const has = (count: number) =>
    vi.waitFor(() => expect(received.length).toBeGreaterThanOrEqual(count), {
      timeout: 18_000,
      interval: 5,
    });

  const ids = Array.from({ length: EVENTS }, (_, index) => `s${index}`);
  await post(app.url, { submission_ids: ids });
  for (const [index, id] of ids.entries()) {
    // The client waits 3 s before it reconnects, as the standard requires; events in the meantime
    // must follow then.
    if (index === 20) {
      await has(index);
      proxy.cut();
    }
    await call(app.url, pathOf(id), { method: 'DELETE' });
    if (index === 30) await has(31);
  }
  await has(EVENTS);
  expect(received.map(({ id }) => id)).toEqual(ids);
  expect(received.map(({ seq }) => seq)).toEqual(
    received.map(({ seq }) => seq).toSorted((a, b) => a - b),
  );
  expect(new Set(received.map(({ seq }) => seq)).size).toBe(EVENTS);
  expect(errors).toBeGreaterThanOrEqual(1);
  expect(proxy.connections()).toBeGreaterThanOrEqual(2);
}, 30_000);
