import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import type { BuiltBlock, NodeUnderTest, Transaction } from './node-conformance.ts';

type Exchange = { method: string; params: unknown[]; response: object };
/** What a node says after it has built blocks: notifications, and later responses. */
export type Step = { newest: BuiltBlock; heads: object[]; responses: Exchange[] };
/** The first line of the recording; each other line is a step. `recorded`: packages of the node. */
export type RecordingHead = { recorded: Record<string, string>; transaction: Transaction };

const lines = readFileSync(join(import.meta.dirname, '../recorded-node.ndjson'), 'utf8')
  .trimEnd()
  .split('\n');
const [{ transaction }, ...steps]: [RecordingHead, ...Step[]] = JSON.parse(`[${lines.join(',')}]`);

/** A node on a free port that repeats the messages of a recording, until the test ends. */
export async function openRecordedNode(): Promise<NodeUnderTest> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  onTestFinished(async () => {
    for (const socket of server.clients) socket.terminate();
    server.close();
    await once(server, 'close');
  });
  let current = 0;

  server.on('connection', (socket) => {
    socket.on('message', (data) => {
      const { id, method, params } = JSON.parse(String(data));
      socket.send(JSON.stringify({ ...responseTo(method, params), id }));
      if (method === 'chain_subscribeFinalizedHeads') announce(socket);
    });
  });

  /** Returns the newest recorded response. */
  function responseTo(method: string, params: unknown[]): object {
    const called = JSON.stringify([method, params]);
    const past = steps.slice(0, current + 1).flatMap(({ responses }) => responses);
    const found = past.findLast((exchange) => {
      return JSON.stringify([exchange.method, exchange.params]) === called;
    });
    if (!found) throw new Error(`the recording has no response to ${called}`);
    return found.response;
  }

  function announce(socket: WebSocket): void {
    for (const head of steps[current]?.heads ?? []) socket.send(JSON.stringify(head));
  }

  async function next(): Promise<BuiltBlock> {
    current += 1;
    const step = steps[current];
    if (!step) throw new Error('the recording has ended');
    for (const socket of server.clients) announce(socket);
    return step.newest;
  }

  const resultOf = (method: string, params: unknown[]) =>
    String((responseTo(method, params) as { result?: unknown }).result);
  const { port } = server.address() as AddressInfo;
  return {
    url: `ws://127.0.0.1:${port}`,
    name: resultOf('system_chain', []),
    genesisHash: resultOf('chain_getBlockHash', [0]),
    transaction,
    build: next,
    replace: next,
  };
}
