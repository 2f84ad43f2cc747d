import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { expect, it, onTestFinished } from 'vitest';

const page = readFileSync('docs/python.md', 'utf8');
const hasPython = spawnSync('python3', ['--version']).status === 0;

/** Starts the receiver of the page on a free port, which it prints. */
async function startReceiver(): Promise<number> {
  const program = /```python\n(# receive\.py.*?)```/s
    .exec(page)?.[1]
    ?.replace(
      /^ThreadingHTTPServer\(.*$/m,
      'server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)\nprint(server.server_port, flush=True)\nserver.serve_forever()',
    );
  const receiver = spawn('python3', ['-c', program ?? ''], {
    env: { ...process.env, DAWATCH_WEBHOOK_SECRET: `whsec_${'A'.repeat(32)}` },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  onTestFinished(async () => {
    receiver.kill();
    if (receiver.exitCode === null && receiver.signalCode === null) await once(receiver, 'exit');
  });
  const [port] = await once(createInterface(receiver.stdout), 'line');
  return Number(port);
}

it.skipIf(!hasPython)(
  'the receiver in docs/python.md refuses a length that is no number without reading on',
  async () => {
    const port = await startReceiver();
    for (const length of ['-1', 'many', '65537']) {
      const socket = connect(port, '127.0.0.1');
      onTestFinished(() => void socket.destroy());
      socket.write(`POST / HTTP/1.1\r\nhost: receiver\r\ncontent-length: ${length}\r\n\r\n{}`);
      const [response] = await once(socket, 'data');
      expect(String(response), length).toContain(' 400 ');
    }
  },
);
