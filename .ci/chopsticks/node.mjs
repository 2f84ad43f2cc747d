// Runs a node of a chain until its parent process disconnects, and sends the parent its address.
// Arguments: the port, 0 for any; the raw genesis, a file, by default that of Rococo Asset Hub.
// With the latter, block 2 contains a transaction, whose hash the parent receives as well; with
// that of Avail, the parent receives signed extrinsics.
import { readFileSync } from 'node:fs';
import { setupWithServer } from '@acala-network/chopsticks';
import { setStorage } from '@acala-network/chopsticks-core';
import { chainSpec } from '@substrate/connect-known-chains/rococo_v2_2_asset_hub';
import { signExtrinsics } from './extrinsics.mjs';

const SENDER = `0x${'11'.repeat(32)}`;
const [port, file] = process.argv.slice(2);

process.on('disconnect', () => process.exit());
const { addr, chain } = await setupWithServer({
  host: '127.0.0.1',
  port: Number(port),
  genesis: JSON.parse(file ? readFileSync(file, 'utf8') : chainSpec),
  // The runtime of Avail imports functions that only its own node has.
  'allow-unresolved-imports': true,
  'build-block-mode': 'Manual',
  'mock-signature-host': true,
});
process.send({
  url: `ws://${addr}`,
  transaction: file ? null : await includeTransaction(),
  avail: file ? await availOf(chain.head) : null,
});

/** Returns the runtime, and extrinsics that are signed for it. */
async function availOf(head) {
  const runtimeVersion = await head.runtimeVersion;
  const { specName, specVersion } = runtimeVersion;
  const extrinsics = await signExtrinsics(await head.metadata, runtimeVersion);
  return { runtime: `${specName} ${specVersion}`, extrinsics };
}

/** Builds a block with a transaction, and returns its place and the hash that polkadot.js computes. */
async function includeTransaction() {
  const { head } = chain;
  const { tx } = await head.meta;
  const registry = await head.registry;
  const genesisHash = await chain.api.getBlockHash(0);
  const account = { providers: 1, data: { free: '1000000000000000000' } };
  await setStorage(chain, { System: { Account: [[[SENDER], account]] } });
  const call = tx.system.remark(`0x${'ab'.repeat(64)}`);
  const extrinsic = registry.createType('GenericExtrinsic', call);
  const runtimeVersion = await head.runtimeVersion;
  const signed = { blockHash: genesisHash, genesisHash, runtimeVersion, nonce: 0, tip: 0 };
  extrinsic.signFake(SENDER, signed);
  // With mock-signature-host, the node accepts this signature from each sender.
  extrinsic.signature.set(Buffer.from('deadbeef'.padEnd(128, 'cd'), 'hex'));
  await chain.submitExtrinsic(extrinsic.toHex());
  const block = await chain.newBlock();
  return {
    block_number: block.number,
    block_hash: block.hash,
    tx_index: (await block.extrinsics).indexOf(extrinsic.toHex()),
    tx_hash: extrinsic.hash.toHex(),
  };
}
