import { systemClock } from '../../src/clock.ts';
import { createLocalEngine } from '../../src/engines/local.ts';
import { openClient } from '../support/upstream-server.ts';
import { describeEngine } from './engine-conformance.ts';

describeEngine('the local engine', ({ url, apiKey, timeoutMs }) => {
  const client = openClient(url, { apiKey, timeoutMs, connections: 50 });
  return createLocalEngine({
    clock: systemClock,
    ask: (_upstream, submissionId) => client.getSubmissionInfo(submissionId),
  });
});
