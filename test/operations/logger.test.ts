import { Writable } from 'node:stream';
import type { Logger } from 'pino';
import { describe, expect, it } from 'vitest';
import { LedgerError } from '../../src/ledger/errors.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { secretsOf } from '../../src/operations/config/load.ts';
import { createLog } from '../../src/operations/logging/logger.ts';
import { logMonitor } from '../../src/polling/listeners.ts';
import type { RecordedChange } from '../../src/submissions/store-results.ts';
import { transition } from '../../src/submissions/transition.ts';
import type { Config } from '../../src/wiring/settings.ts';
import {
  applied,
  context,
  finalEnvelope,
  observation,
  submission,
  VERDICTS,
  type VerdictName,
} from '../support/ledger/domain.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const MAX_LINE_BYTES = 16 * 1024;
const SECRET = 'hunter2-must-never-be-shown';
const SETTINGS = [
  { path: 'redis.url', value: 'redis://:p%2Fss%22word-1@redis:6379' },
  { path: 'server.port', value: 8080 },
];
const NASTY =
  'bad\n{"level":"info"}\r\u001b[31mred\u001b]8;;http://x\u0007\u009b2J\u2028\u202eevil\u0000';

type Line = Record<string, unknown>;

function openLog({
  level = 'debug',
  isTTY = false,
  repeatsPerMinute = 0,
  clock,
  secrets = [],
}: {
  level?: Config['log']['level'];
  isTTY?: boolean;
  repeatsPerMinute?: number;
  clock?: Clock;
  secrets?: readonly string[];
} = {}) {
  let text = '';
  const stream = new Writable({
    write(chunk, _encoding, done) {
      text += chunk;
      done();
    },
  });
  const log = createLog({ level }, Object.assign(stream, { isTTY }), {
    ...(clock && { clock }),
    secrets,
    repeatsPerMinute,
  });
  /** Returns the written lines; asserts that none is too long. */
  const raw = () => {
    const lines = text.split('\n').slice(0, -1);
    for (const line of lines) expect(Buffer.byteLength(line)).toBeLessThan(MAX_LINE_BYTES);
    return lines;
  };
  /** The logger as untyped code can call it. */
  const loose = log as unknown as Logger;
  return {
    log,
    loose,
    raw,
    text: () => text,
    lines: () => raw().map((line): Line => JSON.parse(line)),
  };
}

function recorded(
  before: Parameters<typeof submission>[0],
  verdict: Parameters<typeof observation>[0],
  at: number,
): RecordedChange {
  const known = submission(before);
  const response = observation(verdict, at);
  const result = transition(known, response, context());
  const change = { at, result, previousStatus: known.status, detection: null };
  return { observation: response, ...change, submission: applied(known, result, at) };
}

describe('a line', () => {
  it('is JSON with a time, a level and the stable name of the event', () => {
    const { log, lines } = openLog();
    log.info({ url: 'http://x' }, 'server.started');
    expect(lines()).toEqual([
      {
        level: 'info',
        time: expect.stringMatching(/^\d{4}-.*Z$/),
        url: 'http://x',
        event: 'server.started',
      },
    ]);
  });

  it('is formatted for people on a terminal', () => {
    const { log, text } = openLog({ isTTY: true });
    log.info({ polls: 3 }, 'submission.finalized');
    expect(text()).toMatch(/INFO.*submission\.finalized.*"polls":3/);
  });

  const NAMES = 'x-api-key authorization api_key apiKey bearer token secret cookie';
  it.each(NAMES.split(' '))('shows no %s in any field', (name) => {
    const { loose, text } = openLog();
    const headers = { [name]: SECRET };
    loose.info({ ...headers, headers, req: { headers }, list: [headers] }, 'server.started');
    loose.error({ err: Object.assign(new Error('x'), headers) }, 'http.failed');
    expect(text()).not.toContain(SECRET);
    expect(text()).toContain('[redacted]');
  });

  it('redacts secrets of the settings in every line', () => {
    for (const format of ['json', 'pretty'] as const) {
      const { log, text } = openLog({
        isTTY: format === 'pretty',
        secrets: secretsOf(SETTINGS as never),
      });
      const words = `WRONGPASS p/ss"word-1 and ${JSON.stringify('p/ss"word-1')} and p%2Fss%22word-1`;
      log.error({ message: words }, 'redis.disconnected');
      log.error(
        { err: new Error(`redis://:p%2Fss%22word-1@redis:6379 refused`) },
        'dispatcher.failed',
      );
      expect(text()).not.toMatch(/word-1/);
      expect(text()).toContain('[redacted]');
    }
  });
});

