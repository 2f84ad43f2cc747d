import { execFile, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, inject } from 'vitest';
import { startSandbox } from '../../../src/sandbox/server.ts';
import {
  type Block,
  blocksOf,
  type Command,
  commandsOf,
  isCommands,
} from '../../support/documents.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { freePort } from '../../support/servers/free-port.ts';
import { installEnv, NEWEST_NODE, npxCliOf } from './pack.ts';

const { server: tarball, client, npmCli, nodes } = inject('packages');
const API_KEY = 'a-service-key-for-tests-0123456789';
const ADMIN_TOKEN = 'an-admin-token-for-tests-0123456789';
const TOMORROW = new Date(Date.now() + 86_400_000).toISOString();

/** Programs that run until they are stopped, and their signs of life (machine.sh). */
const UNTIL_STOPPED: [command: RegExp, sign: string][] = [
  [/dawatch sandbox/, '$SANDBOX'],
  [/^node receive-webhooks\.mjs/, 'http://127.0.0.1:$PORT/'],
  [/python3 receive\.py/, 'http://127.0.0.1:$PYTHON_PORT/'],
  [/^php -S/, 'http://127.0.0.1:$PHP_PORT/'],
  [/^node consume\.mjs|^python3 events\.py/, 'output'],
  [/^node follow-events\.mjs/, ''],
];

type World = { url: string; sandboxUrl: string; receiverUrl: string; receiverPort: number };

/** Returns what the reader replaces in a command. */
const replacements = ({
  url,
  sandboxUrl,
  receiverUrl,
  receiverPort,
}: World): [string | RegExp, string][] => [
  [/npx dawatch|dawatch_host/g, 'dawatch'],
  ['install @dawatch/client', `install ${client}`],
  [/(?:http:\/\/)?(?:localhost|127\.0\.0\.1):808[01]/g, url],
  [/(?:http:\/\/)?(?:localhost|127\.0\.0\.1):8790/g, sandboxUrl],
  [/dawatch sandbox$/g, `dawatch sandbox --speed 40 --port ${new URL(sandboxUrl).port}`],
  ['https://upstream.example', sandboxUrl],
  ['DAWATCH_UPSTREAM_API_KEY=your-key', 'DAWATCH_UPSTREAM_API_KEY=sandbox-key'],
  ['a-key-for-a-trial-on-this-machine', API_KEY],
  ['a-token-for-a-trial-on-this-machine', ADMIN_TOKEN],
  [/https:\/\/hooks\.example\.com\/dawatch|https:\/\/billing\.example\/hooks/g, receiverUrl],
  ['127.0.0.1:3000', `127.0.0.1:${receiverPort}`],
  ['PORT=3001', 'PORT=$PYTHON_PORT'],
  ['127.0.0.1:3001', '127.0.0.1:$PYTHON_PORT'],
  ['127.0.0.1:3002', '127.0.0.1:$PHP_PORT'],
  ['https://new.example', url],
  [/2027-01-01T00:00:00Z/g, TOMORROW],
  ['dawatch.db.replaced-20260103T101500.000Z', 'dawatch.db.replaced-*'],
  ['dawatch-2026-01-02.db', 'dawatch-$(date +%F).db'],
];

/** What the reader has before the first command. */
const PREPARED = new Map([
  // It stays open, because the upstream does not know it, and is tracked again later.
  ['docs/backup.md', 'dawatch track 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11'],
  [
    'docs/migrate.md',
    `new_id | jq --raw-input --compact-output '{submission_id: .}' > open.ndjson
     new_id > old.txt`,
  ],
]);

/** Returns the part of the page's script that executes a block of commands. */
function scriptOf(commands: Command[], world: World): string {
  return commands
    .flatMap(({ at, text: command }) => {
      const replaced = replacements(world).reduce(
        (all, [from, to]) => all.replaceAll(from, to),
        command,
      );
      return [`AT=${quote(`${at}: ${command}`)}`, inItsTerminal(command, replaced)];
    })
    .join('\n');
}

function inItsTerminal(command: string, replaced: string): string {
  const program = UNTIL_STOPPED.find(([pattern]) => pattern.test(command));
  const quoted = `"${replaced.replaceAll('"', '\\"')}"`;
  if (/dawatch serve$/.test(command)) return `serve ${quoted}`;
  return program ? `terminal ${quoted} "${program[1]}"` : replaced;
}

const quote = (value: string): string => `'${value.replaceAll("'", `'"'"'`)}'`;

