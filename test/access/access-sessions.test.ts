import { expect, it } from 'vitest';
import { SERVER } from '../../src/lib/actor.ts';
import { openLedger } from '../support/ledger/ledger-file.ts';

it('a credential has at most 100 sessions, and a further one ends the oldest', () => {
  const { sessions } = openLedger();
  const hashOf = (index: number) => Buffer.alloc(32, index);
  const begin = (index: number, credential: number) =>
    sessions.begin(
      {
        hash: hashOf(index),
        credentialHash: hashOf(credential),
        replaces: undefined,
      },
      { actor: SERVER, detail: 'token', now: index },
    );
  begin(200, 251);
  for (let index = 1; index <= 102; index += 1) begin(index, 250);
  expect([1, 2, 3, 102, 200].map((index) => sessions.find(hashOf(index))?.createdAt)).toEqual([
    undefined,
    undefined,
    3,
    102,
    200,
  ]);
});
