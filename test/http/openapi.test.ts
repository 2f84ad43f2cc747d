import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Documented, fetchDocument } from '../support/app/openapi-document.ts';
import { useApp } from '../support/app/running-app.ts';

/** Routes for people, which the document omits. */
const HIDDEN = /^GET \/((docs|assets|v1\/session\/oidc)(\/|$)|$)/;
const OPEN = [
  'GET /livez',
  'GET /readyz',
  'GET /metrics',
  'GET /openapi.json',
  'GET /events.schema.json',
  'GET /v1/session',
];

/** Every registered route of the app, recorded through a diagnostics channel of fastify. */
const registered = new Set<string>();
const listen = (message: unknown) => {
  const { fastify } = message as { fastify: FastifyInstance };
  fastify.addHook('onRoute', ({ method, url }) => {
    for (const name of [method].flat())
      if (name !== 'HEAD') registered.add(`${name} ${url.replace(/:(\w+)/g, '{$1}')}`);
  });
};
subscribe('fastify.initialization', listen);
afterAll(() => unsubscribe('fastify.initialization', listen));

const app = useApp();
let spec: Documented;
beforeAll(async () => {
  spec = await fetchDocument(app.url);
});

it('has every route that is registered, and no other', () => {
  const visible = [...registered].filter((route) => !HIDDEN.test(route));
  expect(visible.length).toBeGreaterThan(10);
  expect([...spec.operations.keys()].toSorted()).toEqual(visible.toSorted());
});

it('passes the recommended rules of redocly without an error or a warning, and refers to nothing outside', async () => {
  expect(spec.text).not.toMatch(/"\$ref":"(?!#)/);
  const problems = await lintFromString({
    source: spec.text,
    config: await createConfig({ extends: ['recommended'] }),
  });
  expect(
    problems.map(({ severity, ruleId, message }) => `${severity} ${ruleId}: ${message}`),
  ).toEqual([]);
});

it('names both ways to send a credential, and the routes that require one', () => {
  expect(spec.document.components.securitySchemes).toMatchObject({
    apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
    bearer: { type: 'http', scheme: 'bearer' },
  });
  expect(spec.document.security).toEqual([{ apiKey: [] }, { bearer: [] }]);
  const open = [...spec.operations]
    .filter(([, { security }]) => security?.length === 0)
    .map(([route]) => route);
  expect(open.toSorted()).toEqual(OPEN.toSorted());
});

it('describes the tag of every route', () => {
  const used = new Set([...spec.operations.values()].flatMap(({ tags }) => tags));
  expect([...used].toSorted()).toEqual(spec.document.tags.map(({ name }) => name).toSorted());
});

it('has an example for every body and response', () => {
  for (const [route, { requestBody, responses }] of spec.operations) {
    const { default: other, ...known } = responses;
    expect(Object.keys(other?.content ?? {}), route).toEqual(['application/problem+json']);
    const bodies = [requestBody, ...Object.values(known)].flatMap((body) =>
      Object.entries(body?.content ?? {}),
    );
    for (const [type, { schema, example, examples }] of bodies)
      expect(example ?? examples ?? schema?.examples, `${route}, ${type}`).toBeDefined();
  }
});

it('describes every parameter, with an example where required', () => {
  for (const [route, { parameters }] of spec.operations)
    for (const { name, in: place, required = false, example } of parameters) {
      if (place === 'path') expect(required, `${route} ${name}`).toBe(true);
      if (required) expect(example, `${route} ${name}`).toBeDefined();
    }
});
