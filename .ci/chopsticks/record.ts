// Records what chopsticks says in test/polling/chain/recorded-node.ndjson. First run
// npm run test:chain, which installs it.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connectRaw, startChopsticks } from '../../test/polling/chain/support/chopsticks.ts';
import type { BuiltBlock } from '../../test/polling/chain/support/node-conformance.ts';
import type { RecordingHead, Step } from '../../test/polling/chain/support/recorded-node.ts';
import chopsticks from './package.json' with { type: 'json' };

const FILE = join(import.meta.dirname, '../../test/polling/chain/recorded-node.ndjson');

const node = await startChopsticks();
const { transaction } = node;
if (transaction === null) throw new Error('there is no transaction');
const connection = await connectRaw(node.url);

/** Records the responses to calls, and the notifications since the previous step. */
async function step(newest: BuiltBlock, calls: [string, ...unknown[]][]): Promise<Step> {
  const heads = connection.notifications.splice(0);
  const responses: Step['responses'] = [];
  for (const [method, ...params] of calls)
    responses.push({ method, params, response: await connection.exchange(method, params) });
  return { newest, heads, responses };
}
const hashOf = ({ block_number }: BuiltBlock): [string, number] => [
  'chain_getBlockHash',
  block_number,
];

const steps = [
  await step(transaction, [
    ['system_chain'],
    ['chain_getBlockHash', 0],
    ['chain_subscribeFinalizedHeads'],
    ['chain_getFinalizedHead'],
    hashOf(transaction),
    ['chain_getBlock', transaction.block_hash],
    ['chain_getBlockHash', transaction.block_number + 1],
    ['eth_blockNumber'],
  ]),
];
// The first block is announced after the response.
while (connection.notifications.length === 0) await new Promise(setImmediate);
steps[0]?.heads.push(...connection.notifications.splice(0));
const built = await connection.build(1);
steps.push(await step(built, [hashOf(built)]));
const newest = await connection.build(3);
steps.push(await step(newest, [hashOf(newest)]));
const replaced = await connection.replace();
steps.push(await step(replaced, [hashOf(replaced)]));
connection.close();
await node.stop();

const head: RecordingHead = { recorded: chopsticks.dependencies, transaction };
const lines = [head, ...steps].map((line) => `${JSON.stringify(line)}\n`);
writeFileSync(FILE, lines.join(''));
