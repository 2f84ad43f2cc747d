// Checks the built site: each link leads to a file of the site and to a part that it has, and no
// page loads anything from another host.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const DIST = join(import.meta.dirname, 'dist');
const SITE = 'http://site.invalid/';
/** Elements whose address the browser loads by itself. */
const LOADED = /<(?:script|img|link|iframe|source)\b[^>]*?\b(?:src|href)="([^"]+)"/g;

const pages = readdirSync(DIST, { recursive: true, encoding: 'utf8' }).filter((path) =>
  path.endsWith('.html'),
);
const texts = new Map(pages.map((page) => [page, readFileSync(join(DIST, page), 'utf8')]));
const parts = new Map(
  [...texts].map(([page, text]) => [
    page,
    new Set([...text.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id)),
  ]),
);

/** Returns what is wrong with a link, or undefined. */
function defectOf(page: string, link: string): string | undefined {
  const { origin, pathname, hash } = new URL(link, SITE + page);
  if (`${origin}/` !== SITE) return undefined;
  const path = decodeURIComponent(pathname).slice(1);
  const file = path === '' || path.endsWith('/') ? `${path}index.html` : path;
  if (!existsSync(join(DIST, file))) return 'leads to no file of the site';
  const anchors = parts.get(file);
  return hash === '' || anchors === undefined || anchors.has(decodeURIComponent(hash.slice(1)))
    ? undefined
    : 'leads to no part of the page';
}

let links = 0;
const defects: string[] = [];
for (const [page, text] of texts) {
  for (const [, link = ''] of text.matchAll(/<a\b[^>]*?\bhref="([^"]+)"/g)) {
    links += 1;
    const defect = defectOf(page, link.replaceAll('&amp;', '&'));
    if (defect) defects.push(`${page}: ${link} ${defect}`);
  }
  for (const [, address = ''] of text.matchAll(LOADED))
    if (new URL(address, SITE).origin !== new URL(SITE).origin)
      defects.push(`${page}: loads ${address}`);
}
for (const file of readdirSync(join(DIST, 'assets')).filter((name) => name.endsWith('.css')))
  for (const [, address] of readFileSync(join(DIST, 'assets', file), 'utf8').matchAll(
    /(?:url\(|@import )["']?(https?:[^"')]+)/g,
  ))
    defects.push(`${file}: loads ${address}`);
for (const defect of defects) console.error(defect);
if (defects.length > 0) process.exit(1);
if (pages.length < 40 || links < 1_000)
  throw new Error(`only ${pages.length} pages with ${links} links were read`);
console.log(`links hold: ${links} in ${pages.length} pages`);
