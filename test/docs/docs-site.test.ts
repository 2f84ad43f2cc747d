import { expect, it } from 'vitest';
import { copiedCommands, type Node } from '../../.ci/site/.vitepress/copied-commands.ts';

const text = (value: string): Node => ({ type: 'text', value });
const line = (value: string): Node => ({ type: 'element', children: [text(value)] });

/** Returns what the copy button of VitePress copies. */
const copiedFrom = ({ value = '', properties, children = [] }: Node): string =>
  properties?.class === 'vp-copy-ignore' ? '' : value + children.map(copiedFrom).join('');

function block(...lines: string[]): Node {
  const children = lines.flatMap((each) => [text('\n'), line(each)]).slice(1);
  return { type: 'element', children };
}

it('the copy button of the site copies commands without prompts and output', () => {
  const code = block('$ curl -s localhost \\', "    -d '{}'", '{"accepted":1}', '$ dawatch list');
  copiedCommands.code.call({ options: { lang: 'console' } }, code);
  expect(copiedFrom(code)).toBe("curl -s localhost \\\n    -d '{}'\ndawatch list");
});
