import { vi } from 'vitest';
import { describeEngine } from '../../polling/engine-conformance.ts';
import { openEngine, openWorker } from '../../support/redis/bullmq-rig.ts';
import { openClient } from '../../support/servers/upstream-server.ts';

vi.mock('ioredis', () => import('./ioredis.ts'));
vi.mock('bullmq', () => import('./bullmq.ts'));

const REDIS = { url: 'redis://model' };

// test/redis/engine.test.ts runs the same contract with the packages and a real Redis.
describeEngine('the BullMQ engine with the model of Redis', async ({ url, apiKey, timeoutMs }) => {
  const client = openClient(url, { apiKey, timeoutMs, connections: 50 });
  const sendPoll = (_upstream: string, submissionId: string) =>
    client.getSubmissionInfo(submissionId);
  const local = async () => Promise.reject(new Error('polled by this process'));
  const server = openEngine(REDIS, { local, timeoutMs, leaseMs: timeoutMs * 2 + 10_000 });
  openWorker(REDIS, { sendPoll, timeoutMs });
  openWorker(REDIS, { sendPoll, timeoutMs });
  await server.sees(2);
  return server.engine;
});
