import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { createSigner } from '../../src/notifications/channels/webhook.ts';
import { storeExample } from '../support/documents.ts';
import { freePort } from '../support/servers/free-port.ts';
import { tempFolder } from '../support/temp-folder.ts';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const BODY = JSON.stringify({ id: 'evt_7', type: 'webhook.test', data: {} });
const isMissing = (program: string) =>
  !process.env.CI && spawnSync(program, ['--version']).status !== 0;

/** The arguments of each receiver of docs/webhooks.md. */
const RECEIVERS = {
  python3: (port) => [storeExample('docs/webhooks.md', 'receive.py', tempFolder()), String(port)],
  php: (port) => [
    '-S',
    `127.0.0.1:${port}`,
    storeExample('docs/webhooks.md', 'receive.php', tempFolder()),
  ],
} satisfies Record<string, (port: number) => string[]>;

/** Returns the port of a receiver, which accepts two secrets. */
async function startReceiver(program: keyof typeof RECEIVERS): Promise<number> {
  const port = await freePort();
  const child = spawn(program, RECEIVERS[program](port), {
    env: {
      ...process.env,
      PORT: String(port),
      DAWATCH_WEBHOOK_SECRET: `whsec_${'A'.repeat(44)} ${SECRET}`,
    },
    stdio: 'ignore',
  });
  const closed = once(child, 'close');
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await closed;
  });
  while (child.exitCode === null) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await new Promise((resolve) =>
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false)),
    );
    socket.destroy();
    if (isOpen) return port;
    await sleep(50);
  }
  throw new Error(`${program} ended`);
}

const nowS = () => Math.floor(Date.now() / 1_000);
const signed = (timestampS: number, secret = SECRET) =>
  createSigner([secret])({ id: 'evt_7', timestampS, body: BODY });

it.each((['python3', 'php'] as const).filter((program) => !isMissing(program)))(
  'the receiver in docs/webhooks.md for %s accepts only genuine, recent requests',
  async (program) => {
    const port = await startReceiver(program);
    const status = async (headers: Record<string, string>, body = BODY) =>
      (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body })).status;
    const other = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
    expect({
      genuine: await status(signed(nowS())),
      repeated: await status(signed(nowS())),
      'during a rotation': await status(
        createSigner([other, SECRET])({
          id: 'evt_7',
          timestampS: nowS(),
          body: BODY,
        }),
      ),
      'of another secret': await status(signed(nowS(), other)),
      changed: await status(signed(nowS()), `${BODY} `),
      old: await status(signed(nowS() - 301)),
      early: await status(signed(nowS() + 310)),
      unsigned: await status({}),
    }).toEqual({
      genuine: 204,
      repeated: 204,
      'during a rotation': 204,
      'of another secret': 400,
      changed: 400,
      old: 400,
      early: 400,
      unsigned: 400,
    });
  },
);

it.skipIf(isMissing('python3'))(
  'the receiver in docs/webhooks.md for Python refuses a length that is no number without reading on',
  async () => {
    const port = await startReceiver('python3');
    for (const length of ['-1', 'many', '65537']) {
      const socket = connect(port, '127.0.0.1');
      onTestFinished(() => void socket.destroy());
      socket.write(`POST / HTTP/1.1\r\nhost: receiver\r\ncontent-length: ${length}\r\n\r\n{}`);
      const [response] = await once(socket, 'data');
      expect(String(response), length).toContain(' 400 ');
    }
  },
);