/** A machine with nothing but dawatch, as the README installs it, an upstream and a receiver. */
export async function openMachine(folder: string) {
  const bin = join(folder, 'machine/bin');
  mkdirSync(bin, { recursive: true });
  for (const [name, cli] of Object.entries({ npm: npmCli, npx: npxCliOf(npmCli) }))
    symlinkSync(cli, join(bin, name));
  const path = `${bin}:${nodes[NEWEST_NODE]}:/usr/bin:/bin:/usr/sbin`;
  const environment = {
    ...installEnv(path),
    NO_COLOR: '1',
    npm_config_prefix: join(folder, 'machine'),
  };
  execFileSync('npm', ['install', '--global', tarball], { env: environment, stdio: 'pipe' });
  const sandbox = await startSandbox({ options: { speed: 40 } });
  // As the command does.
  sandbox.model.submit('hello', Date.now(), '6df2c1ce-b11a-4828-b2a6-62bf5b7cb325');
  const receiver = createServer((_request, response) => void response.end());
  const receiverUrl = `http://127.0.0.1:${await portOf(receiver.listen(0, '127.0.0.1'))}/`;
  afterAll(async () => {
    receiver.close();
    await sandbox.close();
  });

  /** Executes the commands of a page in an empty folder. Rejects with their output if one fails. */
  async function execute(page: string, isExecuted: (command: Command) => boolean): Promise<void> {
    const blocks = blocksOf(page);
    const commands = blocks.filter(isCommands).map((block) => commandsOf(block).filter(isExecuted));
    const uses = (pattern: RegExp) => commands.flat().some((each) => pattern.test(each.text));
    const hasSandbox = uses(/dawatch sandbox$/);
    const [port, sandboxPort, receiverPort] = [
      await freePort(),
      await freePort(),
      await freePort(),
    ];
    const world = {
      url: `http://127.0.0.1:${port}`,
      sandboxUrl: hasSandbox ? `http://127.0.0.1:${sandboxPort}` : sandbox.url,
      receiverUrl,
      receiverPort,
    };
    const redis = uses(/bullmq/) ? await startRedis() : undefined;
    const cwd = mkdtempSync(join(folder, 'page-'));
    storeFiles(cwd, { blocks, receiverUrl });
    const script = [
      `source ${join(import.meta.dirname, 'machine.sh')}`,
      ...(redis ? blocks.filter(({ language }) => language === 'text').map(redisCommands) : []),
      'systemctl start',
      PREPARED.get(page) ?? '',
      ...commands.map((each) => scriptOf(each, world)),
      'close_terminals',
    ];
    try {
      await runScript(script.join('\n'), cwd, {
        ...environment,
        HOME: cwd,
        DAWATCH_UPSTREAM_URL: world.sandboxUrl,
        DAWATCH_UPSTREAM_API_KEY: 'sandbox-key',
        DAWATCH_API_KEY: API_KEY,
        DAWATCH_SERVICE_KEY: API_KEY,
        DAWATCH_ADMIN_TOKEN: ADMIN_TOKEN,
        DAWATCH_PORT: String(port),
        DAWATCH_URL: world.url,
        DAWATCH_WEBHOOK_ALLOW: '127.0.0.0/8',
        DAWATCH_WEBHOOK_ALLOW_HTTP: 'true',
        SANDBOX: world.sandboxUrl,
        PORT: String(receiverPort),
        PYTHON_PORT: String(await freePort()),
        PHP_PORT: String(await freePort()),
        ...(redis && { DAWATCH_REDIS_URL: redis.url }),
      });
    } finally {
      await redis?.close();
    }
  }

  /** Runs a program of the machine to its end. */
  function run(program: string, args: string[], cwd: string): Promise<Run> {
    return new Promise((resolve) =>
      execFile(program, args, { cwd, env: environment }, (error, stdout, stderr) =>
        resolve({ code: error ? 1 : 0, output: `${stdout}${stderr}` }),
      ),
    );
  }

  return { execute, run };
}

type Run = { code: number; output: string };

/** Stores the settings and the files that the page names. */
function storeFiles(folder: string, page: { blocks: Block[]; receiverUrl: string }): void {
  const settings = {
    channels: { ops: { type: 'apprise', url: page.receiverUrl } },
  };
  mkdirSync(join(folder, 'config'));
  writeFileSync(join(folder, 'config/dawatch.yaml'), JSON.stringify(settings), { mode: 0o600 });
  for (const { file, text: code } of page.blocks)
    if (file !== undefined) writeFileSync(join(folder, basename(file)), code);
}

const redisCommands = ({ text: code }: Block): string =>
  `redis-cli -e -u "$DAWATCH_REDIS_URL" <<'END'\n${code}END`;

/** Rejects with what it printed if it fails. Leaves no process behind. */
async function runScript(script: string, cwd: string, env: Record<string, string>): Promise<void> {
  const child = spawn('bash', ['-c', script], { cwd, env, detached: true });
  const printed = Promise.all([text(child.stdout), text(child.stderr)]);
  const code = await new Promise((resolve) => child.once('exit', resolve));
  try {
    process.kill(-Number(child.pid), 'SIGKILL');
  } catch {
    // All of its processes have ended.
  }
  if (code !== 0) throw new Error((await printed).map((each) => each.slice(-4_000)).join('\n'));
}

type Listening = { once(event: 'listening', listener: () => void): void; address(): unknown };

function portOf(server: Listening): Promise<number> {
  return new Promise((resolve) =>
    server.once('listening', () => resolve((server.address() as AddressInfo).port)),
  );
}
