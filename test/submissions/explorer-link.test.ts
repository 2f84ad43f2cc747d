import { expect, it } from 'vitest';
import { explorerLink } from '../../src/submissions/explorer-link.ts';

const TEMPLATE = 'https://e.example/{block_number}?tx={tx_hash}#{tx_index}';

it('contains the values, of which none changes the address', () => {
  const data = { block_number: 7, tx_hash: '0xab/?&#', tx_index: 0 };
  expect(explorerLink(TEMPLATE, data)).toBe('https://e.example/7?tx=0xab%2F%3F%26%23#0');
});

it.each([[null], [{}], [{ block_number: 7, tx_hash: null, tx_index: 0 }]])(
  'does not exist without a value: %o',
  (data) => expect(explorerLink(TEMPLATE, data)).toBeUndefined(),
);
