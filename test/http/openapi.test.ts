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

type Schema = { $ref?: string; enum?: unknown; type?: string; items?: Schema };

/** Returns every object below a node except examples, whose keys are data. */
function placesIn(place: string, node: unknown): [place: string, schema: Schema][] {
  if (typeof node !== 'object' || node === null) return [];
  const below = Object.entries(node)
    .filter(([key]) => !['example', 'examples', 'default'].includes(key))
    .flatMap(([key, value]) => placesIn(`${place}/${key}`, value));
  return Array.isArray(node) ? below : [[place, node], ...below];
}

it('gives a client generator a named type for every body and every enumeration', () => {
  const { paths, components } = JSON.parse(spec.text);
  const isRef = (schema?: Schema) => /^#\/components\/schemas\/\w+$/.test(`${schema?.$ref}`);
  const places = [...placesIn('paths', paths), ...placesIn('schemas', components.schemas)];
  const bodies = places.filter(([place]) => /\/content\/application\/json\/schema$/.test(place));
  expect(bodies.length).toBeGreaterThan(20);
  const unnamed = bodies.filter(
    ([, schema]) => !isRef(schema) && !(schema.type === 'array' && isRef(schema.items)),
  );
  const inlined = places.filter(
    ([place, { enum: values }]) => values && !/^schemas\/\w+$/.test(place),
  );
  expect([...unnamed, ...inlined].map(([place]) => place)).toEqual([]);
});

it('describes the tag of every route', () => {
  const used = new Set([...spec.operations.values()].flatMap(({ tags }) => tags));
  expect([...used].toSorted()).toEqual(spec.document.tags.map(({ name }) => name).toSorted());
});

it('has an example for every request body, and problem documents for other statuses', () => {
  for (const [route, { requestBody, responses }] of spec.operations) {
    expect(Object.keys(responses.default?.content ?? {}), route).toEqual([
      'application/problem+json',
    ]);
    for (const [type, { schema }] of Object.entries(requestBody?.content ?? {}))
      expect(schema?.examples, `${route}, ${type}`).toBeDefined();
  }
});

it('describes every parameter, with an example where required', () => {
  for (const [route, { parameters }] of spec.operations)
    for (const { name, in: place, required = false, example } of parameters) {
      if (place === 'path') expect(required, `${route} ${name}`).toBe(true);
      if (required) expect(example, `${route} ${name}`).toBeDefined();
    }
});
