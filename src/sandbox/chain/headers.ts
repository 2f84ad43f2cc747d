import { blockHash } from './digest.ts';
import {
  createHeader,
  dataRootOf,
  type Header,
  hashOfHeader,
  leafOf,
  NO_DATA,
  type Submitted,
} from './header.ts';

/** Newest blocks whose headers are kept. */
const MAX_HEADERS = 100_000;

type Sealed = Submitted & { hash: string; parentHash: string };

/**
 * The headers of produced blocks. A request for a block seals it and all before it: no transaction
 * can be added later. Blocks before the first of the run, and those no longer kept, have random
 * hashes. Hashes are 64 hex digits.
 */
export function createHeaders(seed: number, firstNumber: () => number | undefined) {
  /** Data of the blocks that are not sealed. */
  const open = new Map<number, { leaves: Uint8Array[]; dataBytes: number }>();
  const sealed = new Map<number, Sealed>();
  const numbers = new Map<string, number>();
  let next: number | undefined;

  function sealedAt(number: number): Sealed | undefined {
    next ??= firstNumber();
    for (; next !== undefined && next <= number; next += 1) seal(next);
    return sealed.get(number);
  }

  function seal(number: number): void {
    const { leaves, dataBytes } = open.get(number) ?? { leaves: [], dataBytes: 0 };
    open.delete(number);
    const parentHash = hashOf(number - 1);
    const contents = { parentHash, dataRoot: dataRootOf(leaves), dataBytes };
    const hash = hashOfHeader(createHeader(seed, number, contents));
    sealed.set(number, { hash, ...contents });
    numbers.set(hash, number);
    const oldest = sealed.get(number - MAX_HEADERS);
    if (oldest === undefined) return;
    sealed.delete(number - MAX_HEADERS);
    numbers.delete(oldest.hash);
  }

  function hashOf(number: number): string {
    return sealedAt(number)?.hash ?? blockHash(seed, number);
  }

  return {
    /** Adds data to a block that is not produced yet. */
    add(number: number, data: Uint8Array): void {
      if (data.length === 0) return;
      const block = open.get(number) ?? { leaves: [], dataBytes: 0 };
      block.leaves.push(leafOf(data));
      block.dataBytes += data.length;
      open.set(number, block);
    },
    hashOf,
    headerOf(number: number): Header {
      const parentHash = blockHash(seed, number - 1);
      return createHeader(seed, number, sealedAt(number) ?? { parentHash, ...NO_DATA });
    },
    /** Returns the number of the sealed block with the hash. */
    numberOf: (hash: string) => numbers.get(hash),
  };
}
