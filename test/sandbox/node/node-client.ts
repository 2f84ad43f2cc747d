import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import type { Header } from '../../../src/sandbox/chain/header.ts';
import type { SandboxOptionsInput } from '../../../src/sandbox/options.ts';
import { startSandbox } from '../../../src/sandbox/server.ts';
import { createVirtualClock } from '../../support/virtual-time/virtual-clock.ts';
import { START_MS } from '../open-sandbox.ts';

type Reply = { id?: number; result?: unknown; error?: { code: number }; params?: unknown };

/** A sandbox in virtual time, by default in the world `ideal`; closed when the test ends. */
export async function openTimedSandbox(options: SandboxOptionsInput = {}) {
  const clock = createVirtualClock(START_MS);
  const sandbox = await startSandbox({
    options: { world: 'ideal', rowDelayMs: 0, ...options },
    now: clock.now,
    after: clock.after,
  });
  onTestFinished(() => sandbox.close());
  return { ...sandbox, clock };
}

/** Connects to the node of a sandbox over WebSocket. */
export async function connectToNode(url: string) {
  const socket = new WebSocket(url.replace('http:', 'ws:'));
  const closed = Promise.withResolvers<number>();
  const waiting: ((text: string) => void)[] = [];
  /** The notifications so far. */
  const heads: { subscription: string; number: number; header: Header }[] = [];
  socket.addEventListener('close', ({ code }) => closed.resolve(code));
  socket.addEventListener('message', ({ data }) => {
    const text = String(data);
    const message: Reply & { method?: string } = JSON.parse(text);
    if (message.method !== 'chain_finalizedHead') {
      waiting.shift()?.(text);
      return;
    }
    const { subscription, result } = message.params as { subscription: string; result: Header };
    heads.push({ subscription, number: Number(result.number), header: result });
  });
  await new Promise((resolve) => socket.addEventListener('open', resolve));

  /** Sends a text and returns the next response that is no notification. */
  async function exchange(text: string): Promise<unknown> {
    const response = new Promise<string>((resolve) => waiting.push(resolve));
    socket.send(text);
    return JSON.parse(await response);
  }

  async function call<T = unknown>(method: string, ...params: unknown[]): Promise<T> {
    const reply = (await exchange(
      JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    )) as Reply;
    if (reply.error) throw new Error(`error ${reply.error.code}`);
    return reply.result as T;
  }

  return {
    closed: closed.promise,
    exchange,
    call,
    close: () => socket.close(),
    /** Returns the numbers of the heads that were sent so far. */
    async numbers(): Promise<number[]> {
      // Its response follows them.
      await call('system_health');
      return heads.map(({ number }) => number);
    },
    heads,
  };
}
