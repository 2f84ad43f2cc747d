import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cli } from '../../support/processes/cli.ts';
import { inTerminal, isScriptMissing } from '../../support/processes/terminal.ts';

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
  const credential = {
    ...{ id: 1, name: EVIL, person: EVIL, role: EVIL, scopes: [EVIL], created_at: EVIL },
    ...{ expires_at: EVIL, last_used_at: EVIL, revoked_at: EVIL },
    replaced_secrets: [{ valid_until: EVIL, last_used_at: EVIL }],
  };
  const httpResponse = {
    ...submission,
    submissions: [submission],
    credentials: [credential],
    accepted: 1,
    already_tracked: 0,
    entries: [
      { at: EVIL, caller: EVIL, credential_id: EVIL, action: EVIL, result: EVIL, detail: EVIL },
    ],
    ...{
      webhooks: [webhook],
      deliveries: [delivery],
      next_cursor: null,
      not_found: [],
      remaining: [],
    },
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
const COMMANDS = [
  'list',
  'status a',
  'status a --short',
  'wait a',
  'track a --wait',
  'cancel a',
  'webhooks list',
  'webhooks show wh_1',
  'webhooks rotate wh_1',
  'deliveries list',
  'deliveries show 1',
  'users get --name a --email b@c.example',
  'audit',
  'token list',
];

describe('escapes control characters in every text that a server sends:', () => {
  it.each(COMMANDS)('dawatch %s', async (line) => {
    const server = await evilServer();
    for (const json of [[], ['--json']]) {
      const { stdout, stderr } = await cli([...line.split(' '), ...json], {
        env: { DAWATCH_URL: server, ...ADMIN },
      });
      expect(stdout.length + stderr.length).toBeGreaterThan(0);
      expect(stdout + stderr).not.toMatch(STEERING);
      if (stdout !== '' && json.length > 0)
        for (const line of stdout.trim().split('\n'))
          expect(JSON.stringify(JSON.parse(line))).toContain('\\u001b]0;owned');
    }
  });

  it.each([400, 401, 404, 429, 500])('a refusal with %i is one line', async (status) => {
    const server = await evilServer(status);
    for (const line of ['status a', 'audit']) {
      const { stdout, stderr, code } = await cli(line.split(' '), {
        env: { DAWATCH_URL: server, ...ADMIN },
      });
      expect([stdout, code === 0]).toEqual(['', false]);
      expect(stderr).not.toMatch(STEERING);
      expect(stderr.trim().split('\n')).toHaveLength(1);
    }
  });

  it.skipIf(isScriptMissing())('escapes them on a pseudo-terminal, too', async () => {
    const server = await evilServer();
    for (const line of ['list', 'status a', 'status a --json', 'wait a', 'wait a --json']) {
      const shown = await inTerminal(line.split(' '), { env: { DAWATCH_URL: server } });
      expect(shown).toContain('u202e');
      expect(shown.replace(OWN_ESCAPES, ''), line).not.toMatch(STEERING);
    }
  });
});
