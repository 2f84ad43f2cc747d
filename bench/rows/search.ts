import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { SubmissionFilter } from '../../src/client/index.ts';
import { contextOfRequest } from '../../src/submissions/transition.ts';
import { Ledger } from '../../src/wiring/ledger-stores.ts';
import type { Row } from '../row.ts';
import { percentile } from '../support/percentiles.ts';
import { startProgram, startServer, temporaryFolder } from '../support/processes.ts';

const SUBMISSIONS = 1_000_000;
const PER_COMMIT = 10_000;
const HOUR_MS = 3_600_000;
/** Submissions are tracked evenly over this time. */
const SPAN_MS = 30 * 24 * HOUR_MS;
/** The time of the newest submission. */
const NEWEST = Date.now();
/** Pages that are read of each search, at most. */
const PAGES = 3;

const SHOPS = ['berlin', 'london', 'paris', 'tokyo'];

/**
 * Every condition, once for few and once for many submissions. Times are relative to the newest
 * submission.
 */
const CONDITIONS: [few: SubmissionFilter, many: SubmissionFilter][] = [
  [{ status: ['failing', 'cancelled'] }, { status: ['finalized', 'pending'] }],
  [{ upstream: 'other' }, { upstream: 'default' }],
  [{ metadata: { order: 4711 } }, { metadata: { shop: 'berlin' } }],
  [
    { tracked_since: hoursBefore(400), tracked_until: hoursBefore(398) },
    { tracked_until: hoursBefore(300) },
  ],
  [
    { ended_since: hoursBefore(600), ended_until: hoursBefore(598) },
    { ended_since: hoursBefore(600) },
  ],
  [{ prefix: 'abc' }, { prefix: 'a' }],
];

/**
 * The time of a page of any search in a million submissions, read over HTTP from a running server.
 */
export const row: Row = {
  rounds: 1,
  metrics: [
    {
      what: `slowest page of any search in ${SUBMISSIONS.toLocaleString('en')} submissions`,
      target: { max: 50 },
      unit: 'ms',
      value: ({ slowestMs = 0 }) => slowestMs,
      context: ({ p50 = 0, p99 = 0, requests = 0 }) =>
        `${requests} requests of ${combinations().length} combinations; p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
    },
  ],
  async open() {
    const folder = temporaryFolder();
    fill(folder.path);
    const upstream = await startProgram<{ url: string }>('support/upstream.ts', ['Pending']);
    const settings = { url: upstream.hello.url, api_key: 'bench' };
    const server = await startServer(folder.path, {
      upstreams: { default: settings, other: settings },
    });
    return {
      async round() {
        const times: number[] = [];
        const timed = async <T>(request: Promise<T>): Promise<T> => {
          const from = performance.now();
          const result = await request;
          times.push(performance.now() - from);
          return result;
        };
        for (const filter of combinations()) {
          let cursor: string | null = '';
          for (let page = 0; page < PAGES && cursor !== null; page++) {
            const after: { cursor?: string } = cursor === '' ? {} : { cursor };
            cursor = (await timed(server.client.list({ ...filter, limit: 100, ...after })))
              .next_cursor;
          }
          await timed(firstCount(server, filter));
        }
        return {
          slowestMs: Math.max(...times),
          p50: percentile(times, 50),
          p99: percentile(times, 99),
          requests: times.length,
        };
      },
      async close() {
        await server.stop();
        await upstream.stop();
        folder.remove();
      },
    };
  },
};

/** Counts what one request examines; the client would send more until the count is complete. */
async function firstCount(
  { url, apiKey }: { url: string; apiKey: string },
  filter: SubmissionFilter,
): Promise<unknown> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter))
    query.set(name, name === 'metadata' ? JSON.stringify(value) : String(value));
  const response = await fetch(`${url}/v1/submission_count?${query}`, {
    headers: { 'x-api-key': apiKey },
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return response.json();
}

/**
 * Returns all combinations of the conditions, each of them absent, for few or for many submissions.
 */
function combinations(): SubmissionFilter[] {
  return CONDITIONS.reduce<SubmissionFilter[]>(
    (all, variants) =>
      all.flatMap((filter) => [
        filter,
        ...variants.map((condition) => ({ ...filter, ...condition })),
      ]),
    [{}],
  );
}

function hoursBefore(hours: number): string {
  return new Date(NEWEST - hours * HOUR_MS).toISOString();
}

/**
 * Fills a ledger: 95 % finalized, 4 % pending, the rest failing and cancelled; 0.1 % of another
 * upstream.
 */
function fill(folder: string): void {
  const first = NEWEST - SPAN_MS;
  const ledger = new Ledger({ file: join(folder, 'ledger.db'), now: first });
  for (const upstream of ['default', 'other']) ledger.upstreams.get(upstream);
  const far = NEWEST + SPAN_MS;
  const limits = { deadlineAt: far, graceEndsAt: far, stuckAt: far, callbackUrl: null };
  for (let from = 0; from < SUBMISSIONS; from += PER_COMMIT) {
    const now = Math.round(first + (from / SUBMISSIONS) * SPAN_MS);
    const requests = Array.from(
      { length: Math.min(PER_COMMIT, SUBMISSIONS - from) },
      (_, index) => ({
        submissionId: randomUUID(),
        upstream: index % 1_000 === 7 ? 'other' : 'default',
        metadata: { order: from + index, shop: SHOPS[index % SHOPS.length] },
        ...limits,
      }),
    );
    ledger.store.track([requests], now);
    ledger.store.record(
      requests.map(({ submissionId }, index) => {
        const seen = {
          submissionId,
          at: now + 60_000,
          durationMs: 1,
          envelope: '{"data":null}',
          blockNumber: null,
        };
        if (index % 25 === 0) return { ...seen, kind: 'pending', state: 'Pending', error: null };
        if (index % 500 === 1) return { ...seen, kind: 'error', state: 'Error', error: 'TIMEOUT' };
        return { ...seen, kind: 'finalized', state: 'Finalized', error: null };
      }),
      contextOfRequest(now + 60_000),
    );
    ledger.store.cancel(requests[0]?.submissionId ?? '', now + 60_000);
  }
  ledger.close();
}
