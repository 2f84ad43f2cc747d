// Prints the section of a version in CHANGELOG.md: the text of its release.
import { readFileSync } from 'node:fs';
import { sectionOf } from './changelog.ts';

const [version = ''] = process.argv.slice(2);
const section = sectionOf(readFileSync('CHANGELOG.md', 'utf8'), version);
if (section === undefined) {
  console.error(`CHANGELOG.md has no section for version ${version || '(none)'}`);
  process.exit(1);
}
console.log(section);
