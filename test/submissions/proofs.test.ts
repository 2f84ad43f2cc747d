import { expect, it } from 'vitest';
import { context, observation, VERDICTS } from '../support/ledger/domain.ts';
import { openLedger, trackRequests } from '../support/ledger/ledger-file.ts';

const root = (digit: string) => `0x${digit.repeat(64)}`;
const blockOf = (digit: string) => ({
  ...{ hash: root(digit), header: '0x00', dataRoot: root('d'), bridgeRoot: root('0') },
  leaves: Buffer.alloc(64, 1),
});

/** Two finalized submissions with proofs in the same block. */
function openWithProofs() {
  const ledger = openLedger();
  ledger.track(trackRequests(3), 0);
  const confirm = (id: string, digit: string, leaf: number, at: number) => {
    const proof = { blockHash: root(digit), leaf, dataRoot: root('d') };
    const chain = {
      ...{ verdict: 'confirmed' as const, reason: null },
      proof: { ...proof, block: blockOf(digit) },
    };
    ledger.record([observation({ ...VERDICTS.finalized, chain }, at, id)], context());
    return proof;
  };
  return { ledger, confirm, proofs: [confirm('s0', 'a', 0, 5), confirm('s1', 'a', 1, 5)] };
}

it('retention deletes a block with the last submission that it proves', () => {
  const { ledger, confirm, proofs } = openWithProofs();
  expect(ledger.submissions.get('s1')?.proof).toEqual(proofs[1]);
  const prune = (limit: number) =>
    ledger.pruning.submissions({
      after: { endedAt: 0, id: 0 },
      before: 10,
      limit,
    });
  prune(1);
  expect(ledger.submissions.provenBlock(root('a'))).toBeDefined();
  prune(1);
  expect(ledger.submissions.provenBlock(root('a'))).toBeUndefined();
  // A verdict that was found before is written with its block.
  confirm('s2', 'a', 0, 6);
  expect(ledger.submissions.provenBlock(root('a'))).toEqual(blockOf('a'));
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

it('a reason that asking again does not change replaces one that it may change, once', () => {
  const ledger = openLedger();
  ledger.track(trackRequests(1), 0);
  const late = { verdict: 'unavailable' as const, reason: 'the block was not verified within 1 s' };
  ledger.record([observation({ ...VERDICTS.finalized, chain: late }, 5, 's0')], context());
  const verify = (reason: string, isSettled: boolean) => {
    const stored = ledger.submissions.get('s0') ?? expect.fail('it is not stored');
    const chain = { verdict: 'unavailable' as const, reason, isSettled };
    ledger.store.verify([{ stored, chain, isHeld: false, detection: null }], context());
    return ledger.submissions.get('s0');
  };
  const settled = { chainReason: 'the node lacks the body', version: 3 };
  expect(verify('the node lacks the body', true)).toMatchObject(settled);
  expect(verify('the node lacks the body', true)).toMatchObject(settled);
  expect(verify('no node is connected', false)).toMatchObject(settled);
});

it('a node that prunes later withdraws no verdict', () => {
  const { ledger, proofs } = openWithProofs();
  const stored = ledger.submissions.get('s0') ?? expect.fail('it is not stored');
  const reason = 'the node lacks the body';
  const chain = { verdict: 'unavailable' as const, reason, isSettled: true };
  ledger.record([observation({ ...VERDICTS.finalized, chain }, 6, 's0')], context());
  ledger.store.verify([{ stored, chain, isHeld: false, detection: null }], context());
  expect(ledger.submissions.get('s0')).toMatchObject({ chain: 'confirmed', proof: proofs[0] });
});
