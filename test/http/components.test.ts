import { beforeAll, describe, expect, it } from 'vitest';
import { fetchDocument } from '../support/app/openapi-document.ts';
import { useApp } from '../support/app/running-app.ts';

type Json = Record<string, unknown>;

const app = useApp();
let schemas: Record<string, Json>;
/** Every place of the document with a schema, by its path; components are places of their own. */
let places: [place: string, schema: Json][];
let operations: Awaited<ReturnType<typeof fetchDocument>>['operations'];
let raw: {
  paths: Record<string, Record<string, Json>>;
  components: { schemas: Record<string, Json> };
};

beforeAll(async () => {
  const spec = await fetchDocument(app.url);
  operations = spec.operations;
  raw = JSON.parse(spec.text);
  schemas = raw.components.schemas;
  places = [...placesIn('paths', raw.paths), ...placesIn('components/schemas', schemas)];
});

/** Returns every object below a node except examples, whose keys are data. */
function placesIn(place: string, node: unknown): [string, Json][] {
  if (typeof node !== 'object' || node === null) return [];
  const below = Object.entries(node)
    .filter(([key]) => !['example', 'examples', 'default'].includes(key))
    .flatMap(([key, value]) => placesIn(`${place}/${key}`, value));
  return Array.isArray(node) ? below : [[place, node as Json], ...below];
}

const isRef = (schema: unknown) =>
  /^#\/components\/schemas\/\w+$/.test(String((schema as Json | undefined)?.$ref));
const namesOf = (found: [string, Json][]) => found.map(([place]) => place);

describe('a client generator', () => {
  it('gets a named type for every body of a request or response', () => {
    const bodies = places.filter(([place]) => /\/content\/application\/json\/schema$/.test(place));
    expect(bodies.length).toBeGreaterThan(20);
    const unnamed = bodies.filter(
      ([, schema]) => !isRef(schema) && !(schema.type === 'array' && isRef(schema.items)),
    );
    expect(namesOf(unnamed)).toEqual([]);
  });

  it('gets every enumeration as a named type', () => {
    const inlined = places.filter(
      ([place, { enum: values }]) => values && !/^components\/schemas\/\w+$/.test(place),
    );
    expect(namesOf(inlined)).toEqual([]);
  });
  it('gets null as a type, as OpenAPI 3.1 has it', () => {
    expect(JSON.stringify(raw)).not.toContain('"nullable"');
    const avoidable = places.filter(([, { anyOf }]) => {
      const types =
        Array.isArray(anyOf) && anyOf.length === 2 ? anyOf.map(({ type }) => String(type)) : [];
      return (
        types.includes('null') &&
        types.some((type) => ['string', 'number', 'integer', 'boolean'].includes(type))
      );
    });
    expect(namesOf(avoidable)).toEqual([]);
    expect(schemas.Submission?.properties).toMatchObject({ error: { type: ['string', 'null'] } });
  });

  it('gets whole numbers as integers, also in queries and paths', () => {
    const parameters = [...operations].flatMap(([route, { parameters: all }]) =>
      all.map(({ name, schema }): [string, unknown] => [`${route} ${name}`, schema]),
    );
    const of = (name: string) => Object.fromEntries(parameters)[name];
    expect(of('GET /v1/submissions limit')).toEqual({
      type: 'integer',
      minimum: 1,
      maximum: 1_000,
      default: 100,
    });
    expect(of('GET /v1/submissions/{id}/wait timeout_s')).toMatchObject({
      type: 'integer',
      default: 30,
    });
    expect(of('GET /v1/events after')).toEqual({ type: 'integer', minimum: 0 });
    expect(of('GET /v1/deliveries/{id} id')).toEqual({ type: 'integer', minimum: 1 });
    const digits = parameters.filter(([, schema]) =>
      /"pattern":"\^(\[1-9\]|\\\\d)/.test(JSON.stringify(schema)),
    );
    expect(digits.map(([name]) => name)).toEqual([]);
  });
});
