// name-repository.ts <address of the repository> <tag>: writes the addresses of the repository into
// the manifests, which the registry compares with the provenance, and into the links of README.md,
// which the registry shows outside the repository.
import { readFileSync, writeFileSync } from 'node:fs';
import { withAbsoluteLinks } from './changelog.ts';

const [repository = '', tag = ''] = process.argv.slice(2);
for (const folder of ['.', 'src/client', 'src/pacing']) {
  const file = `${folder}/package.json`;
  const manifest = JSON.parse(readFileSync(file, 'utf8'));
  const url = `git+${repository}.git`;
  Object.assign(manifest, {
    repository: { type: 'git', url, ...(folder !== '.' && { directory: folder }) },
    homepage: `${repository}#readme`,
    bugs: { url: `${repository}/issues` },
  });
  writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`);
}
const readme = withAbsoluteLinks(readFileSync('README.md', 'utf8'), `${repository}/blob/${tag}`);
// The page of an image is no image.
writeFileSync('README.md', readme.replaceAll(/(!\[[^\]]*\]\([^)]+)\)/g, '$1?raw=true)'));
