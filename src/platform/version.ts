import { createRequire } from 'node:module';

/** The version of this package. package.json is two folders up, both from src/platform and from the compiled dist/platform. */
export const VERSION: string = createRequire(import.meta.url)('../../package.json').version;
