import { describe, expect, it } from 'vitest';
import { cli } from '../../support/processes/cli.ts';
import { inTerminal, isScriptMissing } from '../../support/processes/terminal.ts';
import { serve } from '../../support/servers/upstream-server.ts';

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

/** An object with hostile text in each of these fields. */
const evil = (names: string) => Object.fromEntries(names.split(' ').map((name) => [name, EVIL]));

/** A foreign server that sends hostile text in every field of every response. */
async function evilServer(status = 200): Promise<string> {
  const submission = {
    ...evil('upstream upstream_state error tracked_at finalized_at deadline_at polls'),
    ...evil('finality_at finality_source'),
    ...{ submission_id: `id${EVIL}`, status: 'failed', metadata: { [EVIL]: EVIL } },
    data: evil('block_number block_hash'),
    history: [evil('at status upstream_state error')],
  };
  const everything = {
    ...submission,
    ...{ submissions: [submission], next_cursor: null },
    ...evil('id secret'),
    ...{ not_found: [], remaining: [] },
    entries: [evil('at caller credential_id action result detail')],
  };
  // `wait` waits for the id that it was given.
  const found = { ...everything, submissions: [{ ...submission, submission_id: 'a' }] };
  const { url } = await serve(({ url: path = '' }, response) => {
    if (/\/events/.test(path) && status === 200) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`: ${EVIL}\nid: 1\n\n`);
      return;
    }
    const user = /get_user/.test(path) && { [EVIL]: EVIL, name: EVIL };
    const problem = status >= 400 && { title: EVIL, detail: `${EVIL}\ndawatch: all is well` };
    const body = problem || user || (/lookup/.test(path) ? found : everything);
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  return url;
}

const ADMIN = { DAWATCH_ADMIN_TOKEN: 'an-admin-token-for-tests-0123456789' };
const COMMANDS = [
  'list',
  'status a',
  'wait a',
  'cancel a',
  'webhooks create https://a.example',
  'users get --name a --email b@c.example',
  'api /v1/audit',
];

describe('escapes control characters in every text that a server sends:', () => {
  it.each(COMMANDS)('dawatch %s', async (line) => {
    const server = await evilServer();
    for (const json of line.startsWith('api') ? [[]] : [[], ['--json']]) {
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

  it.each([401, 500])('a refusal with %i is one line', async (status) => {
    const server = await evilServer(status);
    for (const line of ['status a', 'api /v1/audit']) {
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
    for (const line of ['list', 'wait a --json']) {
      const shown = await inTerminal(line.split(' '), { env: { DAWATCH_URL: server } });
      expect(shown).toContain('u202e');
      expect(shown.replace(OWN_ESCAPES, ''), line).not.toMatch(STEERING);
    }
  });
});

it('colors are used if they are forced, and otherwise only on terminals', async () => {
  const submission = {
    status: 'failed',
    submission_id: 's1',
    tracked_at: '2026-01-02T03:04:05.000Z',
    polls: 3,
  };
  const { url } = await serve((_request, response) =>
    response.end(JSON.stringify({ submissions: [submission], next_cursor: null })),
  );
  // `cli` itself refuses every escape code in what it has read.
  expect((await cli(['list'], { env: { DAWATCH_URL: url } })).stdout).toMatch(
    /^failed {2}s1 {2}tracked/,
  );
  await expect(cli(['list'], { env: { DAWATCH_URL: url, FORCE_COLOR: '1' } })).rejects.toThrow(
    /\[31m/,
  );
});
