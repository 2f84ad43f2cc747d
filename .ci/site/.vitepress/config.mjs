import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { copiedCommands } from './copied-commands.ts';

const ROOT = join(import.meta.dirname, '../../..');
// VitePress takes links to files with other endings for pages.
process.env.VITE_EXTRA_EXTENSIONS = 'service,timer';

/** Folders and files to which pages link. */
const FILES = [
  'config',
  'deploy',
  'docker-compose.yml',
  'docs/dashboard',
  'docs/events.schema.json',
];
const PAGES = [
  'docs',
  ...['SECURITY', 'CHANGELOG', 'CONTRIBUTING', 'src/client/README', 'src/pacing/README'].map(
    (page) => `${page}.md`,
  ),
];

/**
 * Links to the pages and files, from a folder below which their compiled modules find Vue: npm
 * installs it here and not in the root.
 */
function linkPages() {
  const folder = join(import.meta.dirname, '../pages');
  rmSync(folder, { recursive: true, force: true });
  for (const path of [...PAGES, ...FILES].filter((path) => !/^docs\//.test(path))) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    symlinkSync(join(ROOT, path), join(folder, path));
  }
  symlinkSync(join(import.meta.dirname, '../landing.md'), join(folder, 'index.md'));
}
linkPages();

/** Returns the sections of docs/README.md with the pages that they list, in their order. */
function sectionsOfIndex() {
  const [, ...sections] = readFileSync(join(ROOT, 'docs/README.md'), 'utf8').split('\n## ');
  return sections.map((section) => ({
    text: section.split('\n')[0],
    items: [...section.matchAll(/^- \[([^\]]+)\]\((\S+)\.md\)/gm)].map(([, text, page]) => ({
      text,
      link: new URL(page, 'file:///docs/').pathname.replace('README', ''),
    })),
  }));
}

function decisions() {
  return readdirSync(join(ROOT, 'docs/decisions'))
    .toSorted()
    .map((file) => ({
      text: readFileSync(join(ROOT, 'docs/decisions', file), 'utf8')
        .split('\n')[0]
        .slice(2),
      link: `/docs/decisions/${file.replace('.md', '')}`,
    }));
}

/** The names of the pages in the sidebar by their files. */
const NAMES = new Map(
  sectionsOfIndex().flatMap(({ items }) =>
    items.map(({ text, link }) => [`${basename(link)}.md`, text]),
  ),
);

/**
 * Removes the markers of generated parts, links to the names that README.md files get, and names
 * linked pages as the sidebar does.
 */
function adapt(md) {
  md.core.ruler.before('normalize', 'adapt', (state) => {
    state.src = state.src
      .replace(/^<!--.*?-->$/gm, '')
      .replace(/(?<=\[)[\w-]+\.md(?=\]\()/g, (file) => NAMES.get(file) ?? file)
      .replace(/(\]\([\w./-]*)README\.md/g, '$1index.md');
  });
}

/** Guides come before decisions and the changelog. The page of the site executes this alone. */
const boostDocument = (page) => (/decisions|CHANGELOG|CONTRIBUTING/.test(page) ? 0.3 : 1);

/** Long lines of code are wrapped, because a reader overlooks what is cut. */
const STYLE = `.vp-doc [class*='language-'] :is(pre, code) {
  white-space: pre-wrap; overflow-wrap: anywhere; width: auto;
}`;

/** The site of the documents: landing.md is its first page, docs/README.md orders its sidebar. */
export default {
  title: 'dawatch',
  description: 'Monitors data-availability submissions until they are final.',
  srcDir: './pages',
  outDir: './dist',
  cacheDir: './node_modules/.cache/vitepress',
  head: [['style', {}, STYLE]],
  base: `${process.env.SITE_BASE ?? ''}/`,
  rewrites: Object.fromEntries(
    ['docs/', 'src/client/', 'src/pacing/'].map((folder) => [
      `${folder}README.md`,
      `${folder}index.md`,
    ]),
  ),
  markdown: { html: false, config: adapt, codeTransformers: [copiedCommands] },
  // Without embedded pictures: check-links.ts takes their addresses for other hosts.
  vite: { resolve: { preserveSymlinks: true }, build: { assetsInlineLimit: 0 } },
  themeConfig: {
    search: { provider: 'local', options: { miniSearch: { searchOptions: { boostDocument } } } },
    outline: [2, 3],
    sidebar: [...sectionsOfIndex(), { text: 'Decisions', collapsed: true, items: decisions() }],
  },
  buildEnd: ({ outDir }) => {
    for (const path of FILES) cpSync(join(ROOT, path), join(outDir, path), { recursive: true });
  },
};
