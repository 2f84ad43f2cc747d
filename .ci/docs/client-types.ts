import { execFileSync } from 'node:child_process';

export const FILE = 'src/client/api.ts';

/** Returns the file with the types of the HTTP interface. `document`: the text of /openapi.json. */
export function clientTypes(document: string): string {
  const types = execFileSync(process.execPath, ['.ci/openapi-generators/client-types.mjs'], {
    input: document,
  });
  return execFileSync('biome', ['format', `--stdin-file-path=${FILE}`], {
    input: types,
    encoding: 'utf8',
  });
}
