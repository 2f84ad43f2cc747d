import { describe, expect, it } from 'vitest';
import { type Block, blocksOf, commandsOf, isCommands, PAGES } from '../support/documents.ts';
import { EXCEPTIONS, UNCHECKED } from '../support/unexecuted-blocks.ts';

const blocks = PAGES.flatMap(blocksOf);
const others = blocks.filter(
  (block) => !isCommands(block) && !UNCHECKED.some(([pattern]) => pattern.test(block.text)),
);

describe('every block of the documents', () => {
  it('is executed, checked, or listed here with a reason', () => {
    const checked = ['js', 'ts', 'json', 'yaml', 'ini', 'python', 'php'];
    // The page's Redis executes these.
    const isRedis = (block: Block) => /^ACL /.test(block.text) && block.language === 'text';
    const unknown = others.filter((block) => !checked.includes(block.language) && !isRedis(block));
    unknown.push(...blocks.filter((block) => isCommands(block) && commandsOf(block).length === 0));
    expect(unknown.map(({ page, line }) => `${page}:${line}`)).toEqual([]);
  });

  it('that is an exception still exists', () => {
    const commands = blocks.filter(isCommands).flatMap(commandsOf);
    const unused = EXCEPTIONS.filter(
      ([pattern]) => !commands.some((each) => pattern.test(each.text)),
    );
    const missing = UNCHECKED.filter(
      ([pattern]) => !blocks.some((each) => pattern.test(each.text)),
    );
    expect([...unused, ...missing]).toEqual([]);
  });
});
