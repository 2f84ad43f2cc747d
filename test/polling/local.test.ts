import { expect, it, vi } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { createLocalEngine } from '../../src/polling/poll-engine.ts';
import type { Classification } from '../../src/submissions/classify.ts';
import { openClient } from '../support/servers/upstream-server.ts';
import { describeEngine } from './engine-conformance.ts';

const PENDING: Classification = {
  kind: 'pending',
  state: 'Pending',
  error: null,
  envelope: '{"state":"Pending","error":null,"data":null}',
  blockNumber: null,
};

describeEngine('the local engine', ({ url, apiKey, timeoutMs }) => {
  const client = openClient(url, { apiKey, timeoutMs, connections: 50 });
  return createLocalEngine({
    clock: systemClock,
    sendPoll: (_upstream, submissionId) => client.poll(submissionId),
  });
});

it('reports each observation when its response arrives: a hanging request delays no other one', async () => {
  const held = Promise.withResolvers<typeof PENDING>();
  const engine = createLocalEngine({
    clock: systemClock,
    sendPoll: async (_upstream, id) => (id === 'hangs' ? held.promise : PENDING),
  });
  const reported: string[] = [];
  const batch = { upstream: 'default', submissionIds: ['hangs', 'a', 'b'] };
  const ended = engine.poll(batch, ({ submissionId }) => reported.push(submissionId));
  await vi.waitFor(() => expect(reported).toEqual(['a', 'b']));
  held.resolve(PENDING);
  await ended;
  expect(reported).toEqual(['a', 'b', 'hangs']);
});
