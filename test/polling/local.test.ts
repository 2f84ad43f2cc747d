import { systemClock } from '../../src/lib/clock.ts';
import { createLocalEngine } from '../../src/polling/poll-engine.ts';
import { openClient } from '../support/servers/upstream-server.ts';
import { describeEngine } from './engine-conformance.ts';

describeEngine('the local engine', ({ url, apiKey, timeoutMs }) => {
  const client = openClient(url, { apiKey, timeoutMs, connections: 50 });
  return createLocalEngine({
    clock: systemClock,
    sendPoll: (_upstream, submissionId) => client.poll(submissionId),
  });
});
