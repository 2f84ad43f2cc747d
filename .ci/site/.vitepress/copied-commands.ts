/** An element or a text of the tree that Shiki makes of a block of code. */
export type Node = {
  type: string;
  value?: string;
  tagName?: string;
  properties?: { class?: string };
  children?: Node[];
};

/** VitePress does not copy nodes of this class. */
const ignored = (...children: Node[]): Node => ({
  type: 'element',
  tagName: 'span',
  properties: { class: 'vp-copy-ignore' },
  children,
});

const textOf = ({ value = '', children = [] }: Node): string =>
  value + children.map(textOf).join('');

/** Takes the first characters off the first text below a node. */
function cut(node: Node, count: number): void {
  let first: Node | undefined = node;
  while (first?.children) [first] = first.children;
  if (first?.value !== undefined) first.value = first.value.slice(count);
}

/**
 * A transformer of Shiki: the copy button of a block with prompts copies the commands, without the
 * prompts and without what the commands print.
 */
export const copiedCommands = {
  name: 'copied-commands',
  code(this: { options: { lang: string } }, code: Node) {
    if (this.options.lang !== 'console') return;
    let continues = false;
    let copied = false;
    code.children = (code.children ?? []).map((line) => {
      if (line.type === 'text') return copied ? line : ignored(line);
      const text = textOf(line);
      const isCommand = text.startsWith('$ ');
      copied = isCommand || continues;
      continues = copied && /\\$|; do$/.test(text);
      if (!copied) return ignored(line);
      if (!isCommand) return line;
      cut(line, 2);
      line.children = [ignored({ type: 'text', value: '$ ' }), ...(line.children ?? [])];
      return line;
    });
  },
};
