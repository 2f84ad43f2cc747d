import type { FastifyReply, FastifyRequest } from 'fastify';
import { TENANT_PATTERN } from '../../domain/access/tenant.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { type Problem, sendProblem } from '../problems.ts';
import type { Services } from '../services.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The tenant that the request concerns; undefined: data without a tenant. */
    tenant?: Tenant | undefined;
  }
  interface FastifyContextConfig {
    /** The route works with the data of the tenant of the request. Other routes refuse credentials of tenants. */
    isOfTenant?: boolean;
  }
}

export type Tenant = {
  name: string;
  services: Services;
  /** Aborts when the tenant is removed or the server stops. */
  closing: AbortSignal;
  /** 0: no limit. */
  requestsPerMinute: () => number;
};

/** The tenants of the process. */
export type TenantDirectory = {
  get(name: string): Tenant | undefined;
  readonly all: readonly { tenant: Tenant; settings: TenantSettings; metrics: Metrics }[];
  /** Ends the feeds and waiting requests of clients of tenants. */
  endRequests(): void;
};
export type MeasuredTenants = Pick<TenantDirectory, 'all'>;

/** 0: no limit. */
type TenantSettings = { max_open: number; requests_per_minute: number; weight: number };

/** Selects a tenant for a credential that belongs to none. */
const TENANT_HEADER = 'dawatch-tenant';

/** Returns a hook that sets the tenant of a request whose caller is known. It runs after every hook that sets the caller. */
export function selectTenant(find: TenantDirectory['get']) {
  return (request: FastifyRequest, reply: FastifyReply, _payload: unknown, done: () => void): void => {
    const header = request.raw.headersDistinct[TENANT_HEADER];
    if (!request.caller || (request.caller.tenant === null && header === undefined)) {
      done();
      return;
    }
    const selected = tenantOf(request, header, find);
    if ('status' in selected) {
      sendProblem(reply, selected);
      return;
    }
    request.tenant = selected;
    done();
  };
}

function tenantOf(
  request: FastifyRequest,
  header: string[] | undefined,
  find: TenantDirectory['get'],
): Tenant | Problem {
  const { caller, routeOptions } = request;
  const own = caller?.tenant ?? null;
  const [name = own ?? '', ...others] = header ?? [];
  if (others.length > 0 || !TENANT_PATTERN.test(name))
    return { status: 400, detail: `header ${TENANT_HEADER}: must be one name of a tenant` };
  if (own !== null && name !== own)
    return { status: 403, detail: `this credential belongs to the tenant ${own}, and can act in no other` };
  if (own === null && !caller?.scopes.has('admin'))
    return { status: 403, detail: `the header ${TENANT_HEADER} needs the scope admin` };
  if (!routeOptions.config?.isOfTenant)
    return { status: 400, detail: `this route belongs to no tenant: send it without the header ${TENANT_HEADER}` };
  const tenant = find(name);
  if (tenant) return tenant;
  return own === null
    ? { status: 404, detail: `there is no tenant ${name}` }
    : { status: 403, detail: `the tenant ${own} of this credential is not configured on this server` };
}
