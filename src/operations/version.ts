import { createRequire } from 'node:module';

/** The package finds its own package.json by name, from the sources and from dist. */
export const VERSION: string = createRequire(import.meta.url)('dawatch/package.json').version;
