import type { FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify';
import type { TypedServer } from '../ports.ts';
import type { Services } from '../services.ts';
import type { Tenant } from './tenant.ts';

/** Registers routes whose handlers work with the given services. */
export type RegisterRoutes = (scope: TypedServer, services: Services) => unknown;

const METHODS = new Set<PropertyKey>(['get', 'post', 'put', 'patch', 'delete']);

type AddRoute = (url: string, options: { config?: object }, handler: RouteHandlerMethod) => unknown;
type Handlers = Map<string, RouteHandlerMethod>;

/**
 * Routes for the data of tenants. Each route is registered once, with its hooks and limits, and has one handler per tenant. A
 * handler has access only to the services of its tenant. Handlers of a tenant are created at its first request.
 */
export class TenantRoutes {
  readonly #groups: RegisterRoutes[] = [];
  readonly #handlers = new WeakMap<Tenant, Handlers>();

  /** `services`: those for data without a tenant. */
  async register(app: TypedServer, services: Services, group: RegisterRoutes): Promise<void> {
    this.#groups.push(group);
    await group(this.#dispatching(app), services);
  }

  /** Returns a scope that registers routes at `app`, whose handlers run with the services of the tenant of the request. */
  #dispatching(app: TypedServer): TypedServer {
    const own = {
      register: (plugin: (scope: TypedServer) => unknown) =>
        app.register(async (scope: TypedServer) => plugin(this.#dispatching(scope))),
    };
    return overriding(app, own, (method): AddRoute => {
      const add = app[method].bind(app) as unknown as AddRoute;
      return (url, options, handler) => {
        const config = { ...options.config, isOfTenant: true };
        return add(url, { ...options, config }, this.#dispatch(`${method} ${url}`, handler));
      };
    });
  }

  #dispatch(route: string, own: RouteHandlerMethod): RouteHandlerMethod {
    const handlerOf = (tenant: Tenant): RouteHandlerMethod => {
      const handler = this.#handlersOf(tenant).get(route);
      if (!handler) throw new Error(`the route ${route} has no handler for tenants`);
      return handler;
    };
    return function handle(request: FastifyRequest, reply: FastifyReply) {
      const { tenant, caller } = request;
      if (!tenant && caller?.tenant) throw new Error(`the tenant ${caller.tenant} was not selected`);
      return (tenant ? handlerOf(tenant) : own).call(this, request, reply);
    };
  }

  #handlersOf(tenant: Tenant): Handlers {
    const known = this.#handlers.get(tenant);
    if (known) return known;
    const handlers: Handlers = new Map();
    const scope = recording(handlers, tenant);
    for (const group of this.#groups) group(scope, tenant.services);
    this.#handlers.set(tenant, handlers);
    return handlers;
  }
}

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** Returns a scope that registers nothing, and only records the handlers. */
function recording(handlers: Handlers, { closing }: Tenant): TypedServer {
  const scope: TypedServer = overriding(
    {} as TypedServer,
    {
      register: (plugin: (inner: TypedServer) => unknown) => plugin(scope),
      addHook(name: string, hook: () => unknown) {
        if (name !== 'preClose') return;
        if (closing.aborted) hook();
        else closing.addEventListener('abort', () => void hook(), { once: true });
      },
      removeAllContentTypeParsers: () => undefined,
      addContentTypeParser: () => undefined,
    },
    (method) => (url, _options, handler) => handlers.set(`${method} ${url}`, handler),
  );
  return scope;
}

/** Returns a view of `app` with other methods that add routes, and other properties. */
function overriding(app: TypedServer, properties: object, adder: (method: Method) => AddRoute): TypedServer {
  return new Proxy(app, {
    get(target, name) {
      if (METHODS.has(name)) return adder(name as Method);
      if (Object.hasOwn(properties, name)) return Reflect.get(properties, name);
      const value = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
