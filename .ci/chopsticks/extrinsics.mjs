// Signs extrinsics of Avail with development keys, for the tests of what reads them.
import { Keyring } from '@polkadot/keyring';
import { expandMetadata, Metadata, TypeRegistry } from '@polkadot/types';
import { cryptoWaitReady } from '@polkadot/util-crypto';

const MAGIC_AND_VERSION = '0x6d6574610e';
const EXTENSIONS = {
  CheckAppId: { extrinsic: { appId: 'Compact<u32>' }, payload: {} },
  CheckBatchTransactions: { extrinsic: {}, payload: {} },
};
const APP_ID = 100;
const DATA = '0xabcdef';
const ACCOUNT = `0x${'11'.repeat(32)}`;
const HASH = `0x${'22'.repeat(32)}`;
const AVAIL = 10n ** 18n;

/**
 * Returns { name, layout, extrinsic, data } of each; data: null if the extrinsic does not submit
 * data directly. Layout `extension`: encoded with the metadata of the main network; `argument`:
 * with those of its successor, of which only the sources are public.
 */
export async function signExtrinsics(metadata, runtimeVersion) {
  await cryptoWaitReady();
  return [
    ...signAll('extension', metadata, runtimeVersion),
    ...signAll('argument', successorOf(metadata), runtimeVersion),
  ];
}

/** Moves the application from a signed extension to the first argument of submit_data. */
function successorOf(metadata) {
  const registry = new TypeRegistry();
  const v14 = new Metadata(registry, metadata).asV14.toJSON();
  const extensions = v14.extrinsic.signedExtensions;
  const checkAppId = extensions.find(({ identifier }) => identifier === 'CheckAppId');
  const checkWeight = extensions.find(({ identifier }) => identifier === 'CheckWeight');
  const pallet = v14.pallets.find(({ name }) => name === 'DataAvailability');
  const calls = v14.lookup.types.find(({ id }) => id === pallet.calls.type);
  const submitData = calls.type.def.variant.variants.find(({ name }) => name === 'submit_data');
  const appId = { name: 'app_id', type: checkAppId.type, typeName: 'AppId', docs: [] };
  submitData.fields.unshift(appId);
  Object.assign(checkAppId, { ...checkWeight, identifier: 'CheckBatchTransactions' });
  return MAGIC_AND_VERSION + registry.createType('MetadataV14', v14).toHex().slice(2);
}

function signAll(layout, metadata, runtimeVersion) {
  const registry = new TypeRegistry();
  const decoded = new Metadata(registry, metadata);
  registry.setMetadata(decoded, undefined, EXTENSIONS);
  const { dataAvailability, multisig, proxy, sudo, system, timestamp, utility, vector } =
    expandMetadata(registry, decoded).tx;
  const era = registry.createType('ExtrinsicEra', { current: 1_000, period: 64 });
  const extrinsics = [];

  function unsigned(call) {
    return registry.createType('Extrinsic', call, { version: 4 });
  }
  function signed(call, { type = 'sr25519', signer, ...options } = {}) {
    const extrinsic = unsigned(call);
    const fixed = { appId: 0, nonce: 0, tip: 0, blockHash: HASH, genesisHash: HASH };
    const account = new Keyring({ type }).addFromUri('//Alice');
    extrinsic.sign(account, { ...fixed, runtimeVersion, ...options });
    if (signer) extrinsic.inner.signature.set('signer', registry.createType('Address', signer));
    return extrinsic;
  }
  function submitData(data, appId = APP_ID) {
    return dataAvailability.submitData(...(layout === 'argument' ? [appId] : []), data);
  }
  function counts(name, { data = toHex(name), appId = APP_ID, ...options } = {}) {
    const extrinsic = signed(submitData(data, appId), { appId, ...options }).toHex();
    extrinsics.push({ name: `submit_data with ${name}`, layout, extrinsic, data });
  }
  function doesNotCount(name, extrinsic) {
    extrinsics.push({ name, layout, extrinsic: extrinsic.toHex(), data: null });
  }

  for (const bytes of [1, 63, 100, 3_000, 20_000])
    counts(`${bytes} B`, { data: `0x${'a5'.repeat(bytes)}` });
  counts('an ed25519 signature', { type: 'ed25519' });
  counts('an ecdsa signature', { type: 'ecdsa' });
  counts('a mortal era', { era });
  counts('a nonce of 64', { nonce: 64 });
  counts('a nonce of 20,000', { nonce: 20_000 });
  counts('a tip', { tip: 1 });
  counts('a tip of one AVAIL', { tip: AVAIL });
  counts('application 0', { appId: 0 });
  // This application and these data are encoded like the pallet and the call of submit_data.
  counts('application 71', { appId: 71, data: '0x1d01' });
  counts('application 70,000', { appId: 70_000 });
  counts('an account index', { signer: { Index: 5 } });
  counts('long fields', { type: 'ecdsa', era, nonce: 70_000, tip: AVAIL, appId: 70_000 });

  const call = submitData(DATA);
  const bytes = call.toHex();
  const weight = { refTime: 1_000_000, proofSize: 1_000 };
  doesNotCount('submit_data without data', signed(submitData('0x'), { appId: APP_ID }));
  doesNotCount('create_application_key', signed(dataAvailability.createApplicationKey(DATA)));
  doesNotCount('proxy', signed(proxy.proxy(ACCOUNT, null, call)));
  doesNotCount('as_multi_threshold_1', signed(multisig.asMultiThreshold1([ACCOUNT], call)));
  doesNotCount('as_multi', signed(multisig.asMulti(2, [ACCOUNT], null, call, weight)));
  doesNotCount('batch_all', signed(utility.batchAll([call]), { appId: APP_ID }));
  doesNotCount('sudo', signed(sudo.sudo(call)));
  doesNotCount('remark with a call', signed(system.remark(bytes)));
  doesNotCount('remark that ends with a call', signed(system.remark(`0x00${bytes.slice(2)}`)));
  doesNotCount('remark with an extrinsic', signed(system.remark(signed(call).toHex())));
  doesNotCount('send_message', signed(vector.sendMessage({ ArbitraryMessage: DATA }, HASH, 2)));
  doesNotCount('timestamp.set', unsigned(timestamp.set(1_750_000_000_000)));
  doesNotCount('failed_send_message_txs', unsigned(vector.failedSendMessageTxs([])));
  return extrinsics;
}

function toHex(text) {
  return `0x${Buffer.from(text).toString('hex')}`;
}
