import { join } from 'node:path';
import { expect, it } from 'vitest';
import { call, pathOf, post, trackedOf } from '../support/app/http-calls.ts';
import { API_KEY, appForTest } from '../support/app/running-app.ts';
import { context, observation } from '../support/ledger/domain.ts';
import { openLedger, trackRequest, trackRequests } from '../support/ledger/ledger-file.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { eventually } from '../support/until.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const CHECK_MS = 60_000;
const FAR = 1e14;

/** A ledger with 50 submissions that became final in 1970, and an open one. */
function oldLedger(): string {
  const file = join(tempFolder(), 'ledger.db');
  const ledger = openLedger({ file });
  ledger.track(trackRequests(50), 0);
  ledger.record(
    trackRequests(50).map(({ submissionId }) => observation('finalized', 5, submissionId)),
    context(),
  );
  ledger.track([trackRequest('open', { deadlineAt: FAR, graceEndsAt: FAR, stuckAt: FAR })], 0);
  ledger.close();
  return file;
}

it('a server deletes expired data while it serves, and reports it everywhere', async () => {
  const clock = new HeldClock(CHECK_MS);
  let log = '';
  const onLog = (line: string) => {
    log += line;
  };
  const app = await appForTest({
    database: oldLedger(),
    clock,
    onLog,
    tuning: { alertCheckMs: 3_600_000 },
    retention: { submissions_days: 30 },
  });
  expect((await call(app.url, pathOf('s7'))).status).toBe(200);
  clock.fire(CHECK_MS);
  await eventually(() => expect(log).toContain('ledger.pruned'));
  expect(log).toContain('"submissions":50');
  expect((await call(app.url, pathOf('s7'))).status).toBe(404);
  expect((await call(app.url, pathOf('open'))).status).toBe(200);
  const feed = await fetch(`${app.url}/v1/events?after=0`, { headers: { 'x-api-key': API_KEY } });
  let output = '';
  for await (const chunk of feed.body ?? []) {
    output += Buffer.from(chunk).toString();
    if (/feed\.gap\n.*\n\n/.test(output)) break;
  }
  expect(output).toMatch(
    /^: dawatch 0\nid: 0\n\nid: 0\nevent: feed\.gap\ndata: .*"data":\{"after":0,"through":50\}\}\n\n/,
  );
  expect(trackedOf(await post(app.url, { submission_id: 's7' }))).toMatchObject({
    accepted: 1,
    already_tracked: 0,
  });
});
