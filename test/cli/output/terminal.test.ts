import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Ledger } from '../../../src/wiring/ledger-stores.ts';
import { context, observation } from '../../support/ledger/domain.ts';
import { trackRequest } from '../../support/ledger/ledger-file.ts';
import { cli } from '../../support/processes/cli.ts';
import { inTerminal, isScriptMissing } from '../../support/processes/terminal.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/**
 * A title, C1 introducers of sequences, a bell, overrides and isolates of the text direction, and
 * invisible characters.
 */
const EVIL =
  'x\u001b]0;owned\u0007\u001b[2J\u009b31m\u009d0;t\u009c\u202Eevil\u2066\u2069\u200e\u200f\u061c\u{e0041}\u007f';
/** The escape codes of colours and progress bars, which dawatch itself writes. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: what this looks for
const OWN_ESCAPES = /\u001b\[(?:\?(?:25|7)[hl]|[\d;]*[mKGABJ])/g;
const STEERING = /(?![\n\r])[\p{Cc}\p{Cf}\u2028\u2029]/u;

/** A foreign server that sends hostile text in every field of every response. */
async function evilServer(status = 200): Promise<string> {
  const submission = {
    submission_id: `id${EVIL}`,
    upstream: EVIL,
    status: 'failed',
    upstream_state: EVIL,
    data: { block_number: EVIL, block_hash: EVIL },
    error: EVIL,
    tracked_at: EVIL,
    finalized_at: EVIL,
    deadline_at: EVIL,
    metadata: { [EVIL]: EVIL },
    polls: EVIL,
    history: [{ at: EVIL, status: EVIL, upstream_state: EVIL, error: EVIL }],
  };
  const webhook = {
    id: EVIL,
    url: EVIL,
    types: [EVIL],
    metadata: { [EVIL]: EVIL },
    description: EVIL,
    enabled: false,
  };
  const delivery = {
    ...{
      id: EVIL,
      event_id: EVIL,
      event_type: EVIL,
      submission_id: EVIL,
      destination: EVIL,
      state: EVIL,
    },
    ...{ dead_reason: EVIL, attempts_made: EVIL, created_at: EVIL, ended_at: EVIL, event: null },
    attempts: [{ at: EVIL, duration_ms: 1, http_status: EVIL, error: EVIL, response: EVIL }],
  };
  const httpResponse = {
    ...submission,
    submissions: [submission],
    accepted: 1,
    already_tracked: 0,
    entries: [
      { at: EVIL, caller: EVIL, credential_id: EVIL, action: EVIL, result: EVIL, detail: EVIL },
    ],
    ...{ webhooks: [webhook], deliveries: [delivery], next_cursor: null },
  };
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    const body =
      status >= 400
        ? { title: EVIL, detail: `${EVIL}\ndawatch: all is well` }
        : /\/webhooks\/\w/.test(path)
          ? {
              ...webhook,
              public_keys: [EVIL],
              signature: EVIL,
              created_at: EVIL,
              updated_at: EVIL,
              secret: EVIL,
            }
          : /\/deliveries\/\d/.test(path)
            ? delivery
            : /get_user/.test(path)
              ? { [EVIL]: EVIL, name: EVIL }
              : httpResponse;
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const ADMIN = { DAWATCH_ADMIN_TOKEN: 'an-admin-token-for-tests' };
const COMMANDS: readonly string[][] = [
  ['status'],
  ['status', 'a'],
  ['wait', 'a'],
  ['track', 'a', '--wait'],
  ['cancel', 'a'],
  ['webhooks', 'list'],
  ['webhooks', 'show', 'wh_1'],
  ['webhooks', 'rotate', 'wh_1'],
  ['deliveries', 'list'],
  ['deliveries', 'show', '1'],
  ['users', 'get', '--name', 'a', '--email', 'b@c.example'],
  ['audit'],
];

describe('escapes control characters in every text that a server sends:', () => {
  it.each(COMMANDS.map((args) => [args.join(' '), args] as const))(
    'dawatch %s',
    async (_name, args) => {
      const server = await evilServer();
      for (const json of [[], ['--json']]) {
        const { stdout, stderr } = await cli([...args, ...json], {
          env: { DAWATCH_URL: server, ...ADMIN },
        });
        expect(stdout.length + stderr.length).toBeGreaterThan(0);
        expect(stdout + stderr).not.toMatch(STEERING);
        if (stdout !== '' && json.length > 0)
          for (const line of stdout.trim().split('\n'))
            expect(JSON.stringify(JSON.parse(line))).toContain('\\u001b]0;owned');
      }
    },
  );

  it.each([400, 401, 404, 429, 500])('a refusal with %i is one line', async (status) => {
    const server = await evilServer(status);
    for (const args of [['status', 'a'], ['cancel', 'a'], ['audit'], ['webhooks', 'list']]) {
      const { stdout, stderr, code } = await cli(args, { env: { DAWATCH_URL: server, ...ADMIN } });
      expect([stdout, code === 0]).toEqual(['', false]);
      expect(stderr).not.toMatch(STEERING);
      expect(stderr.trim().split('\n')).toHaveLength(1);
    }
  });

  it.skipIf(isScriptMissing())('escapes them on a pseudo-terminal, too', async () => {
    const server = await evilServer();
    for (const args of [
      ['status'],
      ['status', 'a'],
      ['status', 'a', '--json'],
      ['wait', 'a'],
      ['wait', 'a', '--json'],
    ]) {
      const shown = await inTerminal(args, { env: { DAWATCH_URL: server } });
      expect(shown).toContain('u202e');
      expect(shown.replace(OWN_ESCAPES, ''), args.join(' ')).not.toMatch(STEERING);
    }
  });
});

describe('an export', () => {
  const ledgerWithEvil = () => {
    const file = join(tempFolder(), 'ledger.db');
    const ledger = new Ledger({ file, now: 0 });
    ledger.upstream('default');
    ledger.track([trackRequest('a', { metadata: { [EVIL]: `=1;=2 ${EVIL}` } })], 0);
    ledger.record([{ ...observation('error', 10, 'a'), error: EVIL } as never], context());
    ledger.close();
    return { DAWATCH_DATABASE: file };
  };

  it('to a file contains everything, without loss in JSON', async () => {
    const env = ledgerWithEvil();
    const csv = await cli(
      ['export', '--format', 'csv', '--output', join(tempFolder(), 'out.csv')],
      { env },
    );
    expect(csv.code).toBe(0);
    const { stdout } = await cli(['export'], { env });
    expect(stdout).not.toMatch(STEERING);
    expect(JSON.parse(stdout)).toMatchObject({
      error: EVIL,
      metadata: { [EVIL]: `=1;=2 ${EVIL}` },
    });
  });

  it.skipIf(isScriptMissing())(
    'to a terminal escapes control characters in both formats',
    async () => {
      const env = ledgerWithEvil();
      for (const format of ['ndjson', 'csv']) {
        const shown = await inTerminal(['export', '--format', format], { env });
        expect(shown).toContain('u202e');
        expect(shown.replace(OWN_ESCAPES, ''), format).not.toMatch(STEERING);
      }
    },
  );
});
