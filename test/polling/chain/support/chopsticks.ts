import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import type { SignedExtrinsic } from './extrinsics.ts';
import type { BuiltBlock, Transaction } from './node-conformance.ts';

const PROGRAM = join(import.meta.dirname, '../../../../.ci/chopsticks/node.mjs');
const START_MS = 150_000;
/** Lines of output that an error shows. */
const SHOWN_LINES = 20;
const LATER_MS = 3_600_000;

type Message = { id?: number; result?: unknown; error?: unknown; method?: string };
type Header = { number: string };
/** `transaction`: null with a genesis of a file, which is Avail's. `avail`: null without it. */
type Started = { url: string; transaction: Transaction | null; avail: Avail | null };
type Avail = { runtime: string; extrinsics: SignedExtrinsic[] };

/** Starts chopsticks. `genesis`: a file, by default the genesis of Rococo Asset Hub. */
export async function startChopsticks(port = 0, genesis?: string) {
  const args = [String(port), ...(genesis === undefined ? [] : [genesis])];
  const child = fork(PROGRAM, args, { silent: true });
  try {
    return { ...(await started(child)), stop: () => stop(child) };
  } catch (error) {
    await stop(child);
    throw error;
  }
}

async function started(child: ChildProcess): Promise<Started> {
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text) => output.push(text));
  const message = once(child, 'message', { signal: AbortSignal.timeout(START_MS) });
  const ended = once(child, 'close').then(() => {
    const shown = output.join('').trimEnd().split('\n').slice(-SHOWN_LINES).join('\n');
    throw new Error(`chopsticks ended; npm run test:chain installs it\n${shown}`);
  });
  const [sent] = await Promise.race([message, ended]);
  return sent;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** A connection that builds blocks, and keeps the messages of the node as they are. */
export async function connectRaw(url: string) {
  const socket = new WebSocket(url);
  const waiting = new Map<number, (message: Message) => void>();
  const notifications: Message[] = [];
  socket.on('message', (data) => {
    const message: Message = JSON.parse(String(data));
    if (message.id === undefined) notifications.push(message);
    else waiting.get(message.id)?.(message);
  });
  await once(socket, 'open');
  let id = 0;

  function exchange(method: string, params: unknown[]): Promise<Message> {
    id += 1;
    const { promise, resolve } = Promise.withResolvers<Message>();
    waiting.set(id, resolve);
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    return promise;
  }

  async function call<T>(method: string, ...params: unknown[]): Promise<T> {
    const { result, error } = await exchange(method, params);
    if (error !== undefined) throw new Error(JSON.stringify(error));
    return result as T;
  }

  async function build(count: number): Promise<BuiltBlock> {
    const block_hash = await call<string>('dev_newBlock', { count });
    const { number } = await call<Header>('chain_getHeader', block_hash);
    return { block_number: Number(number), block_hash };
  }

  return {
    exchange,
    call,
    /** The notifications so far. */
    notifications,
    build,
    /** Has the runtime of Avail compute the data root of a block with fewer than 64 extrinsics. */
    dataRoot(extrinsics: readonly string[]): Promise<string> {
      const blockNumber = '01000000';
      const count = Buffer.of(4 * extrinsics.length).toString('hex');
      const list = extrinsics.map((extrinsic) => extrinsic.slice(2)).join('');
      return call(
        'state_call',
        'ExtensionBuilder_build_data_root',
        `0x${blockNumber}${count}${list}`,
      );
    },
    async replace(): Promise<BuiltBlock> {
      const { number } = await call<Header>('chain_getHeader');
      await call('dev_setHead', Number(number) - 1);
      // A block of another time is another block.
      await call('dev_timeTravel', Date.now() + LATER_MS);
      return build(1);
    },
    close: () => socket.close(),
  };
}
