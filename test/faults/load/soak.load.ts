import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DawatchClient } from '../../../src/client/index.ts';
import { CRASH_ADMIN_TOKEN, sleep } from '../../support/processes/killable-server.ts';
import { createWebhook } from '../../support/servers/deliveries.ts';
import { deadAddress } from '../../support/servers/upstream-server.ts';
import { prepareWorld } from '../support/world.ts';
import { measure, rises, tableOf } from './steady.ts';

const MINUTES = Number(process.env.SOAK_MINUTES ?? 0.5);
const EVERY_MS = 250;
const PER_ROUND = 5;
const READERS = 10;
/** In so few minutes V8 may not collect garbage, so the test forces it. */
const SHORT_MINUTES = 5;
const COLLECTED = [
  '--expose-gc',
  '--import',
  join(import.meta.dirname, '../support/collected.mjs'),
];

test(`${MINUTES} minutes of combined load: memory and handles stay flat, and nothing is lost`, {
  timeout: (MINUTES + 5) * 60_000,
}, async () => {
  const world = await prepareWorld('soak', {
    sandbox: { timeoutRate: 0.05, regressRate: 0.05, regressAfterS: 10 },
    // One connection each, opened when polls coincide: so few are all open after the warm-up, so
    // that none of them seems to leak.
    upstream: { budget: { requests: 400, per_s: 1, concurrency: 8 } },
    settings: { log: { level: 'warn' } },
  });
  await world.start({ nodeOptions: MINUTES < SHORT_MINUTES ? COLLECTED : [] });
  const { client, url } = world.server;
  // This receiver refuses every connection throughout the test.
  const unreachable = await deletableWebhook(url, `${await deadAddress()}/hook`);
  const measuring = measure(world.server);
  const until = performance.now() + MINUTES * 60_000;
  const isOver = () => performance.now() > until;

  const track = async () => {
    while (!isOver()) {
      await world.track(PER_ROUND);
      await sleep(EVERY_MS);
    }
  };
  const takeSample = async () => {
    while (!isOver()) {
      const { submissions } = await client.list({ limit: 50 });
      const [one] = submissions;
      if (one)
        await Promise.all([client.get(one.submission_id), client.wait(one.submission_id, 1)]);
      await Promise.all([client.overview(), client.pacing()]);
      await fetch(`${url}/v1/submissions`, { method: 'POST', body: '{' }).then((response) =>
        response.text(),
      );
      await sleep(EVERY_MS);
    }
  };
  const read = async () => {
    let after = 0;
    while (!isOver()) {
      const leave = new AbortController();
      setTimeout(() => leave.abort(), world.between(100, 5_000));
      for await (const { seq } of client.events({ after, signal: leave.signal })) {
        after = seq;
        if (isOver()) break;
      }
      await sleep(EVERY_MS);
    }
  };
  await Promise.all([track(), takeSample(), ...Array.from({ length: READERS }, read)]);
  const windows = await measuring.end();
  await unreachable.delete();
  if (windows)
    console.log(`${world.expected.size} submissions in ${MINUTES} minutes\n${tableOf(windows)}`);
  expect(rises(windows ?? [])).toEqual([]);
  // V8 returns the memory of collected garbage late.
  await world.expectSurvived({ memoryMiB: 400 });
});

async function deletableWebhook(serverUrl: string, receiverUrl: string) {
  await createWebhook(serverUrl, receiverUrl);
  const { webhooks } = new DawatchClient({ url: serverUrl, token: CRASH_ADMIN_TOKEN });
  return {
    async delete(): Promise<void> {
      for (const webhook of (await webhooks.list()).webhooks)
        if (webhook.url === receiverUrl) await webhooks.delete(webhook.id);
    },
  };
}
