// Records extrinsics of Avail in test/polling/chain/recorded-extrinsics.ndjson. First run
// npm run test:chain, which installs chopsticks. AVAIL_GENESIS names the genesis, as in these
// tests.
import { writeFileSync } from 'node:fs';
import { connectRaw, startChopsticks } from '../../test/polling/chain/support/chopsticks.ts';
import {
  inOneBlock,
  RECORDING,
  type RecordingHead,
} from '../../test/polling/chain/support/extrinsics.ts';
import chopsticks from './package.json' with { type: 'json' };

/** The tests with a genesis sign longer ones, too. */
const MAX_CHARS = 10_000;

const node = await startChopsticks(0, process.env.AVAIL_GENESIS);
const { avail } = node;
if (avail === null) throw new Error('AVAIL_GENESIS is not set');
const connection = await connectRaw(node.url);
const extrinsics = avail.extrinsics.filter(({ extrinsic }) => extrinsic.length <= MAX_CHARS);
const metadata = `${await connection.call('system_chain')}, ${avail.runtime}`;
const head: RecordingHead = {
  recorded: chopsticks.dependencies,
  source: {
    extension: `${metadata}, whose call and signed extensions are those of avail 49`,
    argument: `${metadata}, changed as in the sources of its successor: CheckAppId replaced by the empty CheckBatchTransactions, and submit_data(app_id, data)`,
  },
  dataRoot: await connection.dataRoot(inOneBlock(extrinsics)),
};
connection.close();
await node.stop();
const lines = [head, ...extrinsics].map((line) => `${JSON.stringify(line)}\n`);
writeFileSync(RECORDING, lines.join(''));
