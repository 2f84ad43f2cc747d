/** The form of the names of tenants. A name is part of file names, queue names and labels. */
export const TENANT_PATTERN = /^[a-z0-9][a-z0-9_-]{0,31}$/;

/** Reserved name for data without a tenant. */
export const NO_TENANT = 'default';

/** Returns the name of a queue for a tenant, such as `dawatch-events-acme`; for null, the queue for data without a tenant. */
export function queueOf(queue: string, tenant: string | null): string {
  return tenant === null ? queue : `${queue}-${tenant}`;
}
