/** The form of the names of tenants. A name is part of file names, queue names and labels. */
export const TENANT_PATTERN = /^[a-z0-9][a-z0-9_-]{0,31}$/;

/** No tenant has this name. It stands for what belongs to none. */
export const NO_TENANT = 'default';

/** Returns the name of a queue for a tenant: `dawatch-events-acme`. null: the queue of what belongs to no tenant. */
export function queueOf(queue: string, tenant: string | null): string {
  return tenant === null ? queue : `${queue}-${tenant}`;
}
