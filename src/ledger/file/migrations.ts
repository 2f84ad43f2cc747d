import { SCHEMA_1 } from './schema-1.ts';

/** Oldest first. Each runs once, in its own transaction; `user_version` counts those that ran. A released one never changes. */
export const MIGRATIONS: readonly string[] = [SCHEMA_1];
