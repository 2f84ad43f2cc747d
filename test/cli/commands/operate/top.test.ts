import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { plain } from '../../../../src/cli/output.ts';
import type { Alert, Overview } from '../../../../src/client/index.ts';
import { frame, type View } from '../../../../src/operations/top-command.ts';
import { API_KEY, openApp } from '../../../support/app/running-app.ts';
import { MAIN } from '../../../support/processes/child-process.ts';
import { cli } from '../../../support/processes/cli.ts';
import { serve } from '../../../support/servers/upstream-server.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

const HOME = '\u001b[H';
/** The escape codes that show the cursor and restore the previous screen. */
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';

const minute = {
  time_to_finality_p50_s: null,
  time_to_finality_p99_s: null,
  detection_lag_p50_s: null,
  detection_lag_p99_s: null,
};
const OVERVIEW: Overview = {
  at: '2026-01-02T03:04:05.000Z',
  submissions: {
    tracking: 12,
    pending: 3,
    failing: 1,
    finalized: 48_211,
    failed: 0,
    unknown: 0,
    rejected: 0,
    expired: 0,
    cancelled: 0,
  },
  per_minute: [0, 7, 14, 3].map((finalized) => ({
    ...minute,
    at: '2026-01-02T03:04:00.000Z',
    finalized,
    polls: null,
  })),
  last_hour: {
    finalized: 7_201,
    time_to_finality_s: { mean: 53.1, p50: 52.4, p90: 62.2, p99: 171.6 },
    detection_lag_s: { mean: 0.37, p50: 0.31, p90: 0.68, p99: 1.12 },
    polls_per_submission: 1.52,
    fixed_5s_polls_per_submission: 11.1,
  },
  upstreams: [
    {
      name: 'default',
      state: 'closed',
      tracked: 151,
      in_flight: 2,
      budget: { limit: 100, window_ms: 10_000, used: 12 },
    },
    {
      name: 'b',
      state: 'unauthorized',
      tracked: 1,
      in_flight: 0,
      budget: { limit: 5, window_ms: 1_000, used: 5 },
    },
  ],
  oldest_open: [
    {
      submission_id: 'a\u001b[2J',
      upstream: 'default',
      status: 'failing',
      tracked_at: '',
      age_s: 840,
    },
    { submission_id: 's2', upstream: 'default', status: 'pending', tracked_at: '', age_s: 90_000 },
  ],
  deliveries: { waiting: 3, dead: 2, oldest_waiting_at: '2026-01-02T03:03:35.000Z' },
  readers: 2,
  workers: null,
};
const ALERT: Alert = {
  id: 17,
  rule: 'upstream_down',
  subject: 'b',
  summary: 'The upstream b is not responding',
  count: 1,
  since: '2026-01-02T03:00:05.000Z',
  firing: true,
  resolved_at: null,
  acknowledged: null,
  muted_until: null,
  link: '/#/',
};
const ALERTS: Alert[] = [
  ALERT,
  { ...ALERT, id: 16, acknowledged: { at: ALERT.since, by: 'on call' } },
  { ...ALERT, id: 15, muted_until: '2026-01-02T05:00:00.000Z' },
];
const VIEW: View = {
  address: 'http://127.0.0.1:8080',
  overview: OVERVIEW,
  alerts: ALERTS,
  error: undefined,
};