it('lines that cannot be written are dropped and counted', () => {
  const written: string[] = [];
  let isFull = true;
  const log = createLog(
    { level: 'info' },
    {
      write(line, onWritten) {
        if (!isFull) written.push(line);
        onWritten(isFull ? new Error('ENOSPC') : null);
      },
    },
  );
  log.info('server.started');
  log.info('http.listening');
  isFull = false;
  log.info('server.stopped');
  expect(log.linesDropped()).toBe(2);
  expect(written).toEqual([expect.stringContaining('server.stopped')]);
});

it('a reader of the pipe that has stopped costs lines, not memory', () => {
  const waiting: string[] = [];
  const pipe = {
    writableLength: 0,
    write(line: string) {
      waiting.push(line);
      this.writableLength += line.length;
    },
  };
  const log = createLog({ level: 'info' }, pipe);
  const fields = { reason: 'x'.repeat(10_000) };
  for (let count = 0; count < 2_000; count++) log.info(fields, 'server.started');
  expect(pipe.writableLength).toBeLessThan(17 * 2 ** 20);
  expect(log.linesDropped()).toBe(2_000 - waiting.length);
});

describe('repeated lines', () => {
  it('are suppressed at warn and error, and counted at the end of the minute', () => {
    const clock = new HeldClock(60_000);
    const { log, lines } = openLog({ repeatsPerMinute: 2, clock });
    for (let at = 0; at < 5; at++) {
      log.error({ upstream: 'a' }, 'upstream.down');
      log.warn({ destination: 'webhook:1', delivery_id: at }, 'delivery.failed');
      log.info({ upstream: 'a' }, 'upstream.up');
    }
    clock.fire(60_000);
    const names = lines().map(({ event }) => event);
    const count = (name: string) => names.filter((event) => event === name).length;
    expect([count('upstream.down'), count('delivery.failed'), count('upstream.up')]).toEqual([
      2, 2, 5,
    ]);
    expect(lines().slice(-2)).toMatchObject([
      { event: 'log.suppressed', suppressed_event: 'upstream.down', suppressed: 3 },
      { event: 'log.suppressed', suppressed_event: 'delivery.failed', suppressed: 3 },
    ]);
    log.error({ upstream: 'a' }, 'upstream.down');
    expect(lines().at(-1)).toMatchObject({ event: 'upstream.down' });
  });

  it('are counted at the end of the log, too', () => {
    const clock = new HeldClock(60_000);
    const { log, loose, lines } = openLog({ level: 'warn', repeatsPerMinute: 1, clock });
    for (const request_id of ['1', '2', '3'])
      loose.child({ request_id }).error({ err: new Error('x') }, 'http.failed');
    log.end();
    expect(lines()).toMatchObject([
      { request_id: '1' },
      { event: 'log.suppressed', suppressed_event: 'http.failed', suppressed: 2 },
    ]);
  });
});

describe('a message of a library', () => {
  it('has an event name and no fields of the library', () => {
    const { loose, lines } = openLog();
    const reply = { url: '/users?email=ada@example.com' };
    loose.warn(
      `Reply was already sent in the "/users/get_user?email=ada@example.com" (GET) route\n${NASTY}`,
    );
    loose.info({ res: reply, req: reply }, 'stream closed prematurely');
    loose.error({ err: new Error('first'), res: reply }, 'Promise errored');
    loose.error(new Error('alone'));
    expect(lines()).toMatchObject([
      {
        level: 'warn',
        event: 'http.library_message',
        message: expect.stringMatching(/^Reply was already sent in the/),
      },
      { level: 'info', event: 'http.library_message', message: 'stream closed prematurely' },
      {
        level: 'error',
        event: 'http.library_message',
        message: 'Promise errored',
        err: { message: 'first' },
      },
      { level: 'error', event: 'http.library_message', err: { message: 'alone' } },
    ]);
    expect(JSON.stringify(lines())).not.toContain('ada@');
  });
});

