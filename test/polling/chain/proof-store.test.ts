import { expect, it } from 'vitest';
import { context, observation, VERDICTS } from '../../support/ledger/domain.ts';
import { openLedger, trackRequests } from '../../support/ledger/ledger-file.ts';

const root = (digit: string) => `0x${digit.repeat(64)}`;
const blockOf = (digit: string) => ({
  ...{ hash: root(digit), header: '{}', dataRoot: root('d'), bridgeRoot: root('0') },
  leaves: [Buffer.alloc(32, 1), Buffer.alloc(32, 2)],
});

/** Two finalized submissions with proofs in the same block. */
function openWithProofs() {
  const ledger = openLedger();
  ledger.track(trackRequests(3), 0);
  const confirm = (id: string, digit: string, leaf: number, at: number) => {
    const proof = { block: ledger.proofs.keep(blockOf(digit)), leaf, dataRoot: root('d') };
    const chain = { verdict: 'confirmed' as const, reason: null, proof };
    ledger.record([observation({ ...VERDICTS.finalized, chain }, at, id)], context());
    return proof;
  };
  return { ledger, confirm, proofs: [confirm('s0', 'a', 0, 5), confirm('s1', 'a', 1, 5)] };
}

it('a block is stored once, and as it was', () => {
  const { ledger, proofs } = openWithProofs();
  expect(ledger.submissions.get('s1')?.proof).toEqual(proofs[1]);
  expect(proofs[1]?.block).toBe(proofs[0]?.block);
  expect(ledger.proofs.find(proofs[0]?.block ?? 0)).toEqual(blockOf('a'));
});

it('retention deletes a block with the last submission that it proves', () => {
  const { ledger, proofs } = openWithProofs();
  const block = proofs[0]?.block ?? 0;
  const prune = (limit: number) =>
    ledger.pruning.submissions({
      after: { endedAt: 0, id: 0 },
      before: { endedAt: 10, id: 0 },
      limit,
    });
  prune(1);
  expect(ledger.proofs.find(block)).toBeDefined();
  prune(1);
  expect(ledger.proofs.find(block)).toBeUndefined();
  expect(ledger.proofs.keep(blockOf('a'))).not.toBe(block);
});

it('a submission whose data change has the proof of the new data only', () => {
  const { ledger, confirm } = openWithProofs();
  const corrected = {
    ...VERDICTS.finalized,
    envelope: '{"state":"Finalized","data":{"block_hash":"0x1"}}',
  };
  ledger.record([observation(corrected, 6, 's0')], context({ recheck: true }));
  expect(ledger.submissions.get('s0')).toMatchObject({ chain: null, proof: null });
  const proof = confirm('s0', 'b', 0, 7);
  expect(ledger.submissions.get('s0')?.proof).toEqual(proof);
  ledger.store.update('s0', { dataHash: root('e') }, 8);
  expect(ledger.submissions.get('s0')).toMatchObject({ chain: 'unavailable', proof: null });
});
