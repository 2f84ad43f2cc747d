import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
/** The documents of users; those of contributors describe this repository. */
export const PAGES = [
  'README.md',
  'SECURITY.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
  'src/client/README.md',
  'src/pacing/README.md',
];

/** A fenced block, or an indented one. */
export type Block = {
  page: string;
  /** Number of its first line in the page. */
  line: number;
  /** As the fence names it; empty if it does not, and for indented blocks. */
  language: string;
  text: string;
  /** The file in which the reader stores it, which its first comment names: `// enqueue.mjs: …`. */
  file: string | undefined;
};

/** Returns the blocks of a page in their order. */
export function blocksOf(page: string): Block[] {
  const lines = readFileSync(join(ROOT, page), 'utf8').split('\n');
  const blocks: Block[] = [];
  let indented: Block | undefined;
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? '';
    const fence = /^( *)```(\w*)$/.exec(line);
    if (fence) {
      const [, indentation = '', language = ''] = fence;
      const end = lines.indexOf(`${indentation}\`\`\``, index + 1);
      if (end < 0) throw new Error(`${page}:${index + 1}: the block has no end`);
      const text = lines.slice(index + 1, end).map((each) => each.slice(indentation.length));
      blocks.push(block(page, index + 2, language, text));
      index = end;
    } else if (/^ {4}\S/.test(line) && indented) indented.text += `${line.trim()}\n`;
    else if (/^ {4}\S/.test(line) && lines[index - 1] === '')
      indented = blocks[blocks.push(block(page, index + 1, '', [line.trim()])) - 1];
    else indented = undefined;
  }
  return blocks;
}

function block(page: string, line: number, language: string, lines: string[]): Block {
  const file = /^(?:\/\/|#) (\S*\w\.\w+)(?::|$)/.exec(
    lines[lines[0] === '<?php' ? 1 : 0] ?? '',
  )?.[1];
  return { page, line, language, text: `${lines.join('\n')}\n`, file };
}

/** Stores an example of a page in a folder. Returns its path. */
export function storeExample(page: string, file: string, folder: string): string {
  const example = blocksOf(page).find((each) => each.file === file);
  if (example === undefined) throw new Error(`${page} has no example ${file}`);
  const path = join(folder, basename(file));
  writeFileSync(path, example.text);
  return path;
}

/** A command, and the line of the page in which it begins. */
export type Command = { at: string; text: string };

/** Returns the commands of a block: those behind a prompt, or each line of a script. */
export function commandsOf({ page, line, language, text: code }: Block): Command[] {
  const isScript = language === 'sh';
  const commands: Command[] = [];
  let continues = false;
  for (const [index, each] of code.trimEnd().split('\n').entries()) {
    const last = commands.at(-1);
    if (continues && last) last.text += `\n${each}`;
    else if (isScript || each.startsWith('$ '))
      commands.push({ at: `${page}:${line + index}`, text: each.replace(/^\$ /, '') });
    else continue;
    continues = /\\$|; do$/.test(each);
  }
  return commands.map(({ at, text: command }) => ({
    at,
    text: command.replace(/ +#[^"'\n]*$/, '').trim(),
  }));
}

export const isCommands = ({ language }: Block): boolean => ['console', 'sh'].includes(language);