describe('a frame', () => {
  it('shows all statistics', () => {
    expect(
      frame(VIEW, 100, 40, plain).join('\n'),
    ).toBe(`dawatch   http://127.0.0.1:8080   2026-01-02T03:04:05.000Z

alerts         1 firing   1 acknowledged   1 muted
               4 min   The upstream b is not responding

submissions    tracking 12   pending 3   failing 1   finalized 48,211   failed 0   unknown 0
               rejected 0   expired 0   cancelled 0

finalized      14 in the last minute, 7,201 in the last hour
               ▁▅█▃
to finality    p50 52 s, p90 62 s, p99 3 min
lag            p50 0.3 s, p90 0.7 s, p99 1.1 s (upper bound)
requests       1.5 per submission; polling every 5 s: 11.1

upstreams      default   up                151 tracked   2 in flight   12 of 100 requests per 10 s
               b         refuses the key   1 tracked     0 in flight   5 of 5 requests per 1 s
deliveries     3 waiting, the oldest for 30 s   2 dead letters
feed           2 readers

oldest open    14 min   failing   a\\u001b[2J   default
               25 h     pending   s2           default`);
  });

  it('shows unknown values as not known', () => {
    const { last_hour, ...rest } = OVERVIEW;
    const empty = {
      finalized: 0,
      time_to_finality_s: null,
      detection_lag_s: null,
      polls_per_submission: null,
      fixed_5s_polls_per_submission: null,
    };
    const overview = {
      ...rest,
      last_hour: empty,
      per_minute: [],
      oldest_open: [],
      upstreams: [],
      workers: 4,
    };
    const text = frame({ ...VIEW, overview, alerts: [] }, 100, 40, plain).join('\n');
    expect(text).toContain('alerts         none firing');
    expect(text.match(/not known/g)).toHaveLength(3);
    expect(text).toContain('2 readers   4 workers');
  });

  it.each([
    [40, 10],
    [20, 5],
    [1, 1],
    [300, 100],
  ])('fits into %i columns and %i rows', (columns, rows) => {
    const lines = frame(VIEW, columns, rows, plain);
    expect(lines.length).toBeLessThanOrEqual(rows);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns);
  });

  it('keeps the last overview while the server is unavailable', () => {
    const lines = frame({ ...VIEW, error: 'no answer' }, 100, 40, plain);
    expect(lines[1]).toBe('disconnected: no answer; retrying');
    expect(lines[2]).toContain('alerts');
    expect(
      frame({ ...VIEW, overview: undefined, error: 'no answer' }, 100, 40, plain),
    ).toHaveLength(2);
  });
});

describe('dawatch top', () => {
  it('prints one frame if stdout is not a terminal', async () => {
    const app = await openApp({ database: join(tempFolder(), 'dawatch.db') });
    onTestFinished(() => app.close());
    const { code, stdout } = await cli(['top'], { env: { DAWATCH_URL: app.url } });
    expect([code, stdout.split('\n')[0]]).toEqual([
      0,
      expect.stringMatching(`^dawatch   ${app.url} `),
    ]);
    expect(stdout).toMatch(/^upstreams +default +up +0 tracked/m);
  });

  it('reports an unreachable server at once', async () => {
    expect(await cli(['top'], { env: { DAWATCH_URL: 'http://127.0.0.1:1' } })).toMatchObject({
      code: 5,
      stdout: '',
    });
  });

  it.skipIf(spawnSync('script', ['--version']).status !== 0)(
    'takes over the terminal, continues once the server is back, and restores the terminal',
    async () => {
      let isAway = false;
      const { url } = await serve((request, response) => {
        const isList = request.url?.startsWith('/v1/alerts');
        if (isAway) request.socket.destroy();
        else
          response.end(JSON.stringify(isList ? { alerts: ALERTS, next_cursor: null } : OVERVIEW));
      });
      const command = `stty cols 80 rows 24; "${process.execPath}" "${MAIN}" top --interval 250ms; echo "ended with $?"`;
      const env = {
        PATH: process.env.PATH,
        TERM: 'xterm',
        SHELL: '/bin/sh',
        DAWATCH_API_KEY: API_KEY,
        DAWATCH_URL: url,
      };
      const child = spawn('script', ['-qfc', command, '/dev/null'], { env });
      onTestFinished(() => void child.kill('SIGKILL'));
      let output = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
      const waitForText = (text: string) =>
        vi.waitFor(() => expect(output).toContain(text), 10_000);
      await waitForText('48,211');
      isAway = true;
      await waitForText('disconnected: no response');
      isAway = false;
      await vi.waitFor(
        () =>
          expect(output.slice(output.lastIndexOf(HOME))).toMatch(/^(?!.*disconnected).*48,211/s),
        10_000,
      );
      child.stdin.write('q');
      await once(child, 'close');
      expect(output.slice(output.lastIndexOf(HOME))).toContain(`${LEAVE}ended with 0`);
    },
  );
});