describe('the monitor', () => {
  it('writes one line with all fields for a finalization', () => {
    const { log, lines } = openLog({ level: 'info' });
    const response = JSON.stringify(finalEnvelope({ created_at: '1970-01-01T00:00:01.000' }));
    const before = { status: 'pending', polls: 4, trackedAt: 2_000, version: 2 } as const;
    logMonitor(log).recorded?.(
      recorded(before, { ...VERDICTS.finalized, envelope: response }, 9_000),
    );
    expect(lines()).toEqual([
      {
        level: 'info',
        time: expect.any(String),
        event: 'submission.finalized',
        submission_id: submission().submissionId,
        upstream: 'default',
        status: 'finalized',
        previous_status: 'pending',
        upstream_state: 'Finalized',
        block_number: 1_234_567,
        block_hash: '0xb1',
        tracked_ms: 7_000,
        time_to_finality_ms: 8_000,
        polls: 4,
      },
    ]);
  });

  it('measures an expired submission until its deadline, not until its last poll', () => {
    const { log, lines } = openLog({ level: 'info' });
    const ended = submission({ status: 'expired', trackedAt: 2_000, polledAt: 8_000 });
    logMonitor(log).expired?.({ submission: ended, previousStatus: 'tracking', at: 10_000 });
    expect(lines()).toMatchObject([{ event: 'submission.expired', tracked_ms: 8_000 }]);
  });

  it.each<[VerdictName, number, string[]]>([
    ['pending', 500, ['debug poll.observed']],
    ['error', 500, ['debug poll.observed', 'info submission.failing']],
    ['rejected', 500, ['debug poll.observed', 'warn submission.rejected']],
    ['not_found', 1_500, ['debug poll.observed']],
    ['pending', 2_500, ['debug poll.observed', 'warn submission.stuck']],
    ['pending', 12_000, ['debug poll.observed', 'warn submission.expired']],
  ])('%s after %i ms is formatted as %j', (verdict, at, expected) => {
    const { log, lines } = openLog();
    logMonitor(log).recorded?.(recorded({}, verdict, at));
    expect(lines().map(({ level, event }) => `${level} ${event}`)).toEqual(expected);
  });
});

describe('text of the upstream', () => {
  const nasty = { kind: 'error', state: NASTY, error: NASTY + 'x'.repeat(1_000_000) } as const;

  it.each(['json', 'pretty'] as const)(
    'can neither imitate a line nor control a terminal (%s)',
    (format) => {
      const { log, raw, text } = openLog({ isTTY: format === 'pretty' });
      const data = {
        block_number: 'n'.repeat(60_000) + NASTY,
        block_hash: NASTY,
        created_at: NASTY,
      };
      const response = JSON.stringify({ state: NASTY, error: NASTY, data });
      logMonitor(log).recorded?.(recorded({}, { ...nasty, envelope: response }, 500));
      logMonitor(log).recorded?.(
        recorded({}, { ...VERDICTS.finalized, state: NASTY, envelope: response }, 500),
      );
      logMonitor(log).recorded?.(recorded({}, { ...VERDICTS.rejected, error: nasty.error }, 500));
      logMonitor(log).writeFailed?.(new Error(nasty.error));
      expect(raw().filter((line) => line.startsWith('{"level"')).length).toBe(
        format === 'json' ? raw().length : 0,
      );
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
      expect(text().replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u202e]/);
      expect(text()).toContain('\\\\u001b');
    },
  );
});

it('a ledger that cannot be used is logged once, again with another cause, and again after it worked', () => {
  const { log, text } = openLog();
  const monitor = logMonitor(log);
  const locked = () => monitor.writeFailed?.(new LedgerError('locked', 'the ledger is locked'));
  const logged = () => text().split('"ledger.write_failed"').length - 1;
  locked();
  locked();
  expect(logged()).toBe(1);
  monitor.writeFailed?.(new LedgerError('full', 'the disk is full'));
  expect(logged()).toBe(2);
  monitor.ledgerRecovered?.();
  monitor.writeFailed?.(new LedgerError('full', 'the disk is full'));
  expect(logged()).toBe(3);
  // Damaged rows do not make the ledger unusable.
  monitor.writeFailed?.(new Error('a damaged row'));
  monitor.writeFailed?.(new Error('a damaged row'));
  expect(logged()).toBe(5);
});
