import { BaseSequencer, type TestSequencerConstructor, type TestSpecification } from 'vitest/node';

/**
 * Returns a sequencer that starts the files whose names contain one of these parts first, in their
 * order, so that no long file runs alone at the end.
 */
export function longestFirst(parts: readonly string[]): TestSequencerConstructor {
  const rankOf = ({ moduleId }: TestSpecification) => {
    const rank = parts.findIndex((part) => moduleId.includes(part));
    return rank < 0 ? parts.length : rank;
  };
  return class extends BaseSequencer {
    override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
      const sorted = await super.sort(files);
      return sorted.toSorted((a, b) => rankOf(a) - rankOf(b));
    }
  };
}
