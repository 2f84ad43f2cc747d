import { createRequire } from 'node:module';

/**
 * The version of this package, which finds its own package.json by its name, from the sources and
 * from dist.
 */
export const VERSION: string = createRequire(import.meta.url)('dawatch/package.json').version;
