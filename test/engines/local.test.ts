import { createLocalEngine } from '../../src/engines/local.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import { openClient } from '../support/servers/upstream-server.ts';
import { describeEngine } from './engine-conformance.ts';

describeEngine('the local engine', ({ url, apiKey, timeoutMs }) => {
  const client = openClient(url, { apiKey, timeoutMs, connections: 50 });
  return createLocalEngine({
    clock: systemClock,
    sendPoll: (_upstream, submissionId) => client.getSubmissionInfo(submissionId),
  });
});
