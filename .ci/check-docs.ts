// npm run check:docs [-- --list]: measures the pages that docs/README.md lists: words, lengths of
// sentences and of lines. Fails above the limits; --list shows what exceeds them. Code blocks and
// generated tables have no words; decisions are not measured.
import { readFileSync } from 'node:fs';

const LIMITS = {
  words: 17_500,
  /** Words of a page of the section Guides. */
  guideWords: 800,
  /** Sentences of text; and those of the cells of tables. */
  sentenceWords: 25,
  averageWords: 14,
  lineCharacters: 120,
  /** Sentences and lines that exceed their limit. */
  longSentences: 0,
  longLines: 0,
};
const SECTIONS = ['Start', 'Guides', 'Reference', 'Concepts'];
/** Lists changes, and nothing that a reader of the documents needs. */
const OTHERS = ['../CHANGELOG.md'];

const [, ...sections] = readFileSync('docs/README.md', 'utf8').split('\n## ');
const pages = sections.flatMap((section) => {
  const name = section.split('\n')[0] ?? '';
  return [...section.matchAll(/^- \[[^\]]+\]\((\S+\.md)\)/gm)].flatMap(([, page = '']) =>
    SECTIONS.includes(name) && !OTHERS.includes(page) ? measure(name, page) : [],
  );
});

/** Returns the text of a page without generated parts and code blocks. */
function withoutCode(text: string): string {
  return text
    .replaceAll(/^<!-- (.+) -->$[\s\S]*?^<!-- end of \1 -->$/gm, '')
    .replaceAll(/^<!-- .* from here -->$[\s\S]*?^<!-- to here -->$/gm, '')
    .replaceAll(/^<!-- generated -->$[\s\S]*/gm, '')
    .replaceAll(/^( *)```[\s\S]*?^\1```$/gm, '');
}

/** A paragraph, an item of a list, or a cell of a table. */
type Block = { isCell: boolean; text: string };

function blocksOf(text: string): Block[] {
  return text
    .replaceAll(/^(?:[-*]|\d+\.) /gm, '\n\n')
    .split(/\n(?:\s*\n)+|\n(?=\|)/)
    .flatMap((block): Block[] => {
      if (/^\s*#/.test(block)) return [];
      if (!/^\s*\|/.test(block)) return [{ isCell: false, text: block }];
      return block.split(/(?<!\\)\|/).map((cell) => ({ isCell: true, text: cell }));
    });
}

function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter((word) => /[\p{L}\d]/u.test(word));
}

function sentencesOf(block: string): string[] {
  return block
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/`[^`]*`/g, 'code')
    .split(/(?<=[.!?:]["*)]*)\s+(?=["*(\p{Lu}]|code)/u)
    .filter((sentence) => wordsOf(sentence).length > 0);
}

function measure(section: string, page: string) {
  const path = new URL(page, 'file:///docs/').pathname.slice(1);
  const text = readFileSync(path, 'utf8');
  const measured = withoutCode(text);
  const blocks = blocksOf(measured).map((block) => ({
    ...block,
    sentences: sentencesOf(block.text),
  }));
  const lengths = blocks
    .filter(({ isCell }) => !isCell)
    .flatMap(({ sentences }) => sentences.map((sentence) => wordsOf(sentence).length));
  return {
    section,
    path,
    words: wordsOf(measured.replaceAll(/\]\([^)]*\)/g, ']')).length,
    lengths,
    long: blocks
      .flatMap(({ sentences }) => sentences)
      .filter((sentence) => wordsOf(sentence).length > LIMITS.sentenceWords),
    // Rows of tables cannot be broken.
    wide: measured
      .split('\n')
      .filter((line) => line.length > LIMITS.lineCharacters && !line.startsWith('|')),
  };
}

const sum = (numbers: number[]) => numbers.reduce((total, each) => total + each, 0);
const mean = (numbers: number[]) => sum(numbers) / Math.max(1, numbers.length);
const row = (name: string, measured: typeof pages) =>
  [
    name.padEnd(24),
    String(sum(measured.map(({ words }) => words))).padStart(7),
    mean(measured.flatMap(({ lengths }) => lengths))
      .toFixed(1)
      .padStart(9),
    String(measured.flatMap(({ long }) => long).length).padStart(7),
    String(measured.flatMap(({ wide }) => wide).length).padStart(7),
  ].join('');

console.log(`${'page'.padEnd(24)}  words  average   long   wide`);
for (const section of SECTIONS) {
  const measured = pages.filter((page) => page.section === section);
  for (const page of measured) console.log(row(page.path.replace('docs/', '  '), [page]));
  console.log(row(section, measured));
}
console.log(row('all', pages));
if (process.argv.includes('--list'))
  for (const { path, long, wide } of pages) {
    for (const sentence of long)
      console.log(`${path}: ${wordsOf(sentence).length} words: ${sentence.trim()}`);
    for (const line of wide) console.log(`${path}: ${line.length} characters: ${line}`);
  }

const measured = {
  words: sum(pages.map(({ words }) => words)),
  averageWords: mean(pages.flatMap(({ lengths }) => lengths)),
  longSentences: pages.flatMap(({ long }) => long).length,
  longLines: pages.flatMap(({ wide }) => wide).length,
  guideWords: Math.max(
    ...pages.filter(({ section }) => section === 'Guides').map(({ words }) => words),
  ),
};
const violations = Object.entries(measured).flatMap(([name, value]) => {
  const limit = LIMITS[name as keyof typeof measured];
  return value > limit ? [`${name}: ${value.toFixed(1)}, at most ${limit}`] : [];
});
for (const violation of violations) console.error(violation);
if (violations.length > 0) process.exit(1);
if (pages.length < 20) throw new Error(`only ${pages.length} pages were read`);
