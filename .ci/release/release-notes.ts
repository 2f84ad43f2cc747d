// release-notes.ts <version> [<address of the files>]: prints the section of a version in
// CHANGELOG.md, which is the text of its release. Relative links get the address in front.
import { readFileSync } from 'node:fs';
import { sectionOf, withAbsoluteLinks } from './changelog.ts';

const [version = '', files] = process.argv.slice(2);
const section = sectionOf(readFileSync('CHANGELOG.md', 'utf8'), version);
if (section === undefined) {
  console.error(`CHANGELOG.md has no section for version ${version || '(none)'}`);
  process.exit(1);
}
console.log(files === undefined ? section : withAbsoluteLinks(section, files));
